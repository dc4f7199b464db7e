#include "session/handover.hpp"

#include <fstream>

namespace scalemark {
namespace {

/// Whole or not at all: the supervisor may read at any moment.
void replace_file(const std::filesystem::path& path, const std::string& text) {
  const auto temporary = path.string() + ".tmp";
  std::ofstream(temporary) << text;
  std::error_code ignored;
  std::filesystem::rename(temporary, path, ignored);
}

}  // namespace

Handover::Handover(const std::map<std::string, std::string>& environment, bool is_root) {
  const auto found = environment.find("SMK_INTERNAL_HANDOVER");
  if (is_root && found != environment.end()) folder_ = found->second;
}

void Handover::publish_partial(const Json& finished, const Json& record,
                               const std::filesystem::path& path) const {
  if (folder_.empty()) return;
  const Json file = path.empty() ? Json(nullptr) : Json(path.string());
  replace_file(folder_ / "partial.json",
               record_text({{"finished", finished}, {"record", record}, {"path", file}}));
}

void Handover::publish_exit_code(ExitCode code) const {
  if (!folder_.empty()) replace_file(folder_ / "exit_code", std::to_string(static_cast<int>(code)));
}

void Handover::publish_abort(int exit_code, const std::string& message) const {
  if (!folder_.empty())
    replace_file(folder_ / "abort.json",
                 record_text({{"exit_code", exit_code}, {"reason", message}}));
}

}  // namespace scalemark

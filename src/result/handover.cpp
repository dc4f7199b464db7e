// Hands what is known of a job from its ranks to the supervisor that launched it.
#include "result/handover.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "record/read.hpp"
#include "record/write.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

constexpr const char* kExitCode = "exit_code";
constexpr const char* kAbort = "abort.json";
constexpr const char* kPartial = "partial.json";
constexpr const char* kListens = "listens";
constexpr const char* kStopHeard = "stop_heard";
constexpr const char* kPulse = "pulse";

/// Nothing where there is none, or none that is whole.
template <typename T>
std::optional<T> read_object(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  try {
    return part_from<T>(Json::parse(file));
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const RecordFault&) {
    return std::nullopt;
  }
}

/// Whole or not at all: the supervisor may read at any moment.
void replace_file(const std::filesystem::path& path, const std::string& text) {
  const auto temporary = path.string() + ".tmp";
  std::ofstream file(temporary);
  file << text;
  file.close();
  std::error_code ignored;
  if (file)
    std::filesystem::rename(temporary, path, ignored);
  else
    std::filesystem::remove(temporary, ignored);  // the disk is full: what was there stays
}

}  // namespace

void PartialResults::describe(Fields& fields) {
  fields.add("finished", &PartialResults::finished);
  fields.add("record", &PartialResults::record);
  fields.add("path", &PartialResults::path);
}

void AbortNotice::describe(Fields& fields) {
  fields.add("exit_code", &AbortNotice::exit_code);
  fields.add("reason", &AbortNotice::reason);
}

HandoverFolder::HandoverFolder(const std::filesystem::path& parent) : folder_(parent) {
  setenv(kHandoverVariable, path().c_str(), 1);
}

std::optional<int> HandoverFolder::exit_code() const {
  int code = 0;
  std::ifstream file(path() / kExitCode);
  return file >> code ? std::optional(code) : std::nullopt;
}

std::optional<AbortNotice> HandoverFolder::abort() const {
  return read_object<AbortNotice>(path() / kAbort);
}

std::optional<PartialResults> HandoverFolder::partial() const {
  return read_object<PartialResults>(path() / kPartial);
}

bool HandoverFolder::listens() const { return std::filesystem::exists(path() / kListens); }

bool HandoverFolder::stop_heard() const { return std::filesystem::exists(path() / kStopHeard); }

std::optional<std::int64_t> HandoverFolder::pulse() const {
  // Opened, because network file systems look for news only then.
  const FileDescriptor file{open((path() / kPulse).c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat now {};
  if (file.fd < 0 || fstat(file.fd, &now) != 0) return std::nullopt;
  return now.st_mtim.tv_sec * std::int64_t{1'000'000'000} + now.st_mtim.tv_nsec;
}

Handover::Handover(const std::map<std::string, std::string>& environment, bool is_root) {
  const auto found = environment.find(kHandoverVariable);
  if (found != environment.end()) folder_ = found->second;
  speaks_ = is_root && !folder_.empty();
}

void Handover::publish(const char* name, const std::string& text) const {
  if (speaks_) replace_file(folder_ / name, text);
}

void Handover::publish_partial(const PartialResults& partial) const {
  if (speaks_) publish(kPartial, record_text(part_json(partial)));
}

void Handover::publish_exit_code(ExitCode code) const {
  publish(kExitCode, std::to_string(static_cast<int>(code)));
}

void Handover::publish_listens() const { publish(kListens, ""); }

void Handover::publish_stop_heard() const { publish(kStopHeard, ""); }

void Handover::beat() const {
  if (!speaks_) return;
  const FileDescriptor file{open((folder_ / kPulse).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
  if (file.fd >= 0) futimens(file.fd, nullptr);
}

void Handover::publish_abort(const AbortNotice& abort) const {
  if (!folder_.empty()) replace_file(folder_ / kAbort, record_text(part_json(abort)));
}

namespace {

using std::chrono::milliseconds;

/// Rank 0 speaks first, then the ranks of its host: mostly the others would say the same, and its
/// end ends them.
constexpr milliseconds kAfterRank0{200}, kAfterItsHost{1500}, kBeforeTheEnd{500};

}  // namespace

void say_error_before_mpi(ExitCode code, const std::string& what) {
  const int rank = rank_before_mpi();
  if (rank > 0)
    std::this_thread::sleep_for(rank == announced_local_rank() ? kAfterRank0 : kAfterItsHost);
  if (is_first_to_say(what)) {
    const std::string named =
        rank > 0 ? fmt::format("rank {} on {}: {}", rank, host_name(), what) : what;
    say_error(named);
    Handover(process_environment(), rank == 0).publish_abort({static_cast<int>(code), named});
  }
  if (!is_announced_alone()) std::this_thread::sleep_for(kBeforeTheEnd);
}

}  // namespace scalemark

// See keys/own_model.hpp.
#include <fmt/format.h>

#include <map>

#include "config/input_file.hpp"
#include "config/run_config.hpp"
#include "config/text.hpp"
#include "error.hpp"

namespace scalemark {

std::vector<std::int64_t> shape_of(std::string_view text) {
  std::vector<std::int64_t> shape;
  while (true) {
    const std::size_t cross = text.find('x');
    const auto size = parse_integer(text.substr(0, cross));
    if (!size || *size < 1 || *size > 1'000'000) return {};
    shape.push_back(*size);
    if (cross == text.npos) return shape;
    text.remove_prefix(cross + 1);
  }
}

std::string digest_of_file(std::string_view flag, const std::string& path) {
  constexpr std::size_t kLargestModel = std::size_t{16} << 30;
  static std::map<std::string, std::string> known;  // of every point of a plan once
  std::string& digest = known[path];
  if (!digest.empty()) return digest;
  try {
    return digest = sha256_hex(read_input_file(path, kLargestModel));
  } catch (const InputFault& fault) {
    const std::string what = fmt::format("{} {}: {}", flag, path, fault.what());
    if (fault.missing) throw ConfigError(what);
    throw ResultError(what);
  }
}

}  // namespace scalemark

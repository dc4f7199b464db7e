#include "error.hpp"

#include <algorithm>

namespace scalemark {

void refuse_at(std::string_view place, std::string_view what) {
  throw ConfigError(std::string(place).append(": ").append(what));
}

ExitCode most_severe(ExitCode a, ExitCode b) noexcept {
  const auto place = [](ExitCode code) {
    return std::ranges::find(kExitCodes, code, &ExitCodeWords::code);
  };
  return place(a) <= place(b) ? a : b;
}

ExitCode exit_code_of(const std::exception& error) noexcept {
  const auto* own = dynamic_cast<const Error*>(&error);
  return own ? own->code() : ExitCode::failed;
}

}  // namespace scalemark

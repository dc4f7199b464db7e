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

std::string words_of(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, std::min(text.find("\nException raised from "), text.find("\nframe #")));
}

}  // namespace scalemark

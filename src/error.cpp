#include "error.hpp"

#include <algorithm>
#include <system_error>

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

namespace {

bool is_without_threads(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system && system->code() == std::errc::resource_unavailable_try_again;
}

}  // namespace

ExitCode exit_code_of(const std::exception& error) noexcept {
  if (is_without_threads(error)) return ExitCode::environment;
  const auto* own = dynamic_cast<const Error*>(&error);
  return own ? own->code() : ExitCode::failed;
}

std::string words_of(const std::exception& error) {
  if (is_without_threads(error))
    return "no thread can be made here: raise the limit of processes (ulimit -u, or pids.max of "
           "the "
           "control group), or lower --num_intra_threads";
  const std::string text = error.what();
  return text.substr(0, std::min(text.find("\nException raised from "), text.find("\nframe #")));
}

}  // namespace scalemark

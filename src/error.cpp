#include "error.hpp"

#include <algorithm>
#include <array>

namespace scalemark {

ExitCode most_severe(ExitCode a, ExitCode b) noexcept {
  constexpr std::array order{ExitCode::environment,  ExitCode::usage,  ExitCode::timeout,
                             ExitCode::failed,       ExitCode::result, ExitCode::regression,
                             ExitCode::inconclusive, ExitCode::ok};
  const auto place = [&](ExitCode code) { return std::find(order.begin(), order.end(), code); };
  return place(a) <= place(b) ? a : b;
}

ExitCode exit_code_of(const std::exception& error) noexcept {
  const auto* own = dynamic_cast<const Error*>(&error);
  return own ? own->code() : ExitCode::failed;
}

}  // namespace scalemark

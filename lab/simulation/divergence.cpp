// The program of the divergence numbers in docs/measurements.md; see programs.hpp.
#include <fmt/format.h>

#include <cstdlib>

#include "lab/simulation/divergence_traces.hpp"
#include "lab/simulation/programs.hpp"
#include "streams.hpp"

namespace scalemark::simulation {

int divergence(const std::vector<std::string>& arguments) {
  using namespace scalemark::divergence;
  const int repetitions = arguments.empty() ? 1000 : std::atoi(arguments[0].c_str());
  if (repetitions < 1) {
    say_progress("usage: divergence [REPETITIONS], a number above 0");
    return 2;
  }
  constexpr int kSteps[] = {40, 100, 400, 1000};
  fmt::print("| trace \\ steps |");
  for (const int steps : kSteps) fmt::print(" {} |", steps);
  fmt::print("\n| --- | --- | --- | --- | --- |\n");
  for (const auto& traces : {sound_traces(), diverged_traces()})
    for (const Trace& trace : traces) {
      fmt::print("| {} |", trace.name);
      for (const int steps : kSteps)
        fmt::print(" {:.4g} |", 100 * diverged_share(trace, steps, repetitions, 20171206));
      fmt::print("\n");
    }
  return 0;
}

}  // namespace scalemark::simulation

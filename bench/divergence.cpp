// Simulates how often the divergence verdict is wrong; prints the table of docs/measurements.md.
// Usage: divergence [REPETITIONS]; the published table has the default.
#include <fmt/format.h>

#include <cstdlib>

#include "bench/divergence_traces.hpp"

int main(int argc, char** argv) {
  using namespace scalemark::divergence;
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 1000;
  if (repetitions < 1) {
    fmt::print(stderr, "usage: divergence [REPETITIONS], a number above 0\n");
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
}

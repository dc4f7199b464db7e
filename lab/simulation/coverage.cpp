// The program of docs/coverage.md; see programs.hpp.
#include <fmt/format.h>

#include <cstdlib>

#include "lab/simulation/coverage_series.hpp"
#include "lab/simulation/launch_coverage.hpp"
#include "lab/simulation/programs.hpp"
#include "measure/stopping.hpp"
#include "streams.hpp"

namespace scalemark::coverage {
namespace {

constexpr std::uint64_t kSeed = 20150512;

void print_introduction(int repetitions) {
  fmt::print(
      "# Coverage of the interval\n\n"
      "How often the 95 % interval of the mean step (`mean_interval`, [method](measurements.md)) "
      "holds the true mean.\n"
      "Written by `build/release/bin/coverage` (fixed seed, {} series a cell, "
      "standard error of a\n"
      "95 % cell {:.1f} points). A cell gives the percentage of intervals that hold the mean; in "
      "brackets the\n"
      "percentage of series that got no interval, because they are worth fewer than 30 independent "
      "steps.\n\n",
      repetitions, 100 * std::sqrt(0.95 * 0.05 / repetitions));
}

bool keeps_promise(const Coverage& c) {
  return c.covered_fraction() >= 0.93 && c.covered_fraction() <= 0.97;
}

bool print_promises(int repetitions) {
  fmt::print(
      "## Promised: 93-97 %\n\n| series | steps | covered | mean half width |\n| --- | --- | --- | "
      "--- |\n");
  bool kept = true;
  for (const auto& [series, steps] : promises()) {
    const Coverage c = simulate(series, steps, repetitions, kSeed);
    kept = kept && keeps_promise(c) && c.refused_fraction() < 0.01;
    fmt::print("| {} | {} | {:.1f} | {:.2f} % |\n", series.name, steps, 100 * c.covered_fraction(),
               100 * c.half_width_sum / c.intervals);
  }
  return kept;
}

std::string cell(const Coverage& c) {
  // Fewer than 5 % of the series: the few that slip through say nothing but that they should not
  // have.
  if (c.refused_fraction() > 0.95) return fmt::format("none ({:.0f})", 100 * c.refused_fraction());
  if (c.refused_fraction() < 0.005) return fmt::format("{:.1f}", 100 * c.covered_fraction());
  return fmt::format("{:.1f} ({:.0f})", 100 * c.covered_fraction(), 100 * c.refused_fraction());
}

void print_elsewhere(int repetitions) {
  constexpr std::size_t kSteps[] = {30, 50, 100, 200, 400, 1000};
  const Series all[] = {normal(),
                        lognormal(0.25),
                        lognormal(0.5),
                        lognormal(1),
                        ar1(-0.3),
                        ar1(0.3),
                        ar1(0.5),
                        ar1(0.7),
                        ar1(0.9),
                        lognormal_ar1(0.5, 0.5),
                        drifting(),
                        two_modes("two modes 50/50, 20 % apart", 0.5, 0.2),
                        two_modes("two modes 80/20, 20 % apart", 0.2, 0.2),
                        two_modes("1 % of the steps 50 % slower", 0.01, 0.5),
                        periodic()};
  fmt::print("\n## Elsewhere: what it covers\n\n| series \\ steps |");
  for (const std::size_t steps : kSteps) fmt::print(" {} |", steps);
  fmt::print("\n| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Series& series : all) {
    fmt::print("| {} |", series.name);
    for (const std::size_t steps : kSteps)
      fmt::print(" {} |", cell(simulate(series, steps, repetitions, kSeed)));
    fmt::print("\n");
  }
  fmt::print(
      "\nToo low: short series with long correlation (below 100 steps, phi 0.5 and more) that look "
      "independent by\n"
      "chance; slow drifts under noise; rare spikes, until a few dozen of them have been seen. Too "
      "high: negative\n"
      "correlation and fixed periods, which the estimator never lets narrow an interval.\n");
}

/// Stopping at the moment when the interval is narrow enough prefers intervals that are narrow by
/// luck.
void print_stopping(int repetitions) {
  constexpr std::size_t kMostSteps = 2000;
  fmt::print(
      "\n## Under `--target_ci`\n\nThe same interval where the stopping rule ended the series (at "
      "most {} steps).\n\n"
      "| series | target | covered | mean steps |\n| --- | --- | --- | --- |\n",
      kMostSteps);
  for (const auto& [series, target] :
       {std::pair{normal(), 0.01}, std::pair{normal(), 0.005}, std::pair{ar1(0.5), 0.01},
        std::pair{lognormal(0.25), 0.02}, std::pair{lognormal(0.5), 0.05}}) {
    Random random(kSeed);
    Coverage coverage;
    double steps_sum = 0;
    for (int i = 0; i < repetitions; ++i) {
      const auto x = series.generate(kMostSteps, random);
      StoppingRule rule(target, std::nullopt);
      std::size_t n = 1;
      while (n < kMostSteps && !rule.check(std::span(x).first(n), 0)) ++n;
      coverage.add(mean_interval(std::span(x).first(n)), series.mean);
      steps_sum += static_cast<double>(n);
    }
    fmt::print("| {} | {:.1f} % | {:.1f} | {:.0f} |\n", series.name, 100 * target,
               100 * coverage.covered_fraction(), steps_sum / repetitions);
  }
}

}  // namespace
}  // namespace scalemark::coverage

namespace scalemark::simulation {

int coverage(const std::vector<std::string>& arguments) {
  using namespace scalemark::coverage;
  const int repetitions = arguments.empty() ? 10000 : std::atoi(arguments[0].c_str());
  if (repetitions < 1) {
    say_progress(fmt::format("coverage: REPETITIONS must be a positive number, \"{}\" is not",
                             arguments[0]));
    return 2;
  }
  const int comparisons = (repetitions + 19) / 20;
  if (arguments.size() > 1 && arguments[1] == "launches")
    return print_launches(comparisons) ? 0 : 1;
  print_introduction(repetitions);
  const bool kept = print_promises(repetitions);
  print_elsewhere(repetitions);
  print_stopping(repetitions);
  return print_launches(comparisons) && kept ? 0 : 1;
}

}  // namespace scalemark::simulation

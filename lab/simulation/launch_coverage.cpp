// The part of docs/coverage.md on intervals between launches.
#include "lab/simulation/launch_coverage.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>

namespace scalemark::coverage {
namespace {

constexpr std::uint64_t kLaunchSeed = 20171206;
constexpr std::array<std::size_t, 5> kLaunches{3, 5, 7, 10, 20};
/// Below, compare prints no interval.
constexpr std::size_t kLeastLaunches = 5;
constexpr double kPromise = 0.93;

const char* design(const Method& method) { return method.paired ? "pairs" : "two samples"; }

void print_header(const char* first) {
  fmt::print("| {} |", first);
  for (const std::size_t n : kLaunches) fmt::print(" {} |", n);
  fmt::print("\n| --- | --- | --- | --- | --- | --- |\n");
}

std::string cell(double covered) {
  return covered < 0 ? "none" : fmt::format("{:.1f}", 100 * covered);
}

/// A row of one method, the least coverage of all noises from kLeastLaunches on.
double print_row(const std::string& name, const LaunchNoise& noise, const Method& method,
                 double spread, int repetitions) {
  double least = 1;
  fmt::print("| {} |", name);
  for (const std::size_t n : kLaunches) {
    const double covered = launch_coverage(noise, method, n, spread, repetitions, kLaunchSeed + n);
    if (n >= kLeastLaunches) least = std::min(least, covered);
    fmt::print(" {} |", cell(covered));
  }
  fmt::print("\n");
  std::fflush(stdout);
  return least;
}

bool print_launch_promises(int repetitions) {
  print_header("noise, launches of each set");
  bool kept = true;
  for (const Method& method : {methods()[0], methods()[1]})
    for (const LaunchNoise& noise : launch_noises()) {
      const std::string name = fmt::format("{}, {}", noise.name, design(method));
      // A true coverage at the edge of the promise passes.
      const double slack = 2 * std::sqrt(kPromise * (1 - kPromise) / repetitions);
      kept = print_row(name, noise, method, 1, repetitions) >= kPromise - slack && kept;
    }
  return kept;
}

void print_others(int repetitions) {
  print_header("method, noise");
  for (std::size_t i = 2; i < methods().size(); ++i)
    for (const LaunchNoise& noise : launch_noises())
      print_row(fmt::format("{} ({}), {}", methods()[i].name, design(methods()[i]), noise.name),
                noise, methods()[i], 1, repetitions);
}

void print_unlike(int repetitions) {
  print_header("method, noise (three times as wide in the second set)");
  for (const std::size_t i : {0, 1, 2, 6})
    for (const LaunchNoise& noise : launch_noises())
      print_row(fmt::format("{} ({}), {}", methods()[i].name, design(methods()[i]), noise.name),
                noise, methods()[i], 3, repetitions);
}

void print_power(int repetitions) {
  print_header("launches of each set");
  for (const bool paired : {true, false}) {
    fmt::print("| {} |", paired ? "pairs" : "two samples");
    for (const std::size_t n : kLaunches)
      fmt::print(" {:.0f} |",
                 100 * power_at_stated_difference(n, paired, repetitions, kLaunchSeed));
    fmt::print("\n");
  }
}

}  // namespace

bool print_launches(int repetitions) {
  fmt::print(
      "\n## Between launches\n\n"
      "How often the 95 % interval of `scalemark compare` holds the true ratio of two sets of n "
      "launches each, in percent\n"
      "({} simulated comparisons a cell). Noise of a launch, on the logarithm of its rate: normal, "
      "2 %; lognormal (sigma 0.8), so that a\n"
      "few launches are much slower; two kinds of launches, 5 % apart (and 0.5 % of normal noise), "
      "in equal shares or 80/20.\n"
      "The rule: an interval is printed where all of these are covered at {:.0f} % at least, which "
      "holds from {} launches on; below, `compare`\n"
      "says that there are too few.\n\n",
      repetitions, 100 * kPromise, kLeastLaunches);
  const bool kept = print_launch_promises(repetitions);
  fmt::print(
      "\nPairs have the interval of the sign-flip and the paired t test, two samples that of the "
      "permutation, the rank sum and Welch's test together\n"
      "([method](measurements.md#two-sets)): both hold where the two sets differ by a factor "
      "alone. "
      "With 5 pairs "
      "the widest has 93.75 %; with 3 none has enough.\n\n"
      "### Other methods, same noise\n\n");
  print_others(repetitions);
  fmt::print(
      "\nStudent's t and Welch's t cover as well while both sets have the same noise, whose "
      "difference is symmetric, but are wider than they need be where\n"
      "noise is skewed; and they hold with 3 launches only as long as the noise is that alike "
      "(below). The bootstrap is too narrow, by either method:\n"
      "it resamples the few values there are. So it is left to statistics without an exact test, "
      "and many launches.\n\n"
      "### Where no method helps: noise of unlike shape\n\n");
  print_unlike(repetitions);
  fmt::print(
      "\nWhere one set is slow in a fifth of its launches and the other is not as slow, a handful "
      "of launches may hold none of the slow ones.\n"
      "The winsorised estimate is of the typical launch, and these shares are of the ratio of "
      "means, "
      "which is another where shapes differ.\n\n"
      "### Minimum detectable difference\n\n"
      "Percent of comparisons in which the test (5 %, two-sided) finds a difference as large "
      "as the stated minimum detectable\n"
      "one, whose formula promises 80 for normal noise:\n\n");
  print_power(repetitions);
  fmt::print(
      "\nBelow 6 pairs, or 4 launches of each of two sets, no difference can be found at 5 %: "
      "then none is stated.\n");
  return kept;
}

}  // namespace scalemark::coverage

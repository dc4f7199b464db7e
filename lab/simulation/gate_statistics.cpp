// Which statistic the sign-flip test should have: the table "Why this statistic" of docs/gate.md.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "lab/simulation/gate_shapes.hpp"
#include "lab/simulation/gate_simulation.hpp"
#include "measure/statistics.hpp"

namespace scalemark::gate {
namespace {

using Values = std::vector<double>;

constexpr double kLevel = 0.01;
constexpr std::uint64_t kStatisticsSeed = 20261123;

Values sorted_sums(std::span<const double> x) {
  Values sums{0};
  for (const double value : x) {
    const std::size_t known = sums.size();
    for (std::size_t i = 0; i < known; ++i) sums.push_back(sums[i] - value);
    for (std::size_t i = 0; i < known; ++i) sums[i] += value;
  }
  std::ranges::sort(sums);
  return sums;
}

/// Share of all assignments of signs whose sum is at most the observed one.
double lower_p(const Values& x) {
  const Values low = sorted_sums(std::span(x).first(x.size() / 2));
  const Values high = sorted_sums(std::span(x).subspan(x.size() / 2));
  double magnitudes = 0;
  for (const double value : x) magnitudes += std::abs(value);
  const double limit = std::accumulate(x.begin(), x.end(), 0.) + 1e-12 * magnitudes;
  double count = 0;
  std::size_t fitting = high.size();
  for (const double value : low) {
    while (fitting > 0 && value + high[fitting - 1] > limit) --fitting;
    count += static_cast<double>(fitting);
  }
  return count / std::exp2(static_cast<double>(x.size()));
}

Values magnitudes_of(const Values& x) {
  Values magnitudes;
  for (const double value : x) magnitudes.push_back(std::abs(value));
  return magnitudes;
}

/// At most `limit` x the median magnitude.
Values clipped(Values x, double limit) {
  const double most = limit * median(magnitudes_of(x));
  for (double& value : x) value = std::clamp(value, -most, most);
  return x;
}

Values signed_ranks(const Values& x) {
  const Values magnitudes = magnitudes_of(x);
  Values ranks;
  for (const double value : x) {
    const auto rank =
        std::ranges::count_if(magnitudes, [=](double other) { return other <= std::abs(value); });
    ranks.push_back(std::copysign(static_cast<double>(rank), value));
  }
  return ranks;
}

/// What the signs are flipped of: a function of the magnitudes alone.
struct Statistic {
  std::string name;
  std::function<Values(const Values&)> of;
};

std::vector<Statistic> statistics() {
  const auto at = [](double limit) { return [=](const Values& x) { return clipped(x, limit); }; };
  return {{"mean", [](const Values& x) { return x; }},
          {"as built", [](const Values& x) { return winsorised_magnitudes(x); }},
          {"winsorised, 3 medians", at(3)},
          {"2.5", at(2.5)},
          {"2", at(2)},
          {"signed ranks", signed_ranks}};
}

}  // namespace

void print_statistics(int repetitions) {
  std::string header = "\n| launches | pairs | slowdown |", line = "| --- | --- | --- |";
  for (const Statistic& statistic : statistics()) {
    header += fmt::format(" {} |", statistic.name);
    line += " --- |";
  }
  fmt::print("{}\n{}\n", header, line);
  for (const LaunchNoise& noise : launch_noises())
    for (const int pairs : {10, 14, 20})
      for (const double slowdown : {0., 0.03}) {
        Random random(kStatisticsSeed);
        std::vector<int> refused(statistics().size());
        for (int i = 0; i < repetitions; ++i) {
          Values x;
          for (int k = 0; k < pairs; ++k)
            x.push_back(std::log1p(-slowdown) + noise.fresh(random) - noise.base(random));
          for (std::size_t s = 0; s < refused.size(); ++s)
            refused[s] += lower_p(statistics()[s].of(x)) <= kLevel;
        }
        fmt::print("| {} | {} | {:.0f} % |", noise.name, pairs, 100 * slowdown);
        for (const int count : refused) fmt::print(" {:.1f} |", 100. * count / repetitions);
        fmt::print("\n");
        std::fflush(stdout);
      }
}

}  // namespace scalemark::gate

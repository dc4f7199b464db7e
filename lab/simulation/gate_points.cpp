// Gates over several points, and sets that drift: the tables "One point among many" and "Drift" of
// docs/gate.md.
#include <fmt/format.h>

#include "lab/simulation/gate_shapes.hpp"
#include "lab/simulation/gate_simulation.hpp"
#include "measure/permutation.hpp"

namespace scalemark::gate {
namespace {

constexpr std::uint64_t kPointsSeed = 20261124;

struct PointsCase {
  std::string name;
  std::vector<double> slowdowns;  ///< of each point
  double noise;                   ///< of a pair at a point, beside what all points of it share
};

std::vector<PointsCase> points_cases() {
  const auto of = [](std::size_t points, double all, double first) {
    std::vector<double> slowdowns(points, all);
    slowdowns[0] = first;
    return slowdowns;
  };
  return {{"12 points, none", of(12, 0, 0), 0.01},
          {"12 points, one -10 %", of(12, 0, 0.1), 0.01},
          {"12 points, one -5 %", of(12, 0, 0.05), 0.01},
          {"12 points, all -2 %", of(12, 0.02, 0.02), 0.01},
          {"12 points, all -5 %", of(12, 0.05, 0.05), 0.01},
          {"12 points at 2.5 %, none", of(12, 0, 0), 0.025},
          {"12 points at 2.5 %, one -10 %", of(12, 0, 0.1), 0.025},
          {"12 points at 2.5 %, all -5 %", of(12, 0.05, 0.05), 0.025},
          {"3 points: -10, +6, +6 %", {0.1, -0.06, -0.06}, 0.01},
          {"3 points, none", {0, 0, 0}, 0.01}};
}

/// [point][pair]: half of a pair's variance is shared by its points.
Series drawn_pairs(const PointsCase& one, std::size_t pairs, Random& random) {
  Series series(one.slowdowns.size());
  for (std::size_t k = 0; k < pairs; ++k) {
    const double shared = one.noise / std::sqrt(2.) * gaussian(random);
    for (std::size_t i = 0; i < series.size(); ++i)
      series[i].push_back(std::log1p(-one.slowdowns[i]) + shared +
                          one.noise / std::sqrt(2.) * gaussian(random));
  }
  return series;
}

struct Tally {
  int regressed = 0, passed = 0;
  double pairs = 0;
  void add(const GateDecision& decision) {
    regressed += decision.verdict == GateVerdict::regressed;
    passed += decision.verdict == GateVerdict::pass;
    pairs += static_cast<double>(decision.pairs);
  }
};

}  // namespace

void print_points(int repetitions) {
  fmt::print(
      "\n| points | mean alone: regressed | pass | pairs | as built: regressed | by 10 pairs | "
      "pass "
      "| pairs |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const PointsCase& one : points_cases()) {
    Random random(kPointsSeed);
    Tally mean_alone, built;
    int early = 0;
    for (int i = 0; i < repetitions; ++i) {
      const Series series = drawn_pairs(one, 20, random);
      mean_alone.add(decide({mean_of_series(series)}));
      const GateDecision decision = decide(series);
      built.add(decision);
      early += decision.verdict == GateVerdict::regressed && decision.pairs <= 10;
    }
    const auto share = [&](double count) { return 100 * count / repetitions; };
    fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n", one.name,
               share(mean_alone.regressed), share(mean_alone.passed),
               mean_alone.pairs / repetitions, share(built.regressed), share(early),
               share(built.passed), built.pairs / repetitions);
    std::fflush(stdout);
  }
}

/// Two sets of launches on one and on two ranks, without a difference, while the machine gets
/// slower at an even pace.
void print_drift(int repetitions) {
  constexpr int kRepeats = 10;
  fmt::print(
      "\n| drift within the measuring | rates, one set after the other | efficiency, likewise | "
      "rates, side by side |\n| --- | --- | --- | --- |\n");
  for (const double drift : {0., 0.01, 0.02, 0.05}) {
    Random random(kPointsSeed);
    int rates = 0, efficiency = 0, pairs = 0;
    for (int i = 0; i < repetitions; ++i) {
      const auto launch = [&](int set, int repeat, bool side_by_side) {
        const double place = side_by_side ? repeat + 0.5 * set : repeat + kRepeats * set;
        const double share = place / (side_by_side ? kRepeats : 2 * kRepeats);
        return 0.005 * gaussian(random) - drift * share;
      };
      std::vector<double> one[2], ratio[2], differences;
      for (int set = 0; set < 2; ++set)
        for (int repeat = 0; repeat < kRepeats; ++repeat) {
          one[set].push_back(launch(set, repeat, false));
          ratio[set].push_back(launch(set, repeat, false) - one[set].back());
        }
      for (int repeat = 0; repeat < kRepeats; ++repeat) {
        const double base = launch(0, repeat, true);
        differences.push_back(launch(1, repeat, true) - base);
      }
      const auto found = [](double p) { return p <= 0.01; };
      rates += found(permutation_test(one[0], one[1], Alternative::less).p);
      efficiency += found(permutation_test(ratio[0], ratio[1], Alternative::less).p);
      pairs += found(sign_flip_test(differences, Alternative::less).p);
    }
    const auto share = [&](int count) { return 100. * count / repetitions; };
    fmt::print("| {:.0f} % | {:.1f} | {:.1f} | {:.1f} |\n", 100 * drift, share(rates),
               share(efficiency), share(pairs));
    std::fflush(stdout);
  }
}

}  // namespace scalemark::gate

// Sets that are not alike: spreads, sizes, slow launches and orders, and power beside other tests.
// The tables "Unlike spreads", "Power", "Slow launches" and "Order" of docs/gate.md.
#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/point_test.hpp"
#include "lab/simulation/gate_rivals.hpp"
#include "lab/simulation/gate_shapes.hpp"
#include "lab/simulation/gate_simulation.hpp"

namespace scalemark::gate {
namespace {

using Values = std::vector<double>;

constexpr std::uint64_t kUnlikeSeed = 20261127;

double heavy_tailed(Random& random) { return std::student_t_distribution<double>(3)(random); }
/// Skewed, with mean 0.
double log_normal(Random& random) { return std::exp(0.32) - std::exp(0.8 * gaussian(random)); }

Values drawn(std::size_t n, Random& random, const std::function<double(Random&)>& draw,
             double factor = 1, double shift = 0) {
  Values x(n);
  for (double& value : x) value = shift + factor * draw(random);
  return x;
}

struct Sizes {
  std::size_t base, fresh;
  bool are_pairs = false;
};

double percent(int count, int repetitions) { return 100. * count / repetitions; }

}  // namespace

void print_levels(int repetitions) {
  fmt::print(
      "\n| noise | launches | spread of the new: that of the base | 2 times | 3 times | 6 times "
      "|\n| --- | --- | --- | --- | --- | --- |\n");
  const auto disturbed = [draw = two_levels(0.1, std::log(0.7))](Random& random) {
    return draw(random) - 0.1 * std::log(0.7);
  };
  const std::pair<std::string, std::function<double(Random&)>> shapes[] = {
      {"normal", gaussian},
      {"heavy-tailed (t, 3)", heavy_tailed},
      {"log-normal", log_normal},
      {"one in ten 30 % slower", disturbed}};
  const auto tests = rivals();
  for (const auto& [name, draw] : shapes)
    for (const auto [n, m, are_pairs] :
         {Sizes{5, 5}, Sizes{7, 7}, Sizes{10, 10}, Sizes{20, 20}, Sizes{8, 12}, Sizes{20, 5},
          Sizes{50, 5}, Sizes{5, 50}, Sizes{50, 20}, Sizes{7, 7, true}, Sizes{10, 10, true},
          Sizes{20, 20, true}, Sizes{50, 50, true}}) {
      fmt::print("| {} | {} |", name,
                 are_pairs ? fmt::format("{} pairs", n) : fmt::format("{} and {}", n, m));
      for (const double ratio : {1., 2., 3., 6.}) {
        Random random(kUnlikeSeed);
        int one = 0, five = 0;
        for (int i = 0; i < repetitions; ++i) {
          const Values base = drawn(n, random, draw), fresh = drawn(m, random, draw, ratio);
          const double p = tests[are_pairs ? 1 : 0].p(base, fresh);
          one += p <= 0.01;
          five += p <= 0.05;
        }
        fmt::print(" {:.1f}, {:.1f} |", percent(one, repetitions), percent(five, repetitions));
      }
      fmt::print("\n");
      std::fflush(stdout);
    }
}

void print_power(int repetitions) {
  const auto tests = rivals();
  std::string header = "\n| launches | of each | slowdown |", line = "| --- | --- | --- |";
  for (const Rival& test : tests) {
    header += fmt::format(" {} |", test.name);
    line += " --- |";
  }
  fmt::print("{}\n{}\n", header, line);
  for (const LaunchNoise& noise :
       {normal_launches("normal, 1 % of a pair", 0.01),
        both("heavy-tailed", [](Random& random) { return 0.004 * heavy_tailed(random); }),
        both("one in five 5 % slower", two_levels(0.2, -0.05)),
        both("half of them 5 % slower", two_levels(0.5, -0.05)),
        both("one in ten 30 % slower", two_levels(0.1, std::log(0.7))),
        both("log-normal",
             [](Random& random) { return -0.01 * std::exp(1.2 * gaussian(random)); })})
    for (const std::size_t n : {5U, 6U, 7U, 8U, 10U, 14U, 20U})
      for (const double slowdown : {0., 0.01, 0.02, 0.03, 0.05, 0.08}) {
        Random random(kUnlikeSeed);
        std::vector<int> refused(tests.size());
        for (int i = 0; i < repetitions; ++i) {
          const Values base = drawn(n, random, noise.base);
          const Values fresh = drawn(n, random, noise.fresh, 1, std::log1p(-slowdown));
          for (std::size_t t = 0; t < tests.size(); ++t)
            refused[t] += tests[t].p(base, fresh) <= 0.01;
        }
        fmt::print("| {} | {} | {:.0f} % |", noise.name, n, 100 * slowdown);
        for (const int count : refused) fmt::print(" {:.1f} |", percent(count, repetitions));
        fmt::print("\n");
        std::fflush(stdout);
      }
}

void print_slow_modes(int repetitions) {
  fmt::print(
      "\n| slow launches of the new build | launches | samples: regressed | pass | pairs: "
      "regressed "
      "| pass |\n| --- | --- | --- | --- | --- | --- |\n");
  const std::pair<double, double> modes[] = {
      {0, 1}, {0.1, 0.5}, {0.2, 0.7}, {0.25, 0.5}, {0.25, 0.97}};
  for (const auto& [share, speed] : modes)
    for (const std::size_t n : {10U, 20U, 40U}) {
      Random random(kUnlikeSeed);
      int regressed[2] = {}, passed[2] = {};
      for (int i = 0; i < repetitions; ++i)
        for (const bool paired : {false, true}) {
          const Values base = drawn(n, random, two_levels(0, 0));
          const Values fresh = drawn(n, random, two_levels(share, std::log(speed)));
          const GateDecision decision = decide_once({{base}, {fresh}, paired}, {});
          regressed[paired] += decision.verdict == GateVerdict::regressed;
          passed[paired] += decision.verdict == GateVerdict::pass;
        }
      fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n",
                 share == 0 ? std::string("none")
                            : fmt::format("{:g} %, {:g} % slower", 100 * share, 100 - 100 * speed),
                 n, percent(regressed[0], repetitions), percent(passed[0], repetitions),
                 percent(regressed[1], repetitions), percent(passed[1], repetitions));
      std::fflush(stdout);
    }
}

namespace {

constexpr int kTimedPairs = 10;

/// In what order the launches of two sets follow each other, one a minute.
struct LaunchSequence {
  std::string name;
  std::function<bool(int pair, Random&)> base_first;
  bool apart = false;  ///< all launches of the base, then all of the new build
};

/// What the machine does to launches by their place, as logarithms of rates.
struct Disturbance {
  double second = 0;  ///< to the second launch of a pair
  double drift = 0;   ///< from the first launch to the last
};

TimedLogs launched(const LaunchSequence& sequence, const Disturbance& by, double slowdown,
                   bool paired, Random& random) {
  TimedLogs logs;
  logs.paired = paired;
  for (int pair = 0; pair < kTimedPairs; ++pair) {
    const bool base_first = sequence.base_first(pair, random);
    for (const bool is_base : {true, false}) {
      const bool second = is_base != base_first;
      const int place = sequence.apart ? pair + (is_base ? 0 : kTimedPairs) : 2 * pair + second;
      const double log_rate = 0.005 * gaussian(random) + by.drift * place / (2 * kTimedPairs) +
                              (second ? by.second : 0) + (is_base ? 0 : std::log1p(-slowdown));
      (is_base ? logs.base_starts : logs.starts).push_back(60. * place);
      (is_base ? logs.base : logs.other).push_back(log_rate);
    }
  }
  return logs;
}

struct OrderCounts {
  int by_values = 0, confounded = 0, regressed = 0;
};

OrderCounts count_verdicts(const LaunchSequence& sequence, const Disturbance& by, double slowdown,
                           bool paired, int repetitions) {
  Random random(kUnlikeSeed);
  const GateDesign design;
  OrderCounts counts;
  for (int i = 0; i < repetitions; ++i) {
    const TimedLogs logs = launched(sequence, by, slowdown, paired, random);
    const GateDecision decision = decide_once({{logs.base}, {logs.other}, paired}, design);
    const bool slow = decision.verdict == GateVerdict::regressed;
    const bool open = look_at_order(logs, std::log1p(-decision.slowdown_percent / 100),
                                    design.threshold, "base", "new")
                          .confounded;
    counts.by_values += slow;
    counts.confounded += open;
    counts.regressed += slow && !open;
  }
  return counts;
}

std::vector<LaunchSequence> launch_sequences() {
  return {{"one set, then the other", [](int, Random&) { return true; }, true},
          {"base first (ABAB)", [](int, Random&) { return true; }},
          {"drawn", [](int, Random& random) { return happens(random, 0.5); }},
          {"balanced (ABBA)", [](int pair, Random&) { return pair % 2 == 0; }}};
}

}  // namespace

void print_order(int repetitions) {
  fmt::print(
      "\n| order | second launch slower by | drift | judged as | A/A: regressed by the values "
      "alone "
      "| confounded | regressed | 5 % slower: confounded | regressed |\n| --- | --- | --- | --- | "
      "--- | --- | --- | --- | --- |\n");
  for (const LaunchSequence& sequence : launch_sequences())
    for (const auto& [second, drift] :
         {std::pair(0., 0.), std::pair(0.015, 0.), std::pair(0., 0.02), std::pair(0., 0.2)})
      for (const bool paired : {true, false}) {
        if (sequence.apart && (paired || second > 0)) continue;
        const Disturbance by{std::log1p(-second), std::log1p(-drift)};
        const OrderCounts none = count_verdicts(sequence, by, 0, paired, repetitions);
        const OrderCounts slow = count_verdicts(sequence, by, 0.05, paired, repetitions);
        fmt::print(
            "| {} | {:.1f} % | {:.0f} % | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n",
            sequence.name, 100 * second, 100 * drift, paired ? "pairs" : "samples",
            percent(none.by_values, repetitions), percent(none.confounded, repetitions),
            percent(none.regressed, repetitions), percent(slow.confounded, repetitions),
            percent(slow.regressed, repetitions));
        std::fflush(stdout);
      }
}

}  // namespace scalemark::gate

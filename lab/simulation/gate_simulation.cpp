// The program of the tables in docs/gate.md; see programs.hpp.
#include "lab/simulation/gate_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include "lab/simulation/programs.hpp"
#include "streams.hpp"

namespace scalemark::gate {
namespace {

constexpr std::uint64_t kSeed = 20210607;

void print_characteristics(int repetitions) {
  fmt::print(
      "| noise of a pair | true slowdown | regressed | pass | inconclusive | mean pairs | |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const PairNoise& noise : pair_noises())
    for (const double slowdown : {-0.02, 0., 0.01, 0.02, 0.05, 0.1}) {
      const Outcome o = simulate({}, noise, slowdown, repetitions, kSeed);
      fmt::print("| {} | {:.0f} % | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {} |\n", noise.name,
                 100 * slowdown, 100 * o.share(o.regressed), 100 * o.share(o.passed),
                 100 * o.share(o.inconclusive), o.pairs / o.gates,
                 slowdown <= 0      ? "false alarms: regressed"
                 : slowdown >= 0.02 ? "false passes: pass"
                                    : "between both limits");
      std::fflush(stdout);
    }
}

/// Other looks, and other shares of the level for each.
std::vector<std::pair<std::string, GateDesign>> designs() {
  GateDesign early, late;
  early.alarm = {{7, 0.0079}, {10, 0.0085}, {14, 0.0092}, {20, 0.01}};
  early.pass = {{7, 0.0313}, {10, 0.038}, {14, 0.044}, {20, 0.05}};
  late.alarm = {{8, 0}, {10, 0.002}, {14, 0.005}, {20, 0.01}};
  return {{"as built", {}}, {"first look at 7 pairs", early}, {"level spent late", late}};
}

void print_designs(int repetitions) {
  fmt::print(
      "\n| design | slowdown | regressed at noise 1 % | pairs | at 2.5 % | pairs |\n| --- | --- | "
      "--- | --- | --- | --- |\n");
  for (const auto& [name, design] : designs())
    for (const double slowdown : {0.02, 0.05}) {
      fmt::print("| {} | {:.0f} % |", name, 100 * slowdown);
      for (const PairNoise& noise : {normal("", 0.01), normal("", 0.025)}) {
        const Outcome o = simulate(design, noise, slowdown, repetitions, kSeed);
        fmt::print(" {:.1f} | {:.1f} |", 100 * o.share(o.regressed), o.pairs / o.gates);
      }
      fmt::print("\n");
      std::fflush(stdout);
    }
}

}  // namespace
}  // namespace scalemark::gate

int scalemark::simulation::gate_simulation(const std::vector<std::string>& arguments) {
  using namespace gate;
  const std::pair<std::string, std::function<void(int)>> tables[] = {
      {"characteristics", print_characteristics},
      {"designs", [](int repetitions) { print_designs((repetitions + 1) / 2); }},
      {"points", print_points},
      {"statistics", [](int repetitions) { print_statistics(5 * repetitions); }},
      {"drift", [](int repetitions) { print_drift(5 * repetitions); }},
      {"levels", [](int repetitions) { print_levels(10 * repetitions); }},
      {"power", [](int repetitions) { print_power(3 * repetitions); }},
      {"slow", [](int repetitions) { print_slow_modes(3 * repetitions); }},
      {"order", [](int repetitions) { print_order(5 * repetitions); }}};
  const int repetitions = arguments.empty() ? 300 : std::atoi(arguments[0].c_str());
  const auto chosen = [&](const auto& table) {
    return arguments.size() < 2 || arguments[1] == table.first;
  };
  if (repetitions < 1 || std::ranges::none_of(tables, chosen)) {
    say_progress(
        "usage: gate_simulation [REPETITIONS [TABLE]], a number above 0 and one of "
        "characteristics, "
        "designs, points, statistics, drift, levels, power, slow, order");
    return 2;
  }
  for (const auto& table : tables)
    if (chosen(table)) table.second(repetitions);
  return 0;
}

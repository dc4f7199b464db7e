// The program of the tables of docs/gate.md on histories; see programs.hpp.
#include "lab/simulation/history_simulation.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "lab/simulation/programs.hpp"
#include "streams.hpp"

namespace scalemark::history_rows {
namespace {

constexpr std::uint64_t kSeed = 20240229;
constexpr std::array<std::size_t, 4> kSizes{6, 10, 20, 40};

/// The deviation of a launch of coverage::launch_noises(), from many.
double deviation_of(const coverage::LaunchNoise& noise) {
  Random random(kSeed);
  std::vector<double> launches(100'000);
  for (double& launch : launches) launch = noise.draw(random);
  return standard_deviation(launches);
}

void print_header(const char* first) {
  fmt::print("| {} |", first);
  for (const std::size_t size : kSizes) fmt::print(" {} sets |", size);
  fmt::print("\n| --- | --- | --- | --- | --- |\n");
}

/// Those of docs/coverage.md, and a neighbour's bursts.
std::vector<coverage::LaunchNoise> launch_noises() {
  std::vector<coverage::LaunchNoise> noises = coverage::launch_noises();
  noises.push_back({"one in ten 30 % slower", 0, [](Random& random) {
                      const bool slow = std::uniform_real_distribution<double>()(random) < 0.1;
                      return 0.01 * std::normal_distribution<double>()(random) - (slow ? 0.36 : 0);
                    }});
  return noises;
}

/// `row_of`: of so many sets.
void print_row(const std::string& name, int rows, ChangeTest& test,
               const std::function<Row(std::size_t)>& row_of,
               const std::function<bool(const RowFindings&, std::size_t)>& counts) {
  fmt::print("| {} |", name);
  for (const std::size_t size : kSizes)
    fmt::print(" {:.1f} |",
               100 * share_of(row_of(size), rows, kSeed + size, test,
                              [&](const RowFindings& found) { return counts(found, size); }));
  fmt::print("\n");
  std::fflush(stdout);
}

void print_false_alarms(int rows, ChangeTest& test) {
  print_header("launches; sets beside them");
  for (const coverage::LaunchNoise& noise : launch_noises()) {
    const double deviation = deviation_of(noise);
    for (const double between : {0., 1., 3.})
      print_row(
          fmt::format("{}; {:g} x", noise.name, between), rows, test,
          [&](std::size_t sets) {
            return Row{sets, noise, deviation, between};
          },
          [](const RowFindings& found, std::size_t) { return says_anything(found); });
  }
}

void print_power(int rows, ChangeTest& test) {
  print_header("true change, noise of a launch; sets beside them");
  const auto print =
      [&](const std::string& name, double deviation, double between,
          const std::function<std::function<double(std::size_t)>(std::size_t)>& level,
          const std::function<bool(const RowFindings&, std::size_t)>& counts) {
        print_row(
            name, rows, test,
            [&](std::size_t sets) {
              return Row{sets, normal_launches(deviation), deviation, between, level(sets)};
            },
            counts);
      };
  for (const auto& [percent, deviation, between] : {std::array{50., 0.001, 0.},
                                                    {50., 0.001, 3.},
                                                    {10., 0.01, 1.},
                                                    {5., 0.01, 1.},
                                                    {2., 0.01, 1.},
                                                    {10., 0.02, 1.}}) {
    const double difference = std::log1p(-percent / 100);
    const std::string noise =
        fmt::format("{:g} % slower, {:g} %; {:g} x", percent, 100 * deviation, between);
    print(
        "from the middle on " + noise, deviation, between,
        [&](std::size_t sets) { return changed(sets / 2, sets, difference); },
        [](const RowFindings& found, std::size_t sets) {
          return says_only(found, ChangeKind::step, sets / 2, sets);
        });
    print(
        "dip of two sets " + noise, deviation, between,
        [&](std::size_t sets) { return changed(sets / 2 - 1, sets / 2 + 1, difference); },
        [](const RowFindings& found, std::size_t sets) {
          return says_only(found, ChangeKind::dip, sets / 2 - 1, sets / 2 + 1);
        });
  }
  for (const double percent : {2., 5.})
    print(
        fmt::format("drift of -{:g} % in all, 0.5 %; 1 x", percent), 0.005, 1,
        [&](std::size_t sets) {
          return [=](std::size_t set) {
            return std::log1p(-percent / 100) * static_cast<double>(set) /
                   static_cast<double>(sets - 1);
          };
        },
        [](const RowFindings& found, std::size_t) { return found.drift.has_value(); });
}

}  // namespace
}  // namespace scalemark::history_rows

namespace scalemark::simulation {

int history_simulation(const std::vector<std::string>& arguments) {
  const int rows = arguments.empty() ? 4000 : std::atoi(arguments.front().c_str());
  if (arguments.size() > 1 || rows < 1) {
    say_error("history_simulation takes the number of rows, 4000 without");
    return 2;
  }
  ChangeTest test;
  fmt::print("Percent of {} rows in which something is said, without a change:\n\n", rows);
  history_rows::print_false_alarms(rows, test);
  fmt::print(
      "\nPercent of {} rows in which the change is named, its sets are right and nothing "
      "else is said:\n\n",
      rows / 4);
  history_rows::print_power(std::max(1, rows / 4), test);
  return 0;
}

}  // namespace scalemark::simulation

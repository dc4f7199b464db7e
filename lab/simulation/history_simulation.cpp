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
          return says_step(found, sets / 2, sets);
        });
    print(
        "dip of two sets " + noise, deviation, between,
        [&](std::size_t sets) { return changed(sets / 2 - 1, sets / 2 + 1, difference); },
        [](const RowFindings& found, std::size_t sets) {
          return says_dip(found, sets / 2 - 1, sets / 2 + 1);
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

constexpr std::array<std::size_t, 3> kNewestSizes{10, 25, 60};

/// Of the newest set: "regressed (pass)" for each number of sets.
void print_newest_row(const std::string& name, int rows, ChangeTest& test, int points,
                      double newest, const std::function<Row(std::size_t)>& row_of) {
  fmt::print("| {} |", name);
  for (const std::size_t size : kNewestSizes) {
    const NewestShares shares =
        judge_newest(row_of(size), points, newest, rows, kSeed + size, test);
    fmt::print(" {:.1f} ({:.0f}) |", 100 * shares.regressed, 100 * shares.passed);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

void print_newest_header(const char* first) {
  fmt::print("| {} |", first);
  for (const std::size_t size : kNewestSizes) fmt::print(" {} sets |", size);
  fmt::print("\n| --- | --- | --- | --- |\n");
}

/// Rows without a change of the newest set: of one level, and with a step earlier in the row.
void print_newest_alarms(int rows, ChangeTest& test) {
  print_newest_header("launches; sets beside them; the row before");
  const double step = std::log(0.95);
  for (const coverage::LaunchNoise& noise : launch_noises()) {
    const double deviation = deviation_of(noise);
    for (const double between : {0., 1., 3.})
      print_newest_row(fmt::format("{}; {:g} x; one level", noise.name, between), rows, test, 1, 0,
                       [&](std::size_t sets) {
                         return Row{sets, noise, deviation, between};
                       });
  }
  const auto with_level = [&](const std::string& name, int points, const auto& level) {
    print_newest_row("normal, 2 %; 1 x; " + name, rows, test, points, 0, [&](std::size_t sets) {
      return Row{sets, normal_launches(0.02), 0.02, 1, level(sets)};
    });
  };
  with_level("four points, one level", 4, [&](std::size_t sets) { return changed(0, sets, 0); });
  with_level("5 % slower from the middle on", 1,
             [&](std::size_t sets) { return changed(sets / 2, sets, step); });
  with_level("5 % faster from the middle on", 1,
             [&](std::size_t sets) { return changed(0, sets / 2, step); });
  with_level("a dip of 5 % in two sets", 1,
             [&](std::size_t sets) { return changed(sets / 2, sets / 2 + 2, step); });
}

void print_newest_power(int rows, ChangeTest& test) {
  print_newest_header("newest set, noise of a launch; sets beside them");
  for (const auto& [percent, deviation, between] : {std::array{10., 0.02, 0.},
                                                    {5., 0.02, 0.},
                                                    {2., 0.02, 0.},
                                                    {10., 0.02, 1.},
                                                    {5., 0.02, 1.},
                                                    {50., 0.02, 3.}})
    for (const int points : {1, 4})
      print_newest_row(fmt::format("{:g} % slower at {}, {:g} %; {:g} x", percent,
                                   points == 1 ? "the one point" : "one of four points",
                                   100 * deviation, between),
                       rows, test, points, std::log1p(-percent / 100),
                       // Clang 14 captures no structured binding by itself.
                       [deviation = deviation, between = between](std::size_t sets) {
                         return Row{sets, normal_launches(deviation), deviation, between};
                       });
  print_newest_row(
      "5 % slower since three sets before it, 2 %; 1 x", rows, test, 1, 0, [&](std::size_t sets) {
        return Row{sets, normal_launches(0.02), 0.02, 1, changed(sets - 4, sets, std::log(0.95))};
      });
}

}  // namespace
}  // namespace scalemark::history_rows

namespace scalemark::simulation {

int history_simulation(const std::vector<std::string>& arguments) {
  const int rows = arguments.empty() ? 4000 : std::atoi(arguments.front().c_str());
  const bool newest_alone = arguments.size() == 2 && arguments[1] == "newest";
  if (arguments.size() > (newest_alone ? 2 : 1) || rows < 1) {
    say_error("history_simulation takes the number of rows, 4000 without, and 'newest' alone");
    return 2;
  }
  ChangeTest test;
  fmt::print("Percent of {} rows whose newest set is called regressed (pass), unchanged:\n\n",
             rows);
  history_rows::print_newest_alarms(rows, test);
  fmt::print("\nThe same of {} rows whose newest set is slower:\n\n", rows);
  history_rows::print_newest_power(rows, test);
  if (newest_alone) return 0;
  fmt::print("\nPercent of {} rows in which something is said, without a change:\n\n", rows);
  history_rows::print_false_alarms(rows, test);
  fmt::print(
      "\nPercent of {} rows in which the change is named, its sets are right and nothing "
      "else is said:\n\n",
      rows / 4);
  history_rows::print_power(std::max(1, rows / 4), test);
  return 0;
}

}  // namespace scalemark::simulation

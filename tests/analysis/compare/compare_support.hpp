// Hand-made launches for the tests of comparing.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/compare.hpp"

namespace scalemark::test {

/// A run of smallnet on `ranks` ranks at `rate` images/sec for 10 s.
inline MeasuredLaunch launch(double rate, int ranks = 1, const std::string& precision = "fp32") {
  MeasuredLaunch made;
  made.id = "00000000-0000-4000-8000-000000000000";
  made.revision = "abc";
  made.host = "n0";
  made.unit = "images/sec";
  made.ranks = ranks;
  made.repeats = {{10 * rate, 10}};
  made.keys = {{"kind", "run"},
               {"ranks", ranks},
               {"model", "smallnet"},
               {"seed", 1},
               {"precision", precision},
               {"batch_size", 4},
               {"hosts", 1},
               {"scaling", "weak"},
               {"device", "cpu"},
               {"transport", ranks == 1 ? "none" : "tcp"}};
  made.defaults = {"seed"};
  return made;
}

inline ResultSet result_set(const std::string& label, std::vector<MeasuredLaunch> launches) {
  return {label, label + ".json", std::move(launches), {}};
}

/// Launches of one rank at these rates.
inline ResultSet rates(const std::string& label, const std::vector<double>& all, int ranks = 1) {
  ResultSet set = result_set(label, {});
  for (const double rate : all) set.launches.push_back(launch(rate, ranks));
  return set;
}

/// The same as launches of one sweep, repeat after repeat.
inline ResultSet swept(ResultSet set) {
  std::int64_t repeat = 0;
  for (MeasuredLaunch& one : set.launches) {
    one.sweep = "/sweep";
    one.repeat = ++repeat;
  }
  return set;
}

}  // namespace scalemark::test

// Small records for the tests of the rules: the keys that they read, with numbers that trigger
// nothing.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "analysis/diagnosis/diagnose.hpp"
#include "analysis/diagnosis/rules.hpp"

namespace scalemark::diagnosis {

inline Json made_record(const std::string& kind, const std::string& id, const Json& keys) {
  Json record{{"kind", kind}, {"id", id}, {"status", "ok"}};
  record.update(keys);
  return record;
}

/// A rank that computes 95 ms of a step of 100 ms.
inline Json made_rank(int rank) {
  return {{"rank", rank},
          {"host", "n0"},
          {"step_seconds_mean", 0.1},
          {"wait_seconds_mean", 0.005},
          {"straggler", false}};
}

inline Json made_run(int ranks = 2, const std::string& id = "run") {
  Json list = Json::array();
  for (int i = 0; i < ranks; ++i) list.push_back(made_rank(i));
  return made_record("run", id,
                     {{"model", "resnet50"},
                      {"precision", "fp32"},
                      {"world_size", ranks},
                      {"batch_size_per_rank", 8},
                      {"throughput", {{"mean", 80.0 * ranks}}},
                      {"step_seconds", {{"mean", 0.1}}},
                      {"ranks", list},
                      {"phases", {{"fractions", {{"input", 0.0}, {"checkpoint", 0.0}}}}},
                      {"communication", {{"total_seconds", 0.03}, {"exposed_seconds", 0.004}}},
                      {"loss", {{"first", 7.0}, {"last", 6.0}, {"diverged", false}}},
                      {"windows", nullptr}});
}

inline Json with_straggler(Json run, int rank, double step_seconds, const std::string& host) {
  Json& slow = run["ranks"][static_cast<std::size_t>(rank)];
  slow["straggler"] = true;
  slow["step_seconds_mean"] = step_seconds;
  slow["host"] = host;
  return run;
}

/// A point of a weak curve of base 100, whose intervals are `half` of their value to each side.
inline Json made_point(int ranks, double throughput, double half = 0.01) {
  const auto around = [&](double value) {
    return Json::array({value * (1 - half), value * (1 + half)});
  };
  const double speedup = throughput / 100, efficiency = speedup / ranks;
  return {{"ranks", ranks},
          {"resources", ranks},
          {"throughput", throughput},
          {"ci95", around(throughput)},
          {"speedup", speedup},
          {"efficiency", efficiency},
          {"efficiency_ci95", around(efficiency)},
          {"baseline_throughput", nullptr},
          {"exposed_seconds", nullptr},
          {"exposed_ci95", nullptr},
          {"trend", nullptr},
          {"repeats", Json::array()}};
}

inline Json with_keys(Json record, const Json& keys) {
  record.update(keys);
  return record;
}

inline Json made_curve(const Json& points, const Json& keys = Json::object(),
                       const Json& settings = Json::object()) {
  Json values{{"model", "resnet50"},
              {"precision", "fp32"},
              {"wire_dtype", "fp32"},
              {"overlap", "backward"}};
  values.update(settings);
  Json config = Json::object();
  for (const auto& [key, value] : values.items())
    config[key] = {{"value", value}, {"origin", "default"}};
  Json record = made_record("scaling", "curve",
                            {{"unit", "images/sec"},
                             {"scaling", "weak"},
                             {"repeat_unit", "launch"},
                             {"points", points},
                             {"config", config}});
  record.update(keys);
  return record;
}

/// The findings of a curve whose last point was made of these runs.
inline Findings diagnose_with(Json curve, const std::vector<Json>& runs) {
  std::vector<RunEvidence> evidence;
  for (const Json& run : runs) {
    curve["points"].back()["repeats"].push_back({{"run", run["id"]}, {"baseline", false}});
    evidence.push_back(run_evidence(run));
  }
  return diagnose(curve, evidence);
}

/// The first finding of a rule. Whatever was found is of a rule that the table has.
inline std::optional<Finding> found(const Findings& findings, const std::string& rule) {
  std::optional<Finding> first;
  for (const Finding& finding : findings) {
    const auto named = [&](const Rule& one) { return one.name == finding.rule; };
    EXPECT_TRUE(std::ranges::any_of(all_rules(), named)) << finding.rule;
    if (finding.rule == rule && !first) first = finding;
  }
  return first;
}

inline std::optional<Finding> found(const Json& record, const std::string& rule) {
  return found(diagnose(record), rule);
}

}  // namespace scalemark::diagnosis

// Two or more result sets point by point: the records that are read, difference, interval,
// significance, what could have been found, and the record of it. Formulas and the design are in
// docs/measurements.md ("Two sets").
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/match_sets.hpp"
#include "analysis/compare/point_test.hpp"
#include "record/comparison.hpp"
#include "result/result_set.hpp"

namespace scalemark {

struct CompareQuestions {
  std::string metric = "throughput";  ///< of metric_table(), or of preflight
  std::vector<std::string> varied;    ///< keys that may differ between sets
  bool paired = false;                ///< launches with the same repeat were measured side by side
  bool by_host = false;     ///< the sets are those of hosts, whose difference is asked for
  TestQuestions test = {};  ///< alpha: of the family of all comparisons of a metric
};

/// The comparison by one metric.
struct MetricComparison {
  Metric metric;
  std::vector<Difference> differences;  ///< by set, then point; one where both have the metric
  std::vector<std::string> notes, warnings;
};

/// Compares sets by one metric. Throws ConfigError where no point of two sets has it, where the
/// sets' units differ, or where --paired sets have no repeat in common at a point.
MetricComparison compare_sets(const std::vector<ResultSet>& sets, const Matching& matching,
                              const CompareQuestions& questions);

/// What is compared where no metric was asked for: throughput, and efficiency where two sets have
/// it at two rank counts.
std::vector<std::string> default_metrics(const Matching& matching);

/// The record. The first metric is its own, others stand under `further`.
Comparison make_comparison(const std::vector<ResultSet>& sets, const Matching& matching,
                           const CompareQuestions& questions,
                           const std::vector<MetricComparison>& metrics);

// What records about result sets say of the sets themselves, and what the time at which sets were
// measured makes doubtful: one wholly before the other, or a trend within one.

record::ComparedSet compared_set(const ResultSet& set);
std::vector<record::ComparedSet> compared_sets(const std::vector<ResultSet>& sets);

/// What makes the launches of a set doubtful, as a baseline keeps it: a busy machine and losses
/// that diverged.
std::vector<std::string> launch_warnings(const ResultSet& set);

/// A sentence for each set in which losses diverged.
std::vector<std::string> divergence_warnings(const std::vector<ResultSet>& sets);

/// What differs between the sets and is no key of a point, and the notes of the matching.
std::vector<std::string> set_notes(const std::vector<ResultSet>& sets, const Matching& matching,
                                   const std::vector<std::string>& varied);

/// "the machines of a and b differ in cpu_model (a: ...; b: ...)", for each set but the first.
std::vector<std::string> machine_notes(const std::vector<ResultSet>& sets);

/// A sentence for each set but the first whose launches all started before, or all after, those of
/// the first (of sets with two starts or more), and for each set whose `metric` rises or falls with
/// time: Mann-Kendall at level `alpha`, adjusted for the number of sets (Holm), of the logarithms
/// less their mean at each point. Launches that do not tell their start, or have no such metric
/// (efficiency: throughput), are not looked at.
std::vector<std::string> time_warnings(const std::vector<ResultSet>& sets, const Matching& matching,
                                       const std::string& metric, double alpha);

/// Returns a launch for each host of a preflight record with status ok, with the numbers of
/// docs/preflight.md by "CHECK.STATISTIC" ("gemm.fp32.flops"); a statistic of ranks is the mean
/// over the host's ranks. The first host has what is of all hosts together, the collectives.
std::vector<MeasuredLaunch> preflight_launches(const Json& record,
                                               const std::filesystem::path& path);

/// Reads the kinds of records that may have one of the metrics; all others are left out.
RecordReader reader_of(const std::vector<std::string>& metrics);

}  // namespace scalemark

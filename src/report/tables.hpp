// What each subcommand prints of its record, for a person and as Markdown: says what the record
// says and computes nothing. `run` and `scale` have theirs in console.hpp, `sweep` in
// sweep_table.hpp.
#pragma once

#include <string>
#include <vector>

#include "analysis/run_plan.hpp"
#include "analysis/study/study_plan.hpp"
#include "json.hpp"
#include "record/comparison.hpp"
#include "record/instances.hpp"
#include "record/preflight.hpp"
#include "record/projection.hpp"
#include "record/study.hpp"
#include "result/records.hpp"

namespace scalemark {

/// Numbers of every rank, collectives, checks (those that did not pass first to be seen: with their
/// message), verdict. Ends with a newline.
std::string preflight_table(const PreflightResult& record);

/// Rank, host, cores, NUMA nodes, threads, GPU, binding asked for and achieved; then what is wrong.
std::string pinning_table(const PreflightResult& record);

/// What each host reaches, as its worst rank has it, and the fraction of the median of all hosts;
/// the worst host first, and no more than 30. Empty for one host.
std::string fleet_table(const PreflightResult& record);

/// A table a curve with a line a point, and what its columns mean.
std::string run_plan_table(const std::vector<CurvePlan>& plans);

/// A line a point, then a line for every instance of every point: rates and latencies alone and
/// with neighbours; what the columns mean; points that failed, and the warnings (`told`: see
/// warning_lines()). Ends with a newline.
std::string instances_table(const InstancesResult& result, std::size_t told = 0);

/// A table of points for each metric and each set against the first one, and below what the columns
/// are, points that only some sets have, notes and warnings. What came from records is shown().
/// Ends with a newline.
std::string comparison_table(const Comparison& comparison);

/// The same as Markdown.
std::string comparison_markdown(const Comparison& comparison);

/// A line a set, changes marked where they begin, and what they are. Ends with a newline.
std::string history_table(const HistoryResult& history);
/// The same as Markdown.
std::string history_markdown(const HistoryResult& history);

/// One sentence: "regressed: new is 5.2 % slower than base [3.1, 7.0] (8 pairs, p = 0.0039)".
std::string verdict_sentence(const Verdict& verdict);

/// The sentence, a table of points, notes and warnings. Ends with a newline.
std::string verdict_table(const Verdict& verdict);
/// The same as Markdown.
std::string verdict_markdown(const Verdict& verdict);

/// JUnit XML: a test case for all points together, which decides, and one a point. Inconclusive is
/// "skipped", no verdict an "error".
std::string verdict_junit(const Verdict& verdict);

/// "::error title=scalemark gate::...": error for a regression, warning where nothing was shown,
/// else notice (GitHub's workflow commands).
std::string verdict_annotation(const Verdict& verdict);

/// A table of predictions, what the model is made of, and below what was held against it. Ends with
/// a newline.
std::string projection_table(const ProjectionResult& projection);

/// The same as Markdown.
std::string projection_markdown(const ProjectionResult& projection);

/// Seconds as a person says them: "6.2 h", "31 days", "850 ms".
std::string spoken_seconds(double seconds);

/// Published beside measured, a line a figure, and below what differs, what was skipped and why.
/// What came from records is shown(). Ends with a newline.
std::string study_table(const StudyResult& study);
/// The same as Markdown.
std::string study_markdown(const StudyResult& study);

/// The figures of two sites beside each other: of each what is published, and what both measured.
std::string sites_table(const StudyResult& first, const StudyResult& second);

/// Of each study its title, and of each profile what it takes and shows.
std::string studies_table(const std::vector<Study>& studies);
/// The same, a study an element.
Json studies_json(const std::vector<Study>& studies);

}  // namespace scalemark

// Prints the record of each subcommand, for people and as Markdown. These functions say what the
// record says and compute nothing. Those for `run` and `scale` are in console.hpp, those for
// `sweep` in sweep_table.hpp.
#pragma once

#include <optional>
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

/// Returns the numbers of every rank, the collectives, the checks (those that did not pass stand
/// out by their message) and the verdict. Ends with a newline.
std::string preflight_table(const PreflightResult& record);

/// Returns a table of rank, host, cores, NUMA nodes, threads, GPU, and the binding asked for and
/// achieved, then what is wrong.
std::string pinning_table(const PreflightResult& record);

/// Returns what each host reaches, represented by its worst rank, and that value as a fraction of
/// the median of all hosts. The worst host comes first, and at most 30 are listed. The text is
/// empty for one host.
std::string fleet_table(const PreflightResult& record);

/// Returns a table per curve with a line per point, and what its columns mean.
std::string run_plan_table(const std::vector<CurvePlan>& plans);

/// Returns a line per point, then a line for every instance of every point with rates and latencies
/// alone and with neighbours; then what the columns mean, points that failed, and the warnings (for
/// `told` see warning_lines()). Ends with a newline.
std::string instances_table(const InstancesResult& result, std::size_t told = 0);

/// Returns a table of points for each metric and each set against the first one; below it, what the
/// columns are, points that only some sets have, notes and warnings. What came from records is
/// shown(). Ends with a newline.
std::string comparison_table(const Comparison& comparison);

/// Returns the tables of comparison_table() as Markdown.
std::string comparison_markdown(const Comparison& comparison);

/// Returns a line per set, with changes marked where they begin, and what the changes are. Ends
/// with a newline.
std::string history_table(const HistoryResult& history);
/// Returns the table of history_table() as Markdown.
std::string history_markdown(const HistoryResult& history);
/// Returns what history_table() says of the newest set, in the form of verdict_annotation().
std::string history_annotation(const HistoryResult& history);

/// Returns one sentence like "regressed: new is 5.2 % slower than base [3.1, 7.0] (8 pairs, p =
/// 0.0039)".
std::string verdict_sentence(const Verdict& verdict);

/// Returns the sentence, a table of points, notes and warnings. Ends with a newline.
std::string verdict_table(const Verdict& verdict);
/// Returns the text of verdict_table() as Markdown.
std::string verdict_markdown(const Verdict& verdict);

/// Returns JUnit XML with a test case for all points together, which decides, and one per point. An
/// inconclusive verdict is "skipped", and no verdict is an "error".
std::string verdict_junit(const Verdict& verdict);

/// Returns a GitHub workflow command like "::error title=scalemark gate::...": an error for a
/// regression or no verdict, a warning where nothing was shown, and a notice otherwise.
std::string annotation(std::optional<GateVerdict> verdict, const std::string& message);
std::string verdict_annotation(const Verdict& verdict);

/// Returns a table of predictions, what the model is made of, and below it how the model compares
/// with measured points. Ends with a newline.
std::string projection_table(const ProjectionResult& projection);

/// Returns the text of projection_table() as Markdown.
std::string projection_markdown(const ProjectionResult& projection);

/// Returns seconds in words that people use: "6.2 h", "31 days", "850 ms".
std::string spoken_seconds(double seconds);

/// Returns published beside measured values, a line per figure, and below it what differs, what was
/// skipped and why. What came from records is shown(). Ends with a newline.
std::string study_table(const StudyResult& study);
/// Returns the text of study_table() as Markdown.
std::string study_markdown(const StudyResult& study);

/// Returns the figures of two sites beside each other: what is published, and what each site
/// measured.
std::string sites_table(const StudyResult& first, const StudyResult& second);

/// Returns the title of each study, and what each of its profiles takes and shows.
std::string studies_table(const std::vector<Study>& studies);
/// Returns the studies as a list with an element per study.
Json studies_json(const std::vector<Study>& studies);

}  // namespace scalemark

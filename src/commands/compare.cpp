// Implements `scalemark compare A B ...`, which compares result sets with the first of them.
#include "analysis/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "commands/shared_flags.hpp"
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/text.hpp"
#include "report/tables.hpp"

namespace scalemark {
namespace {

struct CompareRequest {
  std::vector<std::string> sets;  ///< PATH or LABEL=PATH; the first is the base
  std::vector<std::string> by;    ///< keys that one path is split by
  std::vector<std::string> by_values;
  std::vector<std::string> metrics;  ///< empty: none was asked for
  CompareQuestions questions;
  RecordOutput output;
};

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const MetricRow& row : metric_table()) names.push_back(row.metric.name);
  return names;
}

void read_by(CompareRequest& request, const std::string& text) {
  const std::size_t equals = text.find('=');
  for (const std::string& word : split_list(text.substr(0, equals), "--by"))
    request.by.push_back(key_name(word));
  if (equals != text.npos) request.by_values = split_list(text.substr(equals + 1), "--by");
  if (request.sets.size() != 1) refuse_at("--by", "give one path, whose launches it divides");
}

/// Reads the metrics. Names of preflight's numbers are not keys, so they stay as they are.
void read_metrics(CompareRequest& request, const std::string& text) {
  for (const std::string& word : split_list(text, "--metric")) {
    const std::string name = word.find('.') == word.npos ? canonical_name(word) : word;
    check_metric("--metric", name);
    if (std::ranges::find(request.metrics, name) == request.metrics.end())
      request.metrics.push_back(name);
  }
}

/// Reads a percentage such as "2", "2%" or "2 %".
double read_percent(std::string text) {
  if (text.ends_with('%')) text.pop_back();
  while (text.ends_with(' ')) text.pop_back();
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc() || end != text.data() + text.size() || !(percent > 0) ||
      !(percent < 100))
    refuse_at("--equivalent", "give a percentage above 0 and below 100, such as 2 or 2%");
  return percent;
}

CompareRequest compare_request(const FlagReader& flags) {
  CompareRequest request;
  request.sets = flags.positionals("sets");
  request.questions.varied = flags.keys("varied");
  if (const auto by = flags.text("by")) read_by(request, *by);
  if (const auto metrics = flags.text("metric")) read_metrics(request, *metrics);
  if (const auto percent = flags.text("equivalent"))
    request.questions.test.equivalent_percent = read_percent(*percent);
  request.questions.paired = flags.has("paired");
  request.output = read_record_output(flags);
  if (request.by.empty() && request.sets.size() < 2)
    throw ConfigError(
        "scalemark compare takes two result sets or more: scalemark compare A B, or LABEL=PATH; "
        "one path with --by KEY");
  return request;
}

std::vector<ResultSet> read_sets(const CompareRequest& request) {
  const RecordReader reader =
      reader_of(request.metrics.empty() ? std::vector<std::string>{"throughput"} : request.metrics);
  std::vector<ResultSet> sets = read_labelled_sets(request.sets, reader);
  if (!request.by.empty()) sets = split_by(sets.front(), request.by, request.by_values);
  for (std::size_t i = 0; i < sets.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (sets[i].label == sets[k].label)
        throw ConfigError(fmt::format("{} and {} have the same name; give them names: a={} b={}",
                                      sets[k].path, sets[i].path, sets[k].path, sets[i].path));
  count_copies_once(sets);
  return sets;
}

/// Adds the keys by which sets are split, which differ between the sets, unless they do not belong
/// to what is measured.
CompareQuestions with_split_keys(CompareQuestions questions, const CompareRequest& request) {
  questions.by_host = std::ranges::find(request.by, "host") != request.by.end();
  for (const std::string& key : request.by)
    if (key != "revision" && key != "host" &&
        std::ranges::find(questions.varied, key) == questions.varied.end())
      questions.varied.push_back(key);
  return questions;
}

std::vector<MetricComparison> compare_all(const std::vector<ResultSet>& sets,
                                          const Matching& matching, CompareQuestions questions,
                                          const CompareRequest& request) {
  const bool asked = !request.metrics.empty();
  std::vector<MetricComparison> comparisons;
  for (const std::string& metric : asked ? request.metrics : default_metrics(matching)) {
    questions.metric = metric;
    comparisons.push_back(compare_sets(sets, matching, questions));
  }
  return comparisons;
}

}  // namespace

CommandHelp commands::compare_help(const CommandLine&) {
  std::vector<FlagHelp> flags{
      {.name = "varied",
       .value_name = "KEY,...",
       .text = "keys that differ on purpose, and are not matched",
       .often_used = true},
      {.name = "by",
       .value_name = "KEY[=VALUE,...]",
       .text = "one path instead of several: a set for each value; of several keys, KEY,KEY..., "
               "for each combination; the first is the base",
       .often_used = true},
      {.name = "metric",
       .value_name = "NAME,...",
       .text =
           "what is compared, a table each; a name from the list, or a number of preflight such "
           "as gemm.fp32.flops",
       .standard = "throughput, and efficiency where there are several rank counts",
       .words = metric_names(),
       .often_used = true},
      {.name = "equivalent",
       .value_name = "PERCENT",
       .text = "margin of the verdict 'equivalent'; by two one-sided tests",
       .often_used = true},
      {.name = "paired",
       .text = "launches of the same repeat were measured side by side",
       .often_used = true}};
  std::ranges::copy(record_flags(), std::back_inserter(flags));
  return {
      "compare",
      "Result sets against the first of them, point by point: percent difference, interval, p, "
      "and what could have been found.",
      {"A B ... [--flag]..."},
      {{"Comparison", flags}},
      {"scalemark compare results/bare results/vm", "scalemark compare old=a.json new=b.json",
       "scalemark compare results/threads --by num_intra_threads"},
      "A, B: a record, a folder of records or of a sweep; LABEL=PATH names it. Formulas: "
      "docs/measurements.md.\n"
      "Exit codes: 0 compared, 2 usage or nothing alike to compare, 6 a file that is unreadable, "
      "foreign or of an older schema.\n"};
}

/// Compares the sets. The exit code is 0 whatever the verdicts are.
ExitCode commands::compare(const CommandLine& line) {
  const CompareRequest request =
      compare_request(FlagReader(compare_help(line), "sets", line.arguments));
  const std::vector<ResultSet> sets = read_sets(request);
  const CompareQuestions questions = with_split_keys(request.questions, request);
  const Matching matching = match_sets(sets, questions.varied);
  const Comparison made =
      make_comparison(sets, matching, questions, compare_all(sets, matching, questions, request));
  put_out(made, request.output, comparison_table, comparison_markdown);
  return ExitCode::ok;
}

}  // namespace scalemark

// `scalemark compare A B ...`: result sets against the first of them.
#include "analysis/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "commands/record_output.hpp"
#include "commands/subcommands.hpp"
#include "config/arguments.hpp"
#include "config/flags.hpp"
#include "config/text.hpp"
#include "report/comparison_table.hpp"

namespace scalemark {
namespace {

struct CompareRequest {
  std::vector<std::string> sets;  ///< PATH or LABEL=PATH; the first is the base
  std::optional<std::string> by;  ///< key that one path is split by
  std::vector<std::string> by_values;
  CompareQuestions questions;
  RecordOutput output;
};

cxxopts::Options compare_options() {
  cxxopts::Options options("scalemark compare",
                           "Result sets against the first of them, point by point: percent "
                           "difference, interval, p, and what could have been found.\n");
  options.custom_help("A B ... [--flag]...");
  options.positional_help("");
  options.add_options()("varied", "keys that differ on purpose, and are not matched",
                        cxxopts::value<std::string>(), "KEY,...")(
      "by", "one path instead of several: a set for each value of a key, the first is the base",
      cxxopts::value<std::string>(), "KEY[=VALUE,...]")(
      "metric",
      "what is compared: throughput, latency_mean, latency_p50, latency_p99, joules_per_sample "
      "(default: throughput)",
      cxxopts::value<std::string>(),
      "NAME")("paired", "the k-th launches of all sets were measured side by side")(
      "json", "the record on stdout, nothing else")("markdown", "tables in Markdown")(
      "output", "where the record is written", cxxopts::value<std::string>(), "FILE")(
      "sets", "", cxxopts::value<std::vector<std::string>>())("h,help", "this text");
  options.parse_positional({"sets"});
  return options;
}

void read_by(CompareRequest& request, const std::string& text) {
  const std::size_t equals = text.find('=');
  request.by = key_name(text.substr(0, equals));
  if (equals != text.npos) request.by_values = split_list(text.substr(equals + 1), "--by");
  if (request.sets.size() != 1) refuse_at("--by", "give one path, whose launches it divides");
}

void check_metric(const std::string& metric) {
  std::vector<std::string> legal{"throughput"};
  legal.insert(legal.end(), std::begin(kOtherMetrics), std::end(kOtherMetrics));
  check_choice("--metric", metric, legal);
}

CompareRequest compare_request(const FlagReader& flags) {
  CompareRequest request;
  request.sets = flags.positionals("sets");
  request.questions.varied = flags.keys("varied");
  if (const auto by = flags.text("by")) read_by(request, *by);
  if (const auto metric = flags.text("metric")) request.questions.metric = canonical_name(*metric);
  check_metric(request.questions.metric);
  request.questions.paired = flags.has("paired");
  request.output = read_record_output(flags);
  if (!request.by && request.sets.size() < 2)
    throw ConfigError(
        "scalemark compare takes two result sets or more: scalemark compare A B, or LABEL=PATH; "
        "one path with --by KEY");
  return request;
}

std::vector<ResultSet> read_sets(const CompareRequest& request) {
  std::vector<ResultSet> sets;
  for (const std::string& argument : request.sets) sets.push_back(read_labelled_set(argument));
  if (request.by) sets = split_by(sets.front(), *request.by, request.by_values);
  for (std::size_t i = 0; i < sets.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (sets[i].label == sets[k].label)
        throw ConfigError(fmt::format("{} and {} have the same name; give them names: a={} b={}",
                                      sets[k].path, sets[i].path, sets[k].path, sets[i].path));
  return sets;
}

/// A key that sets are split by differs between them, unless it is none of what is measured.
CompareQuestions with_split_key(CompareQuestions questions, const CompareRequest& request) {
  const bool is_key = request.by && *request.by != "revision" && *request.by != "host";
  if (is_key && std::ranges::find(questions.varied, *request.by) == questions.varied.end())
    questions.varied.push_back(*request.by);
  return questions;
}

std::string compare_help() {
  return compare_options().help() +
         "\nA, B: a record, a folder of records or of a sweep; LABEL=PATH names it. Formulas: "
         "docs/measurements.md.\n"
         "Exit codes: 0 compared, 2 usage or nothing alike to compare, 6 a file that is "
         "unreadable, "
         "foreign or of an older schema.\n";
}

}  // namespace

/// The exit code is 0 whatever the verdicts are.
ExitCode commands::compare(const CommandLine& line) {
  if (wants_help(line.arguments)) return print_help(compare_help());
  const CompareRequest request =
      compare_request(FlagReader(parse_flags(compare_options(), canonical_flags(line.arguments))));
  const std::vector<ResultSet> sets = read_sets(request);
  const CompareQuestions questions = with_split_key(request.questions, request);
  const Matching matching = match_sets(sets, questions.varied);
  const Comparison comparison = compare_sets(sets, matching, questions);
  put_out(make_comparison_record(sets, matching, questions, comparison), request.output,
          comparison_table, comparison_markdown);
  return ExitCode::ok;
}

}  // namespace scalemark

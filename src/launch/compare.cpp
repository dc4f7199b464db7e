// See compare.hpp.
#include "launch/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "config/arguments.hpp"
#include "config/flags.hpp"
#include "config/text.hpp"
#include "config/values.hpp"
#include "report/comparison_table.hpp"

namespace scalemark {
namespace {

cxxopts::Options make_options() {
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
  if (request.sets.size() != 1) throw ConfigError("--by: give one path, whose launches it divides");
}

void check_metric(const std::string& metric) {
  std::vector<std::string> legal{"throughput"};
  legal.insert(legal.end(), std::begin(kOtherMetrics), std::end(kOtherMetrics));
  if (std::ranges::find(legal, metric) == legal.end())
    throw ConfigError(fmt::format("--metric: {} is none{}; legal: {}", quote(metric),
                                  did_you_mean(metric, legal), join(legal, ", ")));
}

CompareRequest request_from(const cxxopts::ParseResult& parsed) {
  CompareRequest request;
  if (parsed.count("sets")) request.sets = parsed["sets"].as<std::vector<std::string>>();
  const auto text = [&](const char* name) { return parsed[name].as<std::string>(); };
  if (parsed.count("varied")) request.questions.varied = key_list(text("varied"), "--varied");
  if (parsed.count("by")) read_by(request, text("by"));
  if (parsed.count("metric")) request.questions.metric = canonical_name(text("metric"));
  check_metric(request.questions.metric);
  request.questions.paired = parsed.count("paired") > 0;
  request.json = parsed.count("json") > 0;
  request.markdown = parsed.count("markdown") > 0;
  if (request.json && request.markdown)
    throw ConfigError("--json and --markdown: stdout has place for one of them; leave one out");
  if (parsed.count("output")) {
    request.output = text("output");
    check_text(*request.output, "--output");
  }
  if (!request.by && request.sets.size() < 2)
    throw ConfigError(
        "scalemark compare takes two result sets or more: scalemark compare A B, or LABEL=PATH; "
        "one path with --by KEY");
  for (const std::string& set : request.sets) check_text(set, "scalemark compare");
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

}  // namespace

std::string compare_help() {
  return make_options().help() +
         "\nA, B: a record, a folder of records or of a sweep; LABEL=PATH names it. Formulas: "
         "docs/measurements.md.\n"
         "Exit codes: 0 compared, 2 usage or nothing alike to compare, 6 a file that is "
         "unreadable, "
         "foreign or of an older schema.\n";
}

CompareRequest read_compare_request(std::span<const std::string> arguments) {
  return request_from(parse_flags(make_options(), canonical_flags(arguments)));
}

ExitCode run_compare(const CompareRequest& request) {
  std::unique_ptr<ResultFile> file;
  if (request.output) file = std::make_unique<ResultFile>(*request.output);
  const std::vector<ResultSet> sets = read_sets(request);
  const CompareQuestions questions = with_split_key(request.questions, request);
  const Matching matching = match_sets(sets, questions.varied);
  const Comparison comparison = compare_sets(sets, matching, questions);
  const Json record = make_comparison_record(sets, matching, questions, comparison);
  if (file) file->write(record);
  const std::string text = request.json       ? record_text(record)
                           : request.markdown ? comparison_markdown(record)
                                              : comparison_table(record);
  std::fputs(text.c_str(), stdout);
  return ExitCode::ok;
}

}  // namespace scalemark

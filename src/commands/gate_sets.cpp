// The part of `scalemark gate` that launches nothing; see gate.hpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "analysis/compare/history.hpp"
#include "analysis/compare/set_summary.hpp"
#include "commands/gate.hpp"
#include "report/history_table.hpp"
#include "report/shown_text.hpp"
#include "result/baseline.hpp"
#include "streams.hpp"
#include "talk.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// Refuses a machine of another kind unless that was declared; another system is worth a warning.
std::vector<std::string> check_machines(const std::vector<ResultSet>& sets, bool other_machine) {
  std::vector<std::string> warnings;
  for (std::size_t i = 1; i < sets.size(); ++i) {
    const auto hardware = machine_differences(sets[0], sets[i], kHardwareKeys);
    if (!hardware.empty() && !other_machine)
      throw ConfigError(fmt::format(
          "{} and {} come from unlike machines: {}; measure both on one, or judge all the same "
          "with --other_machine",
          sets[0].label, sets[i].label, fmt::join(hardware, "; ")));
    for (const auto& difference : hardware) warnings.push_back("unlike machines: " + difference);
    for (const auto& difference : machine_differences(sets[0], sets[i], kSoftwareKeys))
      warnings.push_back("unlike systems: " + difference);
  }
  return warnings;
}

ExitCode judge_sets(const GateRequest& request) {
  std::unique_ptr<ResultFile> file;
  if (request.output) file = std::make_unique<ResultFile>(*request.output);
  std::vector<ResultSet> sets = read_labelled_sets(request.sets);
  refuse_copies(sets);
  if (sets[0].label == sets[1].label) {
    sets[0].label = "base";
    sets[1].label = "new";
  }
  std::vector<std::string> warnings = check_machines(sets, request.other_machine);
  if (!request.paired)
    warnings.push_back(
        "the sets were measured apart: what the machine did in between counts as the build's; "
        "scalemark gate PLAN --base --new launches both side by side");
  const Matching matching = match_sets(sets, request.varied);
  const Judgement judgement =
      judge(sets, matching, request.paired ? GateMode::pairs : GateMode::samples, request.design,
            request.allowed_to_fail);
  const Json record =
      make_verdict_record({sets, request.varied, set_notes(sets, matching, request.varied),
                           std::move(warnings), std::nullopt, sets[0].baseline},
                          judgement);
  refuse_numberless(record);
  if (file) file->write(record);
  report_verdict(record, request.reports);
  return exit_code_of(judgement);
}

ExitCode save_baseline(const GateRequest& request) {
  const ResultSet set = read_labelled_set(request.sets.front());
  refuse_copies({set});
  Json previous;
  std::error_code error;
  if (fs::exists(request.baseline, error)) {
    if (!request.because)
      refuse_at("--save_baseline",
                request.baseline +
                    " is there already; a baseline is not moved silently: say why with --because "
                    "TEXT, which it keeps");
    previous = baseline_reference(read_record(request.baseline), request.baseline);
    previous["because"] = *request.because;
  }
  ResultFile file(request.baseline);
  const Json record = make_baseline_record(set, previous);
  file.write(record);
  show(fmt::format("{}: {} of {}, checksum {}\n", shown(file.path().string()),
                   counted(record.at("launches").size(), "launch"),
                   shown(record.at("revision").get<std::string>()),
                   record.at("checksum").get<std::string>()));
  return ExitCode::ok;
}

std::vector<ResultSet> sets_in_a_row(const GateRequest& request) {
  std::vector<ResultSet> sets = read_labelled_sets(request.sets);
  refuse_copies(sets);
  if (sets.size() > 1) return sets;
  const auto other_build = [&](const MeasuredLaunch& launch) {
    return launch.revision != sets.front().launches.front().revision;
  };
  if (std::ranges::none_of(sets.front().launches, other_build))
    refuse_at("--history", sets.front().path +
                               " holds launches of one build; give sets in the order of their "
                               "commits, or a folder of several builds");
  return split_by(sets.front(), {"revision"}, {});
}

ExitCode history(const GateRequest& request) {
  std::unique_ptr<ResultFile> file;
  if (request.output) file = std::make_unique<ResultFile>(*request.output);
  const std::vector<ResultSet> sets = sets_in_a_row(request);
  const auto warnings = check_machines(sets, request.other_machine);
  const Matching matching = match_sets(sets, request.varied);
  const double alpha = request.design.alarm.back().spent;
  const Json record = make_history_record(sets, find_history(sets, matching, alpha), alpha,
                                          set_notes(sets, matching, request.varied), warnings);
  refuse_numberless(record);
  if (file) file->write(record);
  if (request.reports.summary) append_text(*request.reports.summary, history_markdown(record));
  put(request.reports.json ? record_text(record) : history_table(record));
  return ExitCode::ok;
}

}  // namespace

ExitCode gate_sets(const GateRequest& request) {
  if (request.kind == GateRequest::Kind::save_baseline) return save_baseline(request);
  return request.kind == GateRequest::Kind::history ? history(request) : judge_sets(request);
}

}  // namespace scalemark

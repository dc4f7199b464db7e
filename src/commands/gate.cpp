// Implements `scalemark gate`, which answers whether the new build is slower than the base.
#include "analysis/gate/gate.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/compare.hpp"
#include "analysis/compare/history.hpp"
#include "analysis/gate/judge.hpp"
#include "commands/shared_flags.hpp"
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/json_text.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/sweep_settings.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "launch/gate_builds.hpp"
#include "launch/launch_builder.hpp"
#include "platform/posix_file.hpp"
#include "record/write.hpp"
#include "report/shown_text.hpp"
#include "report/sweep_table.hpp"
#include "report/tables.hpp"
#include "result/baseline.hpp"
#include "result/records.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

// The functions below write the verdict of a gate to the places beside its exit code, however the
// gate ends: an older pass must not stay where a CI server would read it.

struct GateReports {
  bool json = false;         ///< the record on stdout, nothing else
  bool annotations = false;  ///< a line on stderr in the form that GitHub shows beside a commit
  std::optional<std::string> junit, summary;  ///< paths: JUnit XML; Markdown, appended
  std::optional<std::string> record;          ///< of two sets: the file of the record
};

/// Refuses a pipe that nobody reads, which would hang this process. A pipe with a reader is as good
/// as a file.
void refuse_unread_pipe(const std::string& path) {
  const FileDescriptor probe{open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)};
  if (probe.fd < 0 && errno == ENXIO)
    throw ResultError(fmt::format(
        "{}: a pipe that nobody reads; choose a file, or start its reader first", path));
}

void write_text(const std::string& path, const std::string& text, std::ios::openmode mode) {
  refuse_unread_pipe(path);
  std::ofstream file(path, mode);
  file << text;
  file.close();
  if (!file) throw ResultError(fmt::format("{}: can't be written; choose another path", path));
}

void write_junit(const Verdict& verdict, const GateReports& reports) {
  if (reports.junit) write_text(*reports.junit, verdict_junit(verdict), std::ios::trunc);
}

bool is_older_verdict(const std::string& path) {
  try {
    const Json record = parse_json_text(read_input_file(path, kLargestRecord), kDeepestRecord);
    return record.is_object() && record.value("kind", Json()) == "verdict";
  } catch (const std::runtime_error&) {
    return false;  // nothing there, or nothing of ours
  }
}

/// Appends a text to a file. Throws ResultError where that fails.
void append_text(const std::string& path, const std::string& text) {
  write_text(path, text, std::ios::app);
}

/// Everywhere but stdout.
void write_reports(const Verdict& verdict, const GateReports& reports) {
  if (reports.annotations) std::fputs(verdict_annotation(verdict).c_str(), stderr);
  write_junit(verdict, reports);
  if (reports.summary) append_text(*reports.summary, verdict_markdown(verdict));
}

void replace_older_verdict(const Verdict& verdict, const GateReports& reports) {
  if (reports.record && is_older_verdict(*reports.record))
    ResultFile(*reports.record).write(verdict_json(verdict));
}

/// Returns the reports that a command line requests, read before its words are known to be right,
/// or nullopt where no verdict is requested: a dry run, a baseline, a history.
std::optional<GateReports> wanted_reports(const std::vector<GivenWord>& words) {
  GateReports reports;
  bool builds = false;
  for (const auto& [name, value, written] : words) {
    if (name == "dry_run" || name == "save_baseline" || name == "history") return std::nullopt;
    if (name == "json") reports.json = true;
    if (name == "annotations") reports.annotations = true;
    if (name == "junit") reports.junit = value;
    if (name == "summary") reports.summary = value;
    if (name == "output") reports.record = value;
    builds = builds || name == "base" || name == "new" || name == "new_set";
  }
  if (builds) reports.record.reset();
  return reports;
}

/// Writes that there is no verdict yet to the JUnit file, and over a verdict that an earlier gate
/// left at the record's path. Throws ResultError where they cannot be written.
void begin_reports(const GateReports& reports) {
  const Verdict verdict = make_failed_verdict({Status::interrupted, "the gate has not ended"});
  write_junit(verdict, reports);
  replace_older_verdict(verdict, reports);
}

/// Prints and writes a verdict as asked for; the record is written elsewhere.
void report_verdict(const Verdict& verdict, const GateReports& reports) {
  write_reports(verdict, reports);
  if (reports.json)
    print_data(record_text(verdict_json(verdict)));
  else
    print_view(verdict_table(verdict));  // the exit code is the verdict
}

/// Writes that there is no verdict, and why. The error itself is printed elsewhere.
void report_no_verdict(const std::exception& error, const GateReports& reports) {
  const Verdict verdict = make_failed_verdict({Status::failed, error.what()});
  write_reports(verdict, reports);
  if (reports.record) ResultFile(*reports.record).write(verdict_json(verdict));
}

// The types below hold what `scalemark gate` was asked for: two result sets, two builds that it
// launches side by side, a baseline, or many sets in a row.

struct GateRequest {
  enum class Kind { sets, builds, save_baseline, history } kind = Kind::sets;
  std::vector<std::string> sets;  ///< PATH or LABEL=PATH: base and new; one to save; many in a row
  GateDesign design;
  GateReports reports;
  std::optional<std::string> output;  ///< the file of the record

  std::vector<std::string> varied;  ///< keys that differ on purpose
  bool paired = false, other_machine = false;
  std::size_t allowed_to_fail = 0;  ///< launches of either set that need not be ok

  GatedBuilds builds;
  bool dry_run = false, bisect = false;

  // Of a baseline.
  std::string baseline;                ///< the file
  std::optional<std::string> because;  ///< why it replaces the one that is there
};

namespace fs = std::filesystem;

/// Refuses a machine of another kind unless that was declared. Another system causes a warning.
std::vector<std::string> check_machines(const ResultSet& base, const ResultSet& set,
                                        bool other_machine) {
  std::vector<std::string> warnings;
  const auto hardware = machine_differences(base, set, kHardwareKeys);
  if (!hardware.empty() && !other_machine)
    throw ConfigError(fmt::format(
        "{} and {} come from unlike machines: {}; measure both on one, or judge all the same "
        "with --other_machine",
        base.label, set.label, fmt::join(hardware, "; ")));
  for (const auto& difference : hardware) warnings.push_back("unlike machines: " + difference);
  for (const auto& difference : machine_differences(base, set, kSoftwareKeys))
    warnings.push_back("unlike systems: " + difference);
  return warnings;
}

/// The level at which compare, too, names a trend.
constexpr double kTrendAlpha = 0.05;

ExitCode judge_sets(const GateRequest& request) {
  std::unique_ptr<ResultFile> file;
  if (request.output) file = std::make_unique<ResultFile>(*request.output);
  std::vector<ResultSet> sets = read_labelled_sets(request.sets);
  count_copies_once(sets);
  if (sets[0].label == sets[1].label) {
    sets[0].label = "base";
    sets[1].label = "new";
  }
  std::vector<std::string> warnings = check_machines(sets[0], sets[1], request.other_machine);
  const Matching matching = match_sets(sets, request.varied);
  std::ranges::move(set_warnings(sets), std::back_inserter(warnings));
  std::ranges::move(time_warnings(sets, matching, "throughput", kTrendAlpha),
                    std::back_inserter(warnings));
  const Judgement judgement =
      judge(sets, matching, request.paired ? GateMode::pairs : GateMode::samples, request.design,
            request.allowed_to_fail);
  const Verdict verdict =
      make_verdict({sets, matching, request.varied, set_notes(sets, matching, request.varied),
                    std::move(warnings), std::nullopt, sets[0].baseline},
                   judgement);
  const Json record = verdict_json(verdict);
  refuse_numberless(record);
  if (file) file->write(record);
  report_verdict(verdict, request.reports);
  return exit_code_of(judgement);
}

ExitCode save_baseline(const GateRequest& request) {
  std::vector<ResultSet> sets{read_labelled_set(request.sets.front())};
  count_copies_once(sets);
  const ResultSet& set = sets.front();
  for (const std::string& warning : set_warnings(sets)) warn(warning);
  std::optional<record::PreviousBaseline> previous;
  std::error_code error;
  if (fs::exists(request.baseline, error)) {
    if (!request.because)
      refuse_at("--save_baseline",
                request.baseline +
                    " is there already; a baseline is not moved silently: say why with --because "
                    "TEXT, which it keeps");
    previous = record::PreviousBaseline{
        baseline_reference(read_record(request.baseline), request.baseline), *request.because};
  }
  ResultFile file(request.baseline);
  const std::vector<std::string> kept = launch_warnings(set);
  const Json record = make_baseline_record(set, previous, kept);
  file.write(record);
  print_view(fmt::format("{}: {} of {}, checksum {}\n", shown(file.path().string()),
                         counted(set.launches.size(), "launch"),
                         shown(set.launches.front().revision),
                         baseline_reference(record, request.baseline).checksum));
  for (const std::string& warning : kept) warn(shown(warning));
  return ExitCode::ok;
}

/// How many sets a warning names.
constexpr std::size_t kMostNamed = 6;

/// Names the sets that stand in a row where their launches began.
void name_untold(const std::vector<ResultSet>& parts, std::vector<std::string>& warnings) {
  std::vector<std::string> untold;
  for (const ResultSet& part : parts)
    if (part.launches.front().committed_at.empty()) untold.push_back(part.label);
  if (untold.empty()) return;
  if (untold.size() > kMostNamed)
    untold[kMostNamed - 1] = fmt::format("{} more", untold.size() - kMostNamed + 1);
  untold.resize(std::min(untold.size(), kMostNamed));
  warnings.push_back(fmt::format(
      "without the time of their commits, these stand where their launches began; give sets in "
      "their order if that is wrong: {}",
      fmt::join(untold, ", ")));
}

/// Whether a build is newer than a set: by time of commit where both tell it, else of measurement.
bool is_newer(const FailedLaunches& build, const ResultSet& set) {
  const std::string& committed = set.launches.front().committed_at;
  if (!build.committed_at.empty() && !committed.empty()) return build.committed_at > committed;
  return build.started_at >
         std::ranges::max(set.launches, {}, &MeasuredLaunch::started_at).started_at;
}

/// Names builds of which no launch ended well: none of them is in the row. RunError where one of
/// them is the newest, of which there is nothing to judge.
void name_all_failed(const ResultSet& whole, const std::vector<ResultSet>& parts,
                     std::vector<std::string>& warnings) {
  for (const auto& [revision, failed] : whole.failed_of) {
    const auto revision_of = [](const ResultSet& part) { return part.launches.front().revision; };
    if (std::ranges::find(parts, revision, revision_of) != parts.end()) continue;
    const std::string text =
        fmt::format("no launch of revision={} ended well ({}: {})", revision,
                    counted(failed.count, "launch"), fmt::join(failed.statuses, ", "));
    if (is_newer(failed, parts.back()))
      throw RunError(text + ": there is nothing to judge of the newest build");
    warnings.push_back(text + ": it is not in the row");
  }
}

/// Sets in the order of their commits; in `warnings`, what is told of that order.
std::vector<ResultSet> sets_in_a_row(const GateRequest& request,
                                     std::vector<std::string>& warnings) {
  std::vector<ResultSet> sets = read_labelled_sets(request.sets);
  if (sets.size() > 1) return sets;
  const auto other_build = [&](const MeasuredLaunch& launch) {
    return launch.revision != sets.front().launches.front().revision;
  };
  if (std::ranges::none_of(sets.front().launches, other_build))
    refuse_at("--history", sets.front().path +
                               " holds launches of one build; give sets in the order of their "
                               "commits, or a folder of several builds");
  std::vector<ResultSet> parts = split_by(sets.front(), {"revision"}, {});
  name_untold(parts, warnings);
  name_all_failed(sets.front(), parts, warnings);
  return parts;
}

/// Refuses a row that goes on on a machine of another kind unless that was declared. What changes
/// otherwise is named where it changes.
std::vector<std::string> check_row_of_machines(const std::vector<ResultSet>& sets,
                                               bool other_machine) {
  std::vector<std::string> warnings;
  for (std::size_t i = 1; i < sets.size(); ++i)
    for (const std::string& warning : check_machines(sets[i - 1], sets[i], other_machine))
      warnings.push_back(fmt::format("at {}: {}", sets[i].label, warning));
  if (warnings.size() <= kMostNamed) return warnings;
  const std::size_t more = warnings.size() - kMostNamed + 1;
  warnings.resize(kMostNamed - 1);
  warnings.push_back(fmt::format("the machine or its system changes {} times more", more));
  return warnings;
}

HistoryRules rules_of(const GateRequest& request) {
  const GateDesign& design = request.design;
  return {design.alarm.back().spent, design.pass.back().spent, design.threshold,
          design.excluded,           design.excluded_point,    design.power,
          request.allowed_to_fail};
}

ExitCode exit_code_of(const record::NewestSet& newest) {
  Judgement judgement;
  judgement.decision.verdict = newest.verdict;
  return exit_code_of(judgement);
}

ExitCode history(const GateRequest& request) {
  std::unique_ptr<ResultFile> file;
  if (request.output) file = std::make_unique<ResultFile>(*request.output);
  std::vector<std::string> warnings;
  std::vector<ResultSet> sets = sets_in_a_row(request, warnings);
  count_copies_once(sets);
  std::ranges::move(check_row_of_machines(sets, request.other_machine),
                    std::back_inserter(warnings));
  std::ranges::move(set_warnings(sets), std::back_inserter(warnings));
  const Matching matching = match_sets(sets, request.varied);
  const HistoryRules rules = rules_of(request);
  ChangeTest test;
  const HistoryResult found =
      make_history(sets, matching, find_history(sets, matching, rules, test), rules.alpha,
                   set_notes(sets, matching, request.varied), warnings);
  const Json record = record_json(found);
  refuse_numberless(record);
  if (file) file->write(record);
  if (request.reports.annotations) std::fputs(history_annotation(found).c_str(), stderr);
  if (request.reports.summary) append_text(*request.reports.summary, history_markdown(found));
  print_data(request.reports.json ? record_text(record) : history_table(found));
  return exit_code_of(*found.newest);
}

/// Judges two sets, or writes a baseline, or looks for changes in a row of sets. The exit codes are
/// 0 pass, 1 regressed, 3 inconclusive; of a history they are those of its newest set, and a
/// baseline ends with 0.
ExitCode gate_sets(const GateRequest& request) {
  if (request.kind == GateRequest::Kind::save_baseline) return save_baseline(request);
  return request.kind == GateRequest::Kind::history ? history(request) : judge_sets(request);
}

constexpr std::int64_t kStandardPairs = 20;
const std::vector<std::string> kAlternates{"auto", "steps", "launches"};

FlagGroup verdict_flags() {
  return {
      "Verdict",
      {{.name = "alpha",
        .value_name = "P",
        .text = "false alarms, at most this share",
        .standard = "0.01"},
       {.name = "threshold",
        .value_name = "X",
        .text = "least slowdown that is a regression, percent",
        .standard = "1",
        .often_used = true},
       {.name = "delta",
        .value_name = "X",
        .text = "slowdown that a pass excludes, percent",
        .standard = "2",
        .often_used = true},
       {.name = "point_delta",
        .value_name = "X",
        .text = "slowdown of any one point that a pass excludes, percent",
        .standard = "10"},
       {.name = "output",
        .value_name = "PATH",
        .text = "the record's file; of builds the folder of all that is measured",
        .often_used = true},
       {.name = "json", .text = "the record on stdout, nothing else"},
       {.name = "junit",
        .value_name = "FILE",
        .text = "JUnit XML for a CI server",
        .often_used = true},
       {.name = "summary", .value_name = "FILE", .text = "Markdown, appended to the file"},
       {.name = "annotations", .text = "on stderr, the line that GitHub shows beside a commit"}}};
}

FlagGroup build_flags() {
  return {
      "Two builds",
      {{.name = "base",
        .value_name = "BUILD",
        .text = "folder or program of a build, or a commit",
        .often_used = true},
       {.name = "new",
        .value_name = "BUILD",
        .text = "the same of the build in question",
        .often_used = true},
       {.name = "new_set",
        .value_name = "KEY=VALUE",
        .text = "the new build runs with this setting; default of --new then: the base's build",
        .repeated = true},
       {.name = "pairs",
        .value_name = "N",
        .text = "most pairs of launches; the verdict may come after 8, 10 or 14",
        .standard = "20",
        .often_used = true},
       {.name = "max_seconds", .value_name = "S", .text = "no pair begins that would end later"},
       {.name = "bisect", .text = "of two commits: name the one between that is slower"},
       {.name = "seed", .value_name = "N", .text = "of the order", .standard = "the plan's"},
       launcher_flag("the plan's"),
       hostfile_flag("the plan's"),
       {.name = "alternate",
        .value_name = "NAME",
        .text = "steps: both launches of a pair live at once and are interleaved; launches: one "
                "after the other",
        .standard = "auto: steps, where the ranks share a host",
        .words = kAlternates},
       {.name = "dry_run",
        .text = "print the command of every launch in its order, start nothing"}}};
}

FlagGroup set_flags() {
  return {
      "Two sets",
      {{.name = "paired", .text = "the k-th launches of both were measured side by side"},
       {.name = "varied", .value_name = "KEY,...", .text = "keys that differ on purpose"},
       {.name = "allow_failed",
        .value_name = "N",
        .text = "launches of either set or build that may have failed, also if they were repeated",
        .standard = "0"},
       {.name = "other_machine", .text = "judge although the sets come from unlike machines"}}};
}

FlagGroup row_flags() {
  return {"Baseline and history",
          {{.name = "save_baseline",
            .value_name = "FILE",
            .text = "keep the launches of SET in a file, a BASE for later",
            .often_used = true},
           {.name = "because",
            .value_name = "TEXT",
            .text = "replace the baseline that is there; the reason is kept"},
           {.name = "history",
            .text = "is the newest of many sets slower; where they changed",
            .often_used = true}}};
}

/// The flags that belong to one way of calling the gate, by the flag or word that chooses it.
const std::vector<std::string> kOfBuilds{"base",
                                         "new",
                                         "pairs",
                                         "max_seconds",
                                         "bisect",
                                         "seed",
                                         "launcher",
                                         "hostfile",
                                         "dry_run",
                                         "alternate",
                                         "container",
                                         "container_runtime",
                                         "container_program"};
const std::vector<std::string> kOfSets{"paired", "varied", "other_machine"};

class Reader {
 public:
  explicit Reader(const FlagReader& flags) : flags_(flags) {}

  GateRequest read() {
    request_.sets = flags_.positionals("sets");
    read_reports();
    if (flags_.has("save_baseline"))
      read_baseline();
    else if (flags_.has("history"))
      read_history();
    else if (flags_.has("base") || flags_.has("new"))
      read_builds();
    else
      read_sets();
    return request_;
  }

 private:
  void refuse(const std::vector<std::string>& names, const char* why) const {
    for (const std::string& name : names)
      if (flags_.has(name)) refuse_at("--" + name, why);
  }

  void read_reports() {
    request_.reports = {flags_.has("json"), flags_.has("annotations"), flags_.text("junit"),
                        flags_.text("summary"), std::nullopt};
    request_.output = flags_.text("output");
  }

  void read_design(std::int64_t wanted) {
    const auto pairs = static_cast<std::size_t>(wanted);
    const double alpha = flags_.number("alpha", 1e-6, 0.5).value_or(0.01);
    if (pairs < least_pairs(alpha))
      refuse_at("--pairs", fmt::format("{} can't show a regression at a level of {}; at "
                                       "least {} can",
                                       counted(pairs, "pair"), alpha, least_pairs(alpha)));
    request_.design = gate_design(pairs, alpha);
    request_.design.threshold = flags_.number("threshold", 0, 50).value_or(1) / 100;
    request_.design.excluded = flags_.number("delta", 0.01, 50).value_or(2) / 100;
    request_.design.excluded_point = flags_.number("point_delta", 0.01, 90).value_or(10) / 100;
    if (request_.design.threshold > request_.design.excluded)
      refuse_at("--delta",
                "must be at least --threshold, or a pass could hide what is called a regression");
  }

  void read_sets() {
    refuse(kOfBuilds, "belongs to two builds: give --base BUILD and --new BUILD");
    refuse({"because"}, "belongs to --save_baseline");
    if (request_.sets.size() != 2)
      throw ConfigError(
          "scalemark gate takes two result sets, base and new: scalemark gate BASE NEW; or a plan "
          "and two builds: scalemark gate PLAN.json --base BUILD --new BUILD --output DIR");
    read_design(kStandardPairs);
    request_.paired = flags_.has("paired");
    request_.other_machine = flags_.has("other_machine");
    request_.varied = flags_.keys("varied");
    request_.allowed_to_fail = allowed_to_fail();
  }

  std::size_t allowed_to_fail() const {
    return static_cast<std::size_t>(flags_.whole("allow_failed", 0, 1'000'000).value_or(0));
  }

  void read_builds() {
    refuse(kOfSets, "belongs to two result sets, not to builds");
    refuse({"because"}, "belongs to --save_baseline");
    request_.kind = GateRequest::Kind::builds;
    if (!flags_.has("base") || !(flags_.has("new") || flags_.has("new_set")))
      throw ConfigError(
          "scalemark gate: give both builds, --base BUILD --new BUILD, or what the same build is "
          "to "
          "do otherwise, --base BUILD --new_set KEY=VALUE");
    if (request_.sets.size() != 1)
      throw ConfigError(
          "scalemark gate takes one plan with two builds: scalemark gate PLAN.json --base BUILD "
          "--new BUILD --output DIR");
    request_.dry_run = flags_.has("dry_run");
    GatedBuilds& builds = request_.builds;
    builds.allowed_to_fail = allowed_to_fail();
    builds.alternate = alternate();
    if (!request_.output && !request_.dry_run)
      throw ConfigError(
          "scalemark gate: --output DIR is missing: the folder of all that is measured");
    builds.folder = request_.output.value_or("gate");
    builds.base = *flags_.text("base");
    builds.fresh = flags_.text("new").value_or(builds.base);
    request_.bisect = flags_.has("bisect");
    if (request_.bisect)
      refuse({"new_set"}, "is no commit between --base and --new: leave out --bisect");
    if (!flags_.has("new_set")) refuse_same_commit(builds.base, builds.fresh);
    const std::string& path = request_.sets.front();
    const Json plan = read_json_object(path, "plan");
    builds.plan = parse_sweep_plan(plan, path, environment_lines(), cores_per_host());
    for (const std::string& warning : builds.plan.warnings) warn(warning);
    refuse_commands(builds.plan, path);
    read_launch(builds.plan);
    builds.new_plan = flags_.has("new_set") ? plan_with_settings(plan) : builds.plan;
    read_launch(builds.new_plan);
    read_design(flags_.whole("pairs", 1, kMostSequentialPairs).value_or(kStandardPairs));
    builds.design = request_.design;
    builds.max_seconds = flags_.number("max_seconds", 1, 1e7);
  }

  Alternate alternate() const {
    const std::string word = flags_.text("alternate").value_or("auto");
    check_choice("--alternate", word, kAlternates);
    return word == "auto"    ? Alternate::automatic
           : word == "steps" ? Alternate::steps
                             : Alternate::launches;
  }

  /// Returns the plan with the settings of --new_set at every point.
  SweepPlan plan_with_settings(Json plan) {
    for (const std::string& setting : flags_.texts("new_set")) {
      const std::size_t equals = setting.find('=');
      const std::string name = key_name(setting.substr(0, equals));
      const std::string place = "--new_set " + name;
      if (equals == setting.npos || is_launch_setting(name))
        refuse_at("--new_set", fmt::format("{} is no KEY=VALUE of the command", quote(setting)));
      for (const SweepPoint& point : request_.builds.plan.points)
        if (point.settings.contains(name))
          refuse_at(place, "the plan's points differ in it already");
      const std::string value = setting.substr(equals + 1);
      const std::string written = canonical_name(setting.substr(0, equals));
      plan["settings"][name] =
          find_written_key(written) ? read_written(written, value, place).value : Json(value);
      check_setting({request_.builds.plan.command, cores_per_host()}, name, plan["settings"][name],
                    place);
      request_.builds.varied.push_back(name);
    }
    return parse_sweep_plan(plan, request_.sets.front() + " with --new_set", environment_lines(),
                            cores_per_host());
  }

  void read_launch(SweepPlan& plan) const {
    plan.seed = flags_.whole("seed", 0, std::int64_t{1} << 52).value_or(plan.seed);
    apply_launch_flags(plan, flags_);
  }

  void read_baseline() {
    refuse(kOfBuilds, "belongs to two builds, not to --save_baseline");
    refuse(kOfSets, "belongs to two result sets, not to --save_baseline");
    refuse({"history", "output", "junit", "summary", "annotations", "json", "allow_failed"},
           "--save_baseline writes the baseline and judges nothing");
    request_.kind = GateRequest::Kind::save_baseline;
    if (request_.sets.size() != 1)
      throw ConfigError("scalemark gate --save_baseline FILE takes one result set");
    request_.baseline = *flags_.text("save_baseline");
    request_.because = flags_.text("because");
  }

  void read_history() {
    refuse(kOfBuilds, "belongs to two builds, not to --history");
    refuse({"paired", "because", "junit"}, "does not go with --history");
    request_.kind = GateRequest::Kind::history;
    if (request_.sets.empty())
      throw ConfigError(
          "scalemark gate --history takes sets in the order of their commits, or one folder whose "
          "launches are divided by their build");
    read_design(kStandardPairs);
    request_.other_machine = flags_.has("other_machine");
    request_.varied = flags_.keys("varied");
    request_.allowed_to_fail = allowed_to_fail();
  }

  const FlagReader& flags_;
  GateRequest request_;
};

ExitCode gate_two_builds(const GateRequest& request) {
  SweepProgress progress;
  return (request.bisect ? bisect_builds : gate_builds)(
      request.builds, progress,
      [&](const Verdict& verdict) { report_verdict(verdict, request.reports); });
}

ExitCode gate_as_asked(const CommandLine& line) {
  refuse_ranks("scalemark gate launches its ranks itself");
  const FlagReader flags(commands::gate_help(line), "sets", line.arguments);
  const GateRequest request = Reader(flags).read();
  if (request.kind != GateRequest::Kind::builds) return gate_sets(request);
  if (!request.dry_run) return gate_two_builds(request);
  (request.bisect ? print_bisection : print_gate)(request.builds);
  return ExitCode::ok;
}

}  // namespace

CommandHelp commands::gate_help(const CommandLine&) {
  return {
      "gate",
      "Is the new build slower than the base? Exit code 1 where it is, 0 where it is not, 3 where "
      "that can't be told.",
      {"BASE NEW [--flag]...", "PLAN.json --base BUILD --new BUILD --output DIR [--flag]...",
       "--save_baseline FILE SET [--because TEXT]", "--history SET SET SET ..."},
      {verdict_flags(), build_flags(), container_flags(), set_flags(), row_flags()},
      {"scalemark gate plan.json --base HEAD~1 --new HEAD --output results/gate",
       "scalemark gate results/before results/after --junit gate.xml",
       "scalemark gate --save_baseline base.json results/before"},
      "BASE, NEW, SET: a record, a folder of records or of a sweep, or a baseline; LABEL=PATH "
      "names "
      "it. The rule and its error rates: docs/gate.md; in CI: docs/ci/.\n"
      "Exit codes: 0 pass, 1 regressed, 3 inconclusive; 2 usage or unlike sets, 4 to 7 a launch "
      "failed, 6 a file that is unreadable, foreign or changed.\n"};
}

/// Runs the gate. The exit code is 4 to 7 where a launch failed.
ExitCode commands::gate(const CommandLine& line) {
  const auto reports = wanted_reports(read_words(line.arguments, takes_value_in(gate_help(line))));
  if (reports) begin_reports(*reports);
  try {
    return gate_as_asked(line);
  } catch (const StdoutError&) {
    throw;  // after everything else was reported
  } catch (const std::exception& error) {
    if (reports) report_no_verdict(error, *reports);
    throw;
  }
}

}  // namespace scalemark

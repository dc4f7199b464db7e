// `scalemark gate`: is the new build slower than the base?
#include "analysis/gate/gate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "commands/gate.hpp"
#include "commands/launch_flags.hpp"
#include "commands/subcommands.hpp"
#include "config/arguments.hpp"
#include "config/flags.hpp"
#include "config/json_file.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/sweep_settings.hpp"
#include "config/text.hpp"
#include "config/values.hpp"
#include "launch/placement.hpp"
#include "report/sweep_table.hpp"

namespace scalemark {
namespace {

constexpr std::int64_t kStandardPairs = 20;

cxxopts::Options gate_options() {
  cxxopts::Options options("scalemark gate",
                           "Is the new build slower than the base? Exit code 1 where it is, 0 "
                           "where it is not, 3 where that can't be told.\n");
  options.custom_help(
      "BASE NEW [--flag]...\n"
      "  scalemark gate PLAN.json --base BUILD --new BUILD --output DIR [--flag]...\n"
      "  scalemark gate --save_baseline FILE SET [--because TEXT]\n"
      "  scalemark gate --history SET SET SET ...");
  options.positional_help("");
  const auto text = [] { return cxxopts::value<std::string>(); };
  options.add_options("verdict")("alpha", "false alarms: at most this share (default 0.01)", text(),
                                 "P")(
      "threshold", "least slowdown that is called a regression, percent (default 1)", text(), "X")(
      "delta", "slowdown that a pass excludes, percent (default 2)", text(), "X")(
      "point_delta", "slowdown of any one point that a pass excludes, percent (default 10)", text(),
      "X")("output", "the record's file; of builds the folder of all that is measured", text(),
           "PATH")("json", "the record on stdout, nothing else")(
      "junit", "JUnit XML for a CI server", text(), "FILE")(
      "summary", "Markdown, appended to the file", text(), "FILE")(
      "annotations", "on stderr, the line that GitHub shows beside a commit");
  options.add_options("two builds")("base", "folder or program of a build, or a commit", text(),
                                    "BUILD")("new", "the same of the build in question", text(),
                                             "BUILD")(
      "new_set", "the new build runs with this setting (default of --new then: the base's build)",
      cxxopts::value<std::vector<std::string>>(), "KEY=VALUE")(
      "pairs", "most pairs of launches; the verdict may come after 8, 10 or 14 (default 20)",
      text(), "N")("max_seconds", "no pair begins that would end later", text(), "S")(
      "seed", "of the order (default: the plan's)", text(), "N")(
      "launcher", "auto, mpirun or srun (default: the plan's)", text(), "NAME")(
      "hostfile", "hosts of mpirun (default: the plan's)", text(), "FILE")(
      "alternate",
      "steps: both launches of a pair live at once and measure in turns; launches: one after the "
      "other (default: steps, where the ranks share a host)",
      text(), "NAME")("dry_run", "print the command of every launch in its order, start nothing");
  options.add_options("two sets")("paired", "the k-th launches of both were measured side by side")(
      "varied", "keys that differ on purpose", text(), "KEY,...")(
      "allow_failed", "launches of either set that may have failed (default 0)", text(), "N")(
      "other_machine", "judge although the sets come from unlike machines");
  options.add_options("baseline and history")(
      "save_baseline", "write the set's launches to a file that can be BASE later", text(), "FILE")(
      "because", "replace the baseline that is there; the reason is kept", text(), "TEXT")(
      "history", "where many sets in a row changed: advice, always exit code 0");
  options.add_options("")("sets", "", cxxopts::value<std::vector<std::string>>())("h,help",
                                                                                  "this text");
  options.parse_positional({"sets"});
  return options;
}

/// Flags that belong to one way of calling it, by the flag or word that chooses it.
const std::vector<std::string> kOfBuilds{"base",     "new",      "pairs",   "max_seconds", "seed",
                                         "launcher", "hostfile", "dry_run", "alternate"};
const std::vector<std::string> kOfSets{"paired", "varied", "other_machine", "allow_failed"};

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
      refuse_at("--pairs", fmt::format("{} pairs can't show a regression at a level of {}; at "
                                       "least {} can",
                                       pairs, alpha, least_pairs(alpha)));
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
    request_.allowed_to_fail =
        static_cast<std::size_t>(flags_.whole("allow_failed", 0, 1'000'000).value_or(0));
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
    builds.alternate = alternate();
    if (!request_.output && !request_.dry_run)
      throw ConfigError(
          "scalemark gate: --output DIR is missing: the folder of all that is measured");
    builds.folder = request_.output.value_or("gate");
    builds.base = *flags_.text("base");
    builds.fresh = flags_.text("new").value_or(builds.base);
    builds.plan = read_sweep_plan(request_.sets.front(), environment_lines(), cores_per_host());
    refuse_commands(builds.plan, request_.sets.front());
    read_launch(builds.plan);
    builds.new_plan = flags_.has("new_set") ? plan_with_settings() : builds.plan;
    read_launch(builds.new_plan);
    read_design(flags_.whole("pairs", 1, kMostSequentialPairs).value_or(kStandardPairs));
    builds.design = request_.design;
    builds.max_seconds = flags_.number("max_seconds", 1, 1e7);
  }

  Alternate alternate() const {
    const std::string word = flags_.text("alternate").value_or("auto");
    check_choice("--alternate", word, {"auto", "steps", "launches"});
    return word == "auto"    ? Alternate::automatic
           : word == "steps" ? Alternate::steps
                             : Alternate::launches;
  }

  /// The plan again, with the settings of --new_set at every point.
  SweepPlan plan_with_settings() {
    const std::string& path = request_.sets.front();
    auto plan = parse_json_object(read_json_text(path, "plan"), path, "plan");
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
      const Key* key = find_key(name);
      plan["settings"][name] = key ? parse_value(*key, value, place) : Json(value);
      request_.builds.varied.push_back(name);
    }
    return parse_sweep_plan(plan.dump(), path + " with --new_set", environment_lines(),
                            cores_per_host());
  }

  void read_launch(SweepPlan& plan) const {
    plan.seed = flags_.whole("seed", 0, std::int64_t{1} << 52).value_or(plan.seed);
    apply_launch_flags(plan, flags_);
  }

  void read_baseline() {
    refuse(kOfBuilds, "belongs to two builds, not to --save_baseline");
    refuse(kOfSets, "belongs to two result sets, not to --save_baseline");
    refuse({"history", "output", "junit", "summary", "annotations", "json"},
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
  }

  const FlagReader& flags_;
  GateRequest request_;
};

std::string gate_help() {
  return gate_options().help({"verdict", "two builds", "two sets", "baseline and history", ""}) +
         "\nBASE, NEW, SET: a record, a folder of records or of a sweep, or a baseline; LABEL=PATH "
         "names it. The rule and its\nerror rates: docs/gate.md; in CI: docs/ci/.\n"
         "Exit codes: 0 pass, 1 regressed, 3 inconclusive; 2 usage or unlike sets, 4 to 7 a launch "
         "failed, 6 a file that is\nunreadable, foreign or changed.\n";
}

ExitCode gate_two_builds(const GateRequest& request) {
  SweepProgress progress;
  return gate_builds(request.builds, progress,
                     [&](const Json& verdict) { report_verdict(verdict, request.reports); });
}

ExitCode gate_as_asked(const CommandLine& line) {
  refuse_ranks("scalemark gate launches its ranks itself");
  const FlagReader flags(parse_flags(gate_options(), canonical_flags(line.arguments)));
  const GateRequest request = Reader(flags).read();
  if (request.kind != GateRequest::Kind::builds) return gate_sets(request);
  if (!request.dry_run) return gate_two_builds(request);
  print_gate(request.builds);
  return ExitCode::ok;
}

}  // namespace

/// 4 to 7 where a launch failed.
ExitCode commands::gate(const CommandLine& line) {
  if (wants_help(line.arguments)) return print_help(gate_help());
  const auto reports = wanted_reports(line.arguments);
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

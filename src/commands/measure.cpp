// Implements the subcommands of the engine: run, scale, infer and preflight, whose flags are the
// keys of the configuration, and join.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/compare.hpp"
#include "analysis/preflight/rules.hpp"
#include "analysis/run_plan.hpp"
#include "analysis/scaling/swept_curves.hpp"
#include "commands/subcommands.hpp"
#include "config/curves.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/run_config.hpp"
#include "config/sweep_settings.hpp"
#include "config/text.hpp"
#include "config/value_syntax.hpp"
#include "error.hpp"
#include "launch/engine_start.hpp"
#include "launch/launch_builder.hpp"
#include "launch/rank_job.hpp"
#include "launch/sweep.hpp"
#include "measure/clock.hpp"
#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "report/console.hpp"
#include "report/shown_text.hpp"
#include "report/sweep_table.hpp"
#include "report/tables.hpp"
#include "result/preflight_reference.hpp"
#include "result/result_set.hpp"
#include "result/warnings.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// Refuses to run among ranks, each of which would write the same record.
void refuse_among_ranks() {
  const auto hint = launcher_hint(process_environment());
  if (hint && hint->tasks > 1)
    refuse_at("--cpu_masks", "judges masks without ranks: start it alone, not by " + hint->name);
}

/// Judges the masks on the machine that hwloc shows and prints what --pinning prints. Throws
/// ConfigError where a mask has a CPU that is not there, and among the ranks of a launcher.
ExitCode judge_cpu_masks(LoadedConfig loaded) {
  const ResolvedConfig& config = loaded.config;
  refuse_among_ranks();
  const auto rules = read_preflight_rules(config.rules);
  const std::unique_ptr<ResultFile> output = output_file(config);
  const Topology topology = load_topology();
  if (!topology)
    throw EnvironmentError("--cpu_masks: hwloc cannot tell what CPUs this machine has");
  if (!hwloc_topology_is_thissystem(topology.get()))
    loaded.warnings.push_back(
        "the masks are judged on the machine of HWLOC_SYNTHETIC or HWLOC_XMLFILE, not on this one");
  for (const std::string& warning : loaded.warnings) warn(warning);
  const RecordContext context{loaded, system_info(), recorded_environment(process_environment())};
  const PreflightResult record =
      judged_masks(context, topology.get(), parse_cpu_masks(*config.cpu_masks), rules);
  deliver(judged_json(record), output.get(), config.json);
  if (!config.json) (output ? print_view : print_data)(pinning_table(record));
  if (output) say_info("record: " + output->path().string());
  return record.verdict == CheckStatus::fail ? ExitCode::failed : ExitCode::ok;
}

/// Unsets the variables by which hwloc shows another machine than this one: ranks would be planned,
/// bound and recorded by it. Returns what to say of it; empty where none is set.
std::string forget_other_machine() {
  constexpr std::array kShowing{"HWLOC_SYNTHETIC", "HWLOC_XMLFILE", "HWLOC_FSROOT"};
  std::vector<std::string> set;
  for (const char* name : kShowing)
    if (std::getenv(name)) set.emplace_back(name);
  if (set.empty()) return "";
  if (const Topology topology = load_topology();
      topology && hwloc_topology_is_thissystem(topology.get()))
    return "";
  for (const char* name : kShowing) unsetenv(name);
  return join(set, " and ") + " shows another machine than this one: it is ignored here; unset it";
}

namespace fs = std::filesystem;

/// The variable that says where LibTorch is.
constexpr std::string_view kTorchVariable = "SCALEMARK_TORCH=";

/// The keys that can be asked of finished launches.
constexpr std::array kQuestions{
    "from", "resource", "solution_steps", "base_solution_steps", "output", "overwrite", "json"};

void refuse_measuring_flags(const LoadedConfig& asked) {
  for (const auto& [name, origin] : asked.origins)
    if (origin == Origin::command_line && std::ranges::find(kQuestions, name) == kQuestions.end())
      throw ConfigError(fmt::format(
          "--{}: scale --from shows what a sweep has measured, and its plan has decided that; "
          "leave it out",
          name));
}

struct SweepFolder {
  std::string path;
  std::vector<SweptRun> runs;
  std::vector<MissingLaunches> missing;
};

/// Orders the entries: those of the plan in its order, then others, which `planned_alone` leaves
/// out.
void order_by_plan(std::vector<JournalEntry>& entries, const PlannedLaunches& planned,
                   bool planned_alone) {
  std::map<std::string, std::size_t> places;
  for (const auto& point : planned.points) places.emplace(point.id, places.size());
  const auto place_of = [&](const JournalEntry& entry) {
    const auto found = places.find(entry.point);
    const bool is_planned = found != places.end() && entry.revision == planned.revision &&
                            entry.repeat <= planned.repeats;
    return is_planned ? found->second : places.size();
  };
  std::ranges::stable_sort(entries, {}, place_of);
  if (planned_alone)
    std::erase_if(entries, [&](const auto& entry) { return place_of(entry) == places.size(); });
}

SweepFolder read_folder(const fs::path& folder, Resource resource, bool planned_alone) {
  if (!fs::exists(journal_of(folder)))
    throw ConfigError(
        fmt::format("--from {}: no folder of a sweep, which has a journal.jsonl; give the DIR of "
                    "scalemark sweep PLAN.json --output DIR",
                    folder.string()));
  std::vector<JournalEntry> last = last_entries(read_journal(journal_of(folder)));
  const auto planned = read_planned(folder);
  if (planned) order_by_plan(last, *planned, planned_alone);
  SweepFolder read{folder.string(), {}, missing_launches(last, planned)};
  std::vector<ResultSet> sets(1);
  ResultSet& copies = sets.front();
  copies.label = folder.string();
  for (const JournalEntry& entry : last) {
    if (entry.status != "ok") continue;
    const fs::path path = folder / entry.record;
    read.runs.push_back(swept_run(entry, record_of(folder, entry), path, resource));
    MeasuredLaunch& launch = copies.launches.emplace_back();
    launch.path = path;
    launch.id = read.runs.back().record.id;
    launch.ranks = read.runs.back().ranks;
  }
  count_copies_once(sets);
  return read;
}

void warn_of_missing(ScalingCurve& record, const SweptCurve& curve,
                     const std::vector<MissingLaunches>& missing) {
  for (const MissingLaunches& one : missing) {
    if (!belongs_to(one, curve)) continue;
    record.warnings.push_back("incomplete: " + one.words);
    record.failed_launches += one.failed;
  }
}

/// Prints the tables of the curves, then those of curves that can be compared side by side.
void print(const SweptCurves& swept, const std::vector<ScalingCurve>& records) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::string& name = names.emplace_back(swept.curves[i].name);
    print_data((i == 0 ? "" : "\n") + (name.empty() ? "" : name + ": ") +
               scaling_table(records[i]));
  }
  if (const std::string table = family_table(names, records); !table.empty())
    print_data("\n" + table);
}

void show_curves(const ResolvedConfig& config, const SweepFolder& folder) {
  const SweptCurves swept = swept_curves(folder.runs);
  for (const std::string& sentence : swept.left_out) say_error("left out: " + shown(sentence));
  for (const MissingLaunches& one : folder.missing) say_error("incomplete: " + shown(one.words));
  if (swept.curves.empty())
    throw ConfigError(
        fmt::format("{}: no launches of two rank counts that have all else in common, so no curve",
                    folder.path));
  std::vector<ScalingCurve> curves;
  std::vector<Json> records;
  for (const SweptCurve& curve : swept.curves) {
    warn_of_missing(curves.emplace_back(make_swept_record(curve, config)), curve, folder.missing);
    refuse_numberless(records.emplace_back(curve_json(curves.back())));
  }
  for (std::size_t i = 0; config.output && i < records.size(); ++i) {
    OutputSettings of_curve = config;
    of_curve.output = curve_path(*config.output, swept.curves[i].name).string();
    const auto file = output_file(of_curve);
    file->write(records[i]);
    say_info("record: " + file->path().string());
  }
  if (config.json)
    print_data(record_text(records.size() == 1 ? records.front() : Json(records)));
  else
    print(swept, curves);
}

SweepPlan plan_of(const LoadedConfig& asked) {
  const ResolvedConfig& config = asked.config;
  const Resources resources = find_resources(config.device, config.hostfile, process_environment());
  const PlannedRanks planned = plan_ranks(config, resources);
  return parse_sweep_plan(curve_plan(asked, planned.ranks, planned.placement.cpus_per_rank),
                          "scale --repeat_unit launch", environment_lines(), cores_per_host());
}

/// Writes and prints the curves of the sweep in --from. Throws ConfigError where the folder has no
/// journal or makes no curve, or where flags were given that belong to a measurement.
ExitCode scale_from(const LoadedConfig& asked) {
  refuse_measuring_flags(asked);
  show_curves(asked.config, read_folder(*asked.config.from, asked.config.resource, false));
  return ExitCode::ok;
}

/// Launches every point and repeat, goes on where the same command was ended, and ends as
/// scale_from(). The journal lies in FILE.sweep/ beside --output FILE.json, without that nowhere.
ExitCode scale_by_launches(const LoadedConfig& asked) {
  refuse_ranks("scalemark scale --repeat_unit launch launches its ranks itself");
  const ResolvedConfig& config = asked.config;
  const SweepPlan plan = plan_of(asked);
  std::optional<TemporaryFolder> temporary;
  if (!config.output && !config.dry_run) temporary.emplace();
  const fs::path folder = config.output ? fs::path(*config.output).replace_extension(".sweep")
                          : temporary   ? temporary->path()
                                        : fs::path("curve.sweep");
  if (config.dry_run) {
    print_sweep(plan, folder);
    return ExitCode::ok;
  }
  const HeldSignals until_the_table_is_printed;
  SweepProgress progress;
  const ExitCode code = run_sweep(plan, folder, {}, progress).code;
  try {
    show_curves(config, read_folder(folder, config.resource, /*planned_alone=*/true));
  } catch (const ConfigError& error) {
    if (code == ExitCode::ok) throw;
    say_error(error.what());
  }
  return code;
}

std::string plan_text(const ResolvedConfig& config, const std::vector<std::int64_t>& ranks,
                      bool keeps_weights) {
  const std::vector<CurvePlan> plans = plan_curves(config, ranks, keeps_weights);
  return config.json ? record_text(plans_json(plans)) : run_plan_table(plans);
}

/// Shows the plan of ranks that a launcher has started already. One of them prints.
ExitCode show_plan(Command command, const ResolvedConfig& config, int tasks) {
  const bool curve = command == Command::scale;
  const auto ranks = !curve                 ? std::vector<std::int64_t>{tasks}
                     : config.ranks.empty() ? default_ranks(tasks, config.ranks_per_node)
                                            : config.ranks;
  if (curve) check_points(config, ranks);
  const std::string text = plan_text(config, ranks, curve);
  if (speaks()) print_data(text);
  return ExitCode::ok;
}

// --again repeats the command of a record: its settings become flags, before those of the command
// line, and what was measured then and now is compared.

struct Repeated {
  Json record;
  ResultSet then;                      ///< its launches
  std::vector<std::string> arguments;  ///< its settings, and what else was given
  std::vector<std::string> ignored;    ///< variables that would set what it has not set
};

constexpr std::array<std::pair<Command, std::string_view>, 3> kRepeatable{
    {{Command::run, "run"}, {Command::infer, "inference"}, {Command::scale, "scaling"}}};

Json read_repeatable(Command command, const std::string& path) {
  Json record = read_record(path);
  const std::string kind = kind_of(record);
  for (const auto& [owner, of_kind] : kRepeatable)
    if (kind == of_kind && owner != command)
      refuse_at("--again",
                fmt::format("{0} is a record of scalemark {1}: scalemark {1} --again {0}", path,
                            name_of(owner)));
  if (std::ranges::find(kRepeatable, kind, &decltype(kRepeatable)::value_type::second) ==
      kRepeatable.end())
    refuse_at("--again", fmt::format("{} is a record of kind {}; give one of scalemark run, infer "
                                     "or scale",
                                     path, kind));
  const record::AnyRecord envelope = envelope_of(record);
  if (envelope.status != Status::ok)
    refuse_at("--again", fmt::format("{} has the status {} ({}): there is nothing to compare with; "
                                     "give a record with status ok",
                                     path, to_string(envelope.status), envelope.reason));
  if (record.value("repeat_unit", Json()) == "launch")
    refuse_at("--again", path +
                             " is a curve of a sweep's launches; repeat the sweep into another "
                             "folder, and give both to scalemark compare");
  return record;
}

std::string flag_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> words;
  for (const Json& item : value) words.push_back(flag_text(item));
  return join(words, ",");
}

/// As many ranks as there were, whoever has started them; one that no launcher need have started
/// has no flag.
std::vector<std::string> ranks_flag(const Json& record) {
  static const Json::json_pointer kRanks("/ranks/value");
  std::vector<std::string> ranks;
  if (!record.contains("world_size"))
    for (const Json& point : record["points"]) ranks.push_back(flag_text(point["ranks"]));
  else if (record["world_size"] != 1 ||
           record["config"].value(kRanks, Json::array()) != Json::array())
    ranks.push_back(flag_text(record["world_size"]));
  return ranks.empty() ? ranks : std::vector<std::string>{"--ranks=" + join(ranks, ",")};
}

/// What somebody has set, as flags. Defaults are the build's, and where results went is no setting
/// of what was measured.
std::vector<std::string> settings_of(const Json& record, Command command, const std::string& path) {
  std::vector<std::string> flags = ranks_flag(record);
  for (const auto& [written, entry] : record["config"].items()) {
    const auto [name, value] = current_setting(written, entry["value"]);
    if (entry["origin"] == "default" || value.is_null() || name == "ranks") continue;
    const std::string place = fmt::format("--again: {}: /config/{}", path, written);
    const Key* key = find_key(name);
    if (!key)
      throw ConfigError(fmt::format(
          "{}: this version has no such key, which was set to {}; the build that wrote the record "
          "({}) can repeat it, or give the flags themselves",
          place, flag_text(value), envelope_of(record).build.revision));
    if (!key->commands.contains(command) || key->traits.contains(Trait::presentation)) continue;
    flags.push_back(fmt::format("--{}={}", name, flag_text(check_value(*key, value, place))));
  }
  return flags;
}

/// Unsets the variables of settings. Returns those that would set what was at its default.
std::vector<std::string> forget_settings(const std::vector<std::string>& flags) {
  std::vector<std::string> forgotten;
  constexpr std::string_view kPrefix = "SCALEMARK_";
  for (const std::string& line : environment_lines()) {
    if (!line.starts_with(kPrefix)) continue;
    const std::string variable = line.substr(0, line.find('='));
    std::string name = variable.substr(kPrefix.size());
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const Key* key = find_written_key(name);
    if (name != "config" && (!key || key->role == Role::output)) continue;
    unsetenv(variable.c_str());
    const auto is_its_flag = [&](const std::string& flag) {
      return key && flag.starts_with("--" + key->name + "=");
    };
    if (std::ranges::none_of(flags, is_its_flag)) forgotten.push_back(variable);
  }
  return forgotten;
}

/// Nothing where the command line has no --again.
std::optional<Repeated> repeated_command(Command command,
                                         const std::vector<std::string>& arguments) {
  std::optional<std::string> path;
  std::vector<std::string> others;
  bool has_file = false;
  for (const GivenWord& given : read_words(arguments, key_takes_value)) {
    has_file = has_file || given.name == "config";
    if (given.name != "again") {
      others.insert(others.end(), given.written.begin(), given.written.end());
      continue;
    }
    if (!given.value) refuse_at("--again", "the value is missing; give the file of a record");
    if (path) refuse_at("--again", "given more than once; one record is repeated");
    path = given.value;
  }
  if (!path || command == Command::preflight) return std::nullopt;
  check_text(*path, "--again");
  if (has_file)
    refuse_at("--again", "the record has the settings; leave --config out, and give flags");
  refuse_ranks(fmt::format("scalemark {} --again starts its ranks itself", name_of(command)));
  Repeated again;
  again.record = read_repeatable(command, *path);
  again.then.label = "then";
  again.then.path = *path;
  again.then.launches = measured_launches(again.record, *path);
  again.arguments = settings_of(again.record, command, *path);
  again.ignored = forget_settings(again.arguments);
  again.arguments.insert(again.arguments.end(), others.begin(), others.end());
  return again;
}

/// "batch_size (then: 8; now: 16)" of what two objects tell differently.
std::vector<std::string> differences(const Json& then, const Json& now) {
  std::vector<std::string> found;
  for (const auto& [name, value] : then.items())
    if (const Json other = now.value(name, Json()); other != value)
      found.push_back(
          fmt::format("{} (then: {}; now: {})", name, plain_value(value), plain_value(other)));
  return found;
}

/// What decides what two launches measured, and is not the same: settings on purpose, and what the
/// machine made of them.
std::set<std::string> unlike_keys(const MeasuredLaunch& then, const MeasuredLaunch& now) {
  std::set<std::string> names;
  const auto add = [&](const MeasuredLaunch& one, const MeasuredLaunch& other) {
    for (const auto& [name, value] : one.keys) {
      const auto found = other.keys.find(name);
      // What one of them does not tell is not compared (match_sets()).
      const bool told = found != other.keys.end() ||
                        !(other.unknown.contains(name) || one.defaults.contains(name) ||
                          name.starts_with(kVariablePrefix) || is_launch_setting(name));
      if (told && (found == other.keys.end() || found->second != value)) names.insert(name);
    }
  };
  add(then, now);
  add(now, then);
  return names;
}

/// The keys that differ, at ranks that both have where they have such.
std::vector<std::string> varied_keys(const ResultSet& then, const ResultSet& now,
                                     std::vector<std::string>& sentences) {
  const auto has_ranks = [](const ResultSet& set, int ranks) {
    return std::ranges::find(set.launches, ranks, &MeasuredLaunch::ranks) != set.launches.end();
  };
  const bool common = std::ranges::any_of(
      then.launches, [&](const MeasuredLaunch& launch) { return has_ranks(now, launch.ranks); });
  std::set<std::string> varied;
  for (const MeasuredLaunch& one : then.launches)
    for (const MeasuredLaunch& other : now.launches) {
      if (common && one.ranks != other.ranks) continue;
      for (const std::string& name : unlike_keys(one, other)) {
        if (!varied.insert(name).second) continue;
        const auto value = [&](const MeasuredLaunch& launch) {
          const auto found = launch.keys.find(name);
          return plain_value(found == launch.keys.end() ? Json() : found->second);
        };
        sentences.push_back(fmt::format("{} (then: {}; now: {})", name, value(one), value(other)));
      }
    }
  return {varied.begin(), varied.end()};
}

/// Whether others took CPUs from a launch, where both tell; notable loads have notes of their own.
void add_quiet(std::vector<std::string>& notes, const std::vector<ResultSet>& sets) {
  for (const ResultSet& set : sets)
    for (const MeasuredLaunch& launch : set.launches)
      if (!launch.foreign || launch.foreign->notable()) return;
  notes.emplace_back("neither was measured on a busy machine");
}

std::string then_and_now(const Repeated& again, const PartialResults& measured) {
  std::vector<ResultSet> sets(2);
  sets[0] = again.then;
  sets[1].label = "now";
  sets[1].path = measured.path;
  for (const Json& record : measured.finished)
    if (envelope_of(record).status == Status::ok)
      for (MeasuredLaunch& launch : measured_launches(record, measured.path))
        sets[1].launches.push_back(std::move(launch));
  if (sets[1].launches.empty()) throw ConfigError("no new measurement has ended well");
  std::vector<std::string> settings;
  CompareQuestions questions;
  questions.varied = varied_keys(sets[0], sets[1], settings);
  const Matching matching = match_sets(sets, questions.varied);
  std::vector<MetricComparison> metrics;
  for (const std::string& metric : default_metrics(matching)) {
    questions.metric = metric;
    metrics.push_back(compare_sets(sets, matching, questions));
  }
  Comparison made = make_comparison(sets, matching, questions, metrics);
  const std::vector<std::string> builds =
      differences(again.record["build"], measured.finished.front()["build"]);
  std::vector<std::string> notes{
      builds.empty() ? "both are of one build" : "the builds differ in " + join(builds, "; "),
      settings.empty() ? "the settings are the same"
                       : "the settings, and what came of them, differ in " + join(settings, "; ")};
  if (machine_notes(sets).empty()) notes.emplace_back("the machines read alike");
  add_quiet(notes, sets);
  made.notes.insert(made.notes.begin(), notes.begin(), notes.end());
  return comparison_table(made) +
         "These are two launches, and no verdict: scalemark gate decides whether a build is "
         "slower.\n";
}

/// Tells it on stdout, where that is not for the record.
void show_then_and_now(const Repeated& again, const PartialResults& measured, bool json) {
  std::string text;
  try {
    text = then_and_now(again, measured);
  } catch (const std::exception& error) {
    return say_info(fmt::format("then and now are not compared: {}", error.what()));
  }
  if (!json) return print_view("\n" + text);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) say_progress(line);
}

/// Starts the ranks of a command that is called outside a launcher.
ExitCode start_ranks(const LoadedConfig& loaded, const std::vector<std::string>& arguments,
                     const std::optional<Repeated>& again) {
  const ResolvedConfig& config = loaded.config;
  const RankJob job = rank_job(loaded, arguments);
  if (!config.dry_run) {
    PartialResults measured;
    const ExitCode code = supervise_ranks(loaded, job, again ? &measured : nullptr);
    if (again) show_then_and_now(*again, measured, config.json);
    return code;
  }
  print_data(plan_text(config, job.points.ranks, loaded.command == Command::scale));
  say_info("would start: " + command_line(job.request));
  return ExitCode::ok;
}

/// Ends a rank of srun without PMI, which Open MPI would end within MPI_Init. Returns false for a
/// rank that leaves too, but whose host need not say why again.
bool leave_srun_without_pmi() {
  const auto environment = process_environment();
  if (!is_srun_without_pmi(environment)) return true;
  if (!speaks()) return false;
  throw EnvironmentError(fmt::format(
      "srun started {} tasks without PMIx: each of them would see a world of one rank. Remedy: "
      "srun --mpi=pmix (see srun --mpi=list), or mpirun inside the allocation. Nothing was "
      "measured and no file was written.",
      launcher_hint(environment)->tasks));
}

ExitCode measure(Command command, const CommandLine& line) {
  const std::optional<Repeated> again = repeated_command(command, line.arguments);
  const std::vector<std::string>& arguments = again ? again->arguments : line.arguments;
  LoadedConfig loaded = load_config(command, arguments, environment_lines());
  if (loaded.config.progress == ProgressKind::jsonl) use_event_lines();
  if (loaded.config.quiet) be_quiet();
  for (const std::string& variable : again ? again->ignored : std::vector<std::string>())
    say_info(variable + " is ignored: --again has the settings of the record; give a flag");
  if (loaded.config.cpu_masks) return judge_cpu_masks(loaded);
  if (loaded.config.from) return scale_from(loaded);
  if (loaded.config.repeat_unit == RepeatUnit::launch) return scale_by_launches(loaded);
  const auto hint = launcher_hint(process_environment());
  // Ranks of a launch leave together: there the engine reads it.
  if (loaded.config.preflight && !hint) read_preflight_record(*loaded.config.preflight);
  const bool starts_ranks = command == Command::scale || !loaded.config.ranks.empty() || again;
  if (hint || !starts_ranks) refuse_outside_container(loaded.config, hint.has_value());
  if (const std::string ignored = forget_other_machine(); !ignored.empty())
    starts_ranks && !hint ? warn(ignored) : loaded.warnings.push_back(ignored);
  if (starts_ranks && !hint) return start_ranks(loaded, arguments, again);
  if (loaded.config.dry_run) return show_plan(command, loaded.config, hint ? hint->tasks : 1);
  if (!leave_srun_without_pmi()) return ExitCode::environment;
  become_engine(loaded, line.argv);
}

}  // namespace

ExitCode commands::run(const CommandLine& line) { return measure(Command::run, line); }
ExitCode commands::scale(const CommandLine& line) { return measure(Command::scale, line); }
ExitCode commands::infer(const CommandLine& line) { return measure(Command::infer, line); }
ExitCode commands::preflight(const CommandLine& line) { return measure(Command::preflight, line); }

ExitCode commands::join_parts(const CommandLine& line) {
  const FlagReader flags(join_parts_help(line), "folder", line.arguments);
  const auto folders = flags.positionals("folder");
  if (folders.size() != 1) refuse_at("scalemark join", "give one folder, that of --checkpoint_dir");
  const auto output = flags.text("output");
  if (!output) refuse_at("scalemark join", "say with --output FILE where the checkpoint goes");
  const auto step = flags.whole("step", 1, 2'000'000'000);
  if (!fs::is_directory(folders.front()))
    refuse_at("scalemark join", folders.front() + " is no folder; give that of --checkpoint_dir");
  if (fs::exists(*output) && !flags.has("overwrite"))
    refuse_at("--output", *output + " is there already: give another name, or --overwrite");
  refuse_ranks("scalemark join reads the files of all ranks");
  std::vector<std::string> settings{"--device=cpu"};
  if (const auto torch = flags.text("torch")) settings.push_back("--torch=" + *torch);
  std::vector<std::string> variables = environment_lines();
  std::erase_if(variables, [](const std::string& set) { return !set.starts_with(kTorchVariable); });
  std::vector<std::string> words{line.argv[0],
                                 "join",
                                 folders.front(),
                                 *output,
                                 step ? std::to_string(*step) : "",
                                 is_quiet() ? "--quiet" : ""};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  become_engine(load_config(Command::run, settings, variables), argv.data());
}

CommandHelp commands::join_parts_help(const CommandLine&) {
  return {
      "join",
      "Puts the parts of a checkpoint, which the ranks of a run with --shard have written, "
      "together into the file that a run without shards writes (docs/measurements.md).",
      {"FOLDER --output FILE [--flag value]..."},
      {{"Flags",
        {{.name = "output",
          .value_name = "FILE",
          .text = "where the whole checkpoint goes",
          .often_used = true},
         {.name = "step",
          .value_name = "N",
          .text = "the step that is put together",
          .standard = "the newest one whose parts are all there",
          .often_used = true},
         {.name = "overwrite", .text = "FILE may be there already", .often_used = true},
         {.name = "torch",
          .value_name = "DIR",
          .text = "folder of a LibTorch to use, as of scalemark run"}}}},
      {"scalemark join checkpoints --output whole.pt",
       "scalemark join checkpoints --step 60 --output whole.pt",
       "scalemark join checkpoints --output whole.pt --overwrite"},
      "FOLDER: the --checkpoint_dir of the run, with checkpoint-STEP-rankR.pt of every rank R. "
      "The number of ranks does not matter: the file is the same. It needs memory for the "
      "whole checkpoint and one part.\n"
      "Exit codes: 0 it is written, 2 usage, 6 a part is missing, damaged or of another run, or "
      "the file can't be written.\n"};
}

CommandHelp commands::run_help(const CommandLine&) { return key_help(Command::run); }
CommandHelp commands::scale_help(const CommandLine&) { return key_help(Command::scale); }
CommandHelp commands::infer_help(const CommandLine&) { return key_help(Command::infer); }
CommandHelp commands::preflight_help(const CommandLine&) { return key_help(Command::preflight); }

}  // namespace scalemark

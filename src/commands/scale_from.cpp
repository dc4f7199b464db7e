// See scale_from.hpp.
#include "commands/scale_from.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>

#include "analysis/scaling/swept_curves.hpp"
#include "config/curve_plan.hpp"
#include "config/curves.hpp"
#include "config/load.hpp"
#include "config/text.hpp"
#include "launch/rank_job.hpp"
#include "launch/sweep.hpp"
#include "platform/temporary_folder.hpp"
#include "report/console.hpp"
#include "report/shown_text.hpp"
#include "report/sweep_table.hpp"
#include "result/result_set.hpp"
#include "result/warnings.hpp"
#include "streams.hpp"
#include "talk.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// What can be asked of launches that have been.
constexpr std::array kQuestions{"from",   "resource", "solution_steps", "base_solution_steps",
                                "output", "json"};

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

/// Those of the plan in its order, then others, which `planned_alone` leaves out.
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
  ResultSet copies;
  copies.label = folder.string();
  for (const JournalEntry& entry : last) {
    if (entry.status != "ok") continue;
    const fs::path path = folder / entry.record;
    read.runs.push_back(swept_run(entry, record_of(folder, entry), path, resource));
    MeasuredLaunch& launch = copies.launches.emplace_back();
    launch.path = path;
    launch.id = read.runs.back().record.at("id");
    launch.ranks = read.runs.back().ranks;
  }
  refuse_copies({copies});
  return read;
}

void warn_of_missing(Json& record, const SweptCurve& curve,
                     const std::vector<MissingLaunches>& missing) {
  for (const MissingLaunches& one : missing) {
    if (!belongs_to(one, curve)) continue;
    add_warnings(record, {"incomplete: " + one.words});
    record["failed_launches"] = record["failed_launches"].get<int>() + one.failed;
  }
}

/// Tables of the curves, then those that can be compared side by side.
void print(const SweptCurves& swept, const std::vector<Json>& records) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::string& name = names.emplace_back(swept.curves[i].name);
    put((i == 0 ? "" : "\n") + (name.empty() ? "" : name + ": ") + scaling_table(records[i]));
  }
  if (const std::string table = family_table(names, records); !table.empty()) put("\n" + table);
}

void show_curves(const ResolvedConfig& config, const SweepFolder& folder) {
  const SweptCurves swept = swept_curves(folder.runs);
  for (const std::string& sentence : swept.left_out) tell("left out: " + shown(sentence));
  for (const MissingLaunches& one : folder.missing) tell("incomplete: " + shown(one.words));
  if (swept.curves.empty())
    throw ConfigError(
        fmt::format("{}: no launches of two rank counts that have all else in common, so no curve",
                    folder.path));
  std::vector<Json> records;
  for (const SweptCurve& curve : swept.curves) {
    records.push_back(make_swept_record(curve, config));
    warn_of_missing(records.back(), curve, folder.missing);
    refuse_numberless(records.back());
  }
  for (std::size_t i = 0; config.output && i < records.size(); ++i) {
    ResultFile file(curve_path(*config.output, swept.curves[i].name), /*reserved_bytes=*/0);
    file.write(records[i]);
    note("record: " + file.path().string());
  }
  if (config.json)
    put(record_text(records.size() == 1 ? records.front() : Json(records)));
  else
    print(swept, records);
}

SweepPlan plan_of(const LoadedConfig& asked) {
  const ResolvedConfig& config = asked.config;
  const Resources resources = find_resources(config.device, config.hostfile, process_environment());
  const PlannedRanks planned = plan_ranks(config, resources);
  return parse_sweep_plan(curve_plan(asked, planned.ranks, planned.placement.cpus_per_rank),
                          "scale --repeat_unit launch", environment_lines(), cores_per_host());
}

}  // namespace

ExitCode scale_from(const LoadedConfig& asked) {
  refuse_measuring_flags(asked);
  show_curves(asked.config, read_folder(*asked.config.from, asked.config.resource, false));
  return ExitCode::ok;
}

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
    tell(error.what());
  }
  return code;
}

}  // namespace scalemark

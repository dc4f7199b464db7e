// See sweep_folder.hpp.
#include "result/sweep_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "config/json_text.hpp"
#include "config/sweep_settings.hpp"
#include "error.hpp"
#include "result/schema_fault.hpp"

namespace scalemark {
namespace {

/// Keys that every launch of a sweep has.
constexpr std::array kAlwaysKeys{"ranks_per_node", "cpus_per_rank", "binding"};

Json parse_planned(std::string_view text) {
  Json json = parse_json_text(text, kDeepestText);
  if (const auto fault = schema_fault(json, "planned_launches", MissingKeys::refused))
    throw JsonFault(*fault);
  return json;
}

}  // namespace

std::filesystem::path journal_of(const std::filesystem::path& folder) {
  return folder / "journal.jsonl";
}

std::filesystem::path planned_file(const std::filesystem::path& folder) {
  return folder / "planned.json";
}

std::vector<JournalEntry> last_entries(const std::vector<JournalEntry>& entries) {
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::size_t> last_of;
  for (std::size_t i = 0; i < entries.size(); ++i)
    last_of[{entries[i].point, entries[i].revision, entries[i].repeat}] = i;
  std::set<std::size_t> places;
  for (const auto& [launch, place] : last_of) places.insert(place);
  std::vector<JournalEntry> last;
  for (const std::size_t place : places) last.push_back(entries[place]);
  return last;
}

Json record_of(const std::filesystem::path& folder, const JournalEntry& entry) {
  const std::filesystem::path path = folder / entry.record;
  if (entry.record.empty() || !std::filesystem::exists(path))
    throw ResultError(fmt::format(
        "{}: the journal names it, but it is not there; put it back, or measure it again with "
        "scalemark sweep PLAN.json --output {} --repair",
        path.string(), folder.string()));
  return read_record(path);
}

bool is_of_launch(const std::string& setting) {
  return setting.starts_with(kVariablePrefix) || setting == kLevelSetting ||
         std::ranges::find(kAlwaysKeys, setting) != kAlwaysKeys.end();
}

void add_launch_settings(MeasuredLaunch& launch, const Json& settings) {
  for (const char* name : kAlwaysKeys) launch.keys[name] = nullptr;
  for (const auto& [name, value] : settings.items())
    if (is_of_launch(name)) launch.keys[name] = value;
}

void write_planned(const std::filesystem::path& folder, const PlannedLaunches& planned) {
  Json points = Json::array();
  for (const auto& [id, settings] : planned.points)
    points.push_back({{"point", id}, {"settings", settings}});
  ResultFile(planned_file(folder), /*reserved_bytes=*/0)
      .write({{"schema_version", kSchemaVersion},
              {"kind", "planned_launches"},
              {"revision", planned.revision},
              {"repeats", planned.repeats},
              {"points", points}});
}

std::optional<PlannedLaunches> read_planned(const std::filesystem::path& folder) {
  const auto refuse = [&](const char* what) {
    throw ResultError(fmt::format("{}: {}; scalemark sweep PLAN.json --output {} writes it anew",
                                  planned_file(folder).string(), what, folder.string()));
  };
  PlannedLaunches planned;
  try {
    const Json json = parse_planned(read_input_file(planned_file(folder), kLargestRecord));
    planned.revision = json.at("revision");
    planned.repeats = json.at("repeats");
    for (const Json& point : json.at("points"))
      planned.points.push_back({point.at("point"), point.at("settings")});
  } catch (const InputFault& fault) {
    if (fault.missing) return std::nullopt;
    refuse(fault.what());
  } catch (const JsonFault& fault) {
    refuse(fault.what());
  }
  return planned;
}

}  // namespace scalemark

// Finds the launches, records and plans that a sweep has left in its folder.
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
#include "record/parts.hpp"
#include "record/read.hpp"
#include "record/write.hpp"

namespace scalemark {
namespace {

/// Keys that every launch of a sweep has.
constexpr std::array kAlwaysKeys{"ranks_per_node", "cpus_per_rank", "binding"};

}  // namespace

std::filesystem::path journal_of(const std::filesystem::path& folder) {
  return folder / "journal.jsonl";
}

std::filesystem::path planned_file(const std::filesystem::path& folder) {
  return folder / "planned.json";
}

std::filesystem::path tuned_file(const std::filesystem::path& folder) {
  return folder / "tuned.json";
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

void PlannedLaunches::Point::describe(Fields& fields) {
  fields.add("point", &Point::id, "as in journal.jsonl").pattern(record::kSha256Pattern);
  fields.add("settings", &Point::settings, "that make the point differ from the others")
      .types({"object"});
}

void PlannedLaunches::describe(Fields& fields) {
  using P = PlannedLaunches;
  fields.add("schema_version", &P::schema_version, "1; others are refused").one_of({1});
  fields.add("kind", &P::kind, "what the file is").one_of({"planned_launches"});
  fields.add("revision", &P::revision, "of the build");
  fields.add("repeats", &P::repeats, "of each point").at_least(1);
  fields.add("points", &P::points, "in the order of the plan");
}

void write_planned(const std::filesystem::path& folder, const PlannedLaunches& planned) {
  ResultFile(planned_file(folder), /*reserved_bytes=*/0).write(part_json(planned));
}

std::optional<PlannedLaunches> read_planned(const std::filesystem::path& folder) {
  const auto refuse = [&](const char* what) {
    throw ResultError(fmt::format("{}: {}; scalemark sweep PLAN.json --output {} writes it anew",
                                  planned_file(folder).string(), what, folder.string()));
  };
  try {
    return part_from<PlannedLaunches>(
        parse_json_text(read_input_file(planned_file(folder), kLargestRecord), kDeepestText));
  } catch (const InputFault& fault) {
    if (fault.missing) return std::nullopt;
    refuse(fault.what());
  } catch (const JsonFault& fault) {
    refuse(fault.what());
  } catch (const RecordFault& fault) {
    refuse(fault.what());
  }
  return std::nullopt;
}

}  // namespace scalemark

// What a sweep has left in its folder: launches that the journal knows, their records, and which
// launches were planned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result/journal.hpp"
#include "result/measured_launch.hpp"

namespace scalemark {

std::filesystem::path journal_of(const std::filesystem::path& folder);

/// The last word of the journal on every launch, in the journal's order.
std::vector<JournalEntry> last_entries(const std::vector<JournalEntry>& entries);

/// The record that an entry names. ResultError where it is gone or can't be read: a fault of the
/// folder, not of the command.
Json record_of(const std::filesystem::path& folder, const JournalEntry& entry);

/// Settings of a sweep that say how a point is launched, not what a record's configuration holds:
/// ranks_per_node, cpus_per_rank, binding, env.NAME, alternate.
bool is_of_launch(const std::string& setting);

/// Adds the settings as keys of a launch; null where the point has none.
void add_launch_settings(MeasuredLaunch& launch, const Json& settings);

/// FOLDER/planned.json.
std::filesystem::path planned_file(const std::filesystem::path& folder);
/// FOLDER/tuned.json: the configuration that `scalemark tune` has picked.
std::filesystem::path tuned_file(const std::filesystem::path& folder);
/// The ending of files beside records that say what a step of a study was to do.
inline constexpr std::string_view kStepPlanEnding = ".plan.json";

/// What the last `scalemark sweep` of a folder was to launch: planned_file().
struct PlannedLaunches {
  struct Point {
    std::string id;
    Json settings;  ///< that make it differ
    static void describe(Fields& fields);
  };
  std::string revision;  ///< of the build
  std::int64_t repeats = 1;
  std::vector<Point> points;
  int schema_version = kSchemaVersion;
  std::string kind = "planned_launches";
  static void describe(Fields& fields);
};
void write_planned(const std::filesystem::path& folder, const PlannedLaunches& planned);
/// nullopt where there is none: a sweep of an older scalemark. ResultError where it is damaged.
std::optional<PlannedLaunches> read_planned(const std::filesystem::path& folder);

}  // namespace scalemark

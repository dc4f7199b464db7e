// What of a launch of a sweep decides which curve it belongs to.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/scaling/point_repeat.hpp"
#include "analysis/scaling/swept_curves.hpp"
#include "config/keys.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

/// Ranks make the points of a curve; which batch follows from them, the scaling mode says.
constexpr std::array kBatches{"batch_size", "global_batch_size"};

bool may_follow_the_ranks(const std::string& name) {
  return name == "ranks_per_node" || name == "cpus_per_rank" ||
         (is_key(name, Trait::varies_with_ranks) &&
          std::ranges::find(kBatches, name) == kBatches.end());
}

/// What was asked for, where the launch tells what came of it: that may change with the ranks.
void put_asked(std::map<std::string, Json>& keys, const Json& config) {
  for (const Key& key : all_keys())
    if (key.traits.contains(Trait::found_by_run) && config.contains(key.name))
      keys[key.name] = config.at(key.name).at("value");
}

}  // namespace

SweptRun swept_run(const JournalEntry& entry, Json record, const std::filesystem::path& path,
                   Resource resource) {
  if (record.at("kind") != "run")
    throw ConfigError(fmt::format(
        "{}: a record of kind {}; a curve of launches is made of records of scalemark run",
        path.string(), record.at("kind").get<std::string>()));
  MeasuredLaunch launch = measured_launches(record, path).front();
  SweptRun run;
  run.entry = entry;
  run.path = path;
  run.ranks = launch.ranks;
  put_asked(launch.keys, record.at("config"));
  add_launch_settings(launch, entry.settings);
  run.communicator = launch.keys["communicator"];
  for (const char* name : {"kind", "ranks", "communicator"}) launch.keys.erase(name);
  for (const char* name : {"hosts", "transport"})
    if (const auto found = launch.keys.extract(name)) run.achieved[name] = found.mapped();
  for (const auto& [name, value] : launch.keys)
    (may_follow_the_ranks(name) ? run.placed : run.same)[name] = value;
  run.placed["point"] = entry.point;
  run.same["unit"] = launch.unit;
  for (const auto& [name, value] : record.at("build").items()) run.same["build." + name] = value;
  run.repeat = point_repeat(record, "", run.communicator == "none" && run.ranks > 1, resource);
  run.repeat.number = entry.repeat;
  for (const char* name : {"step_seconds", "loss"}) record.erase(name);
  run.record = std::move(record);
  return run;
}

}  // namespace scalemark

// See sweep_plan.hpp.
#include "config/sweep_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "config/json_text.hpp"
#include "config/keys.hpp"
#include "config/sweep_points.hpp"
#include "config/sweep_settings.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

constexpr std::int64_t kMostLaunches = 100'000;

/// Members of a plan.
const std::vector<std::string> kMembers{"$schema",
                                        "description",
                                        "command",
                                        "settings",
                                        "axes",
                                        "points",
                                        "default",
                                        "repeats",
                                        "seed",
                                        "launcher",
                                        "hostfile",
                                        "container",
                                        "launch_timeout",
                                        "before",
                                        "after",
                                        "container_runtime",
                                        "container_program",
                                        "alternate",
                                        "command_timeout"};

bool is_one_of(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

Command read_command(const Json& plan, const std::string& name) {
  const std::string word = plan.value("command", Json("run")).dump();
  if (word == "\"run\"") return Command::run;
  if (word == "\"infer\"") return Command::infer;
  refuse_at(name + ": /command", word + " is no command of a sweep (legal: run, infer)");
}

void read_seconds(const Json& plan, const char* member, double& seconds, const std::string& place) {
  const auto found = plan.find(member);
  if (found == plan.end()) return;
  if (!found->is_number() || *found < 1 || *found > 1e7)
    refuse_at(place, found->dump() + " is no number of seconds from 1 to 1e7");
  seconds = *found;
}

void check_members(const Json& plan, const std::string& name) {
  for (const auto& [member, value] : plan.items()) {
    const std::string place = fmt::format("{}: {}", name, pointer_to(member));
    if (!is_one_of(kMembers, member))
      refuse_at(place, fmt::format("no member of a plan{} (legal: {})",
                                   did_you_mean(member, kMembers), join(kMembers, ", ")));
    if ((member == "$schema" || member == "description") && !value.is_string())
      refuse_at(place, "must be a text");
  }
}

std::size_t find_standard(const std::vector<SweepPoint>& points, const SettingsContext& context,
                          Json settings, const std::string& place) {
  Json level;
  if (settings.is_object() && settings.contains(kLevelSetting)) {
    level = settings[kLevelSetting];
    settings.erase(kLevelSetting);
  }
  settings = check_settings(context, settings, place);
  if (!level.is_null()) settings[kLevelSetting] = level;
  const auto matches = [&](const SweepPoint& point) {
    for (const auto& [key, value] : settings.items())
      if (!point.settings.contains(key) || point.settings[key] != value) return false;
    return true;
  };
  const auto found = std::ranges::find_if(points, matches);
  if (found == points.end() || std::ranges::count_if(points, matches) > 1)
    refuse_at(place, fmt::format("names {} points; give the settings of exactly one",
                                 std::ranges::count_if(points, matches)));
  return static_cast<std::size_t>(found - points.begin());
}

/// Appends a launch of each point. Fisher and Yates, and not std::shuffle: its order differs
/// between standard libraries.
void shuffle_in(std::vector<std::pair<std::size_t, std::int64_t>>& order,
                const std::vector<std::size_t>& points, std::int64_t repeat,
                std::mt19937_64& random) {
  const std::size_t begin = order.size();
  for (std::size_t i = 0; i < points.size(); ++i) {
    order.emplace_back(points[i], repeat);
    std::swap(order.back(), order[begin + random() % (i + 1)]);
  }
}

}  // namespace

SweepPlan parse_sweep_plan(const Json& json, const std::string& name,
                           std::span<const std::string> environment, int cores) {
  check_members(json, name);
  const auto place = [&](const char* member) { return fmt::format("{}: /{}", name, member); };

  SweepPlan plan;
  plan.command = read_command(json, name);
  const SettingsContext context{plan.command, cores, &plan.warnings};
  if (json.contains("repeats"))
    plan.repeats = whole_number(json["repeats"], 1, 10'000, place("repeats"));
  if (json.contains("seed")) plan.seed = whole_number(json["seed"], 0, INT64_MAX, place("seed"));
  read_seconds(json, "launch_timeout", plan.launch_timeout, place("launch_timeout"));
  read_seconds(json, "command_timeout", plan.command_timeout, place("command_timeout"));
  RunConfig launch;
  for (const char* key : kLaunchKeys)
    if (json.contains(key))
      find_key(key)->set(launch, check_value(*find_key(key), json[key], place(key)));
  set_launch_keys(plan, launch);

  const CommonOfPoints common{
      context, name,
      json.contains("settings") ? check_settings(context, json["settings"], place("settings"))
                                : Json::object(),
      read_commands(json, json.contains("alternate"), name + ": "), environment};
  plan.points = make_points(common, json);
  if (static_cast<std::int64_t>(plan.points.size()) * plan.repeats > kMostLaunches)
    refuse_at(name + ": /repeats", fmt::format("{} points x {} repeats are more than {} launches",
                                               plan.points.size(), plan.repeats, kMostLaunches));
  if (json.contains("default"))
    plan.standard = find_standard(plan.points, context, json["default"], place("default"));
  return plan;
}

void set_launch_keys(SweepPlan& plan, const RunConfig& launch) {
  plan.launcher = launch.launcher;
  plan.hostfile = launch.hostfile;
  plan.container = launch;
}

RunConfig launch_keys(const SweepPlan& plan) {
  RunConfig launch;
  launch.launcher = plan.launcher;
  launch.hostfile = plan.hostfile;
  static_cast<ContainerSettings&>(launch) = plan.container;
  return launch;
}

SweepPlan read_sweep_plan(const std::filesystem::path& path,
                          std::span<const std::string> environment, int cores) {
  check_text(path.string(), "plan");
  return parse_sweep_plan(read_json_object(path, "plan"), path.string(), environment, cores);
}

std::vector<std::pair<std::size_t, std::int64_t>> launch_order(std::size_t points,
                                                               std::int64_t repeats,
                                                               std::int64_t seed) {
  std::vector<std::size_t> all(points);
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::pair<std::size_t, std::int64_t>> order;
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  for (std::int64_t repeat = 1; repeat <= repeats; ++repeat) shuffle_in(order, all, repeat, random);
  return order;
}

std::vector<std::pair<std::size_t, std::int64_t>> launch_order(const SweepPlan& plan) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    groups.resize(plan.points[i].group + 1);
    groups[plan.points[i].group].push_back(i);
  }
  std::vector<std::pair<std::size_t, std::int64_t>> order;
  std::mt19937_64 random(~static_cast<std::uint64_t>(plan.seed));
  for (const auto& [group, repeat] : launch_order(groups.size(), plan.repeats, plan.seed))
    shuffle_in(order, groups[group], repeat, random);
  return order;
}

void refuse_commands(const SweepPlan& plan, const std::string& name) {
  for (const SweepPoint& point : plan.points)
    if (!point.commands.empty() || point.settings.contains(kLevelSetting))
      refuse_at(name,
                "\"before\", \"after\" and \"alternate\" belong to scalemark sweep, whose levels "
                "scalemark compare --by alternate compares; leave them out");
}

}  // namespace scalemark

// See sweep_plan.hpp.
#include "config/sweep_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <set>

#include "config/file_layer.hpp"
#include "config/hash.hpp"
#include "config/json_file.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/names.hpp"
#include "config/sweep_settings.hpp"
#include "config/text.hpp"
#include "config/values.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kMostPlanned = 10'000;

/// Members of a plan.
const std::vector<std::string> kMembers{"$schema", "description", "command",  "settings",
                                        "axes",    "points",      "default",  "repeats",
                                        "seed",    "launcher",    "hostfile", "launch_timeout"};
bool is_one_of(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

/// The product of lists of settings: every pair of one of each, joined.
std::vector<Json> product(const std::vector<Json>& left, const std::vector<Json>& right,
                          const std::string& place) {
  if (left.size() * right.size() > kMostPlanned)
    refuse_at(place, fmt::format("more than {} points", kMostPlanned));
  std::vector<Json> all;
  for (const Json& first : left)
    for (const Json& second : right) {
      all.push_back(first);
      for (const auto& [name, value] : second.items()) {
        if (first.contains(name))
          refuse_at(place, fmt::format("{} is both in \"axes\" and in \"points\"", quote(name)));
        all.back()[name] = value;
      }
    }
  return all;
}

std::vector<Json> read_axis(const SettingsContext& context, const std::string& name,
                            const Json& values, const std::string& place) {
  if (!values.is_array() || values.empty())
    refuse_at(place, "an axis is a list of values such as [1, 2, 4]");
  std::vector<Json> axis;
  for (std::size_t i = 0; i < values.size(); ++i)
    axis.push_back(check_settings(context, {{name, values[i]}}, fmt::format("{}/{}", place, i)));
  return axis;
}

std::vector<Json> read_points(const SettingsContext& context, const Json& plan,
                              const std::string& name) {
  std::vector<Json> points{Json::object()};
  const std::string place = name + ": ";
  if (const auto listed = plan.find("points"); listed != plan.end()) {
    if (!listed->is_array() || listed->empty())
      refuse_at(place + "/points", "is no list of settings such as [{\"ranks\": 2}]");
    points.clear();
    for (std::size_t i = 0; i < listed->size(); ++i)
      points.push_back(
          check_settings(context, (*listed)[i], fmt::format("{}/points/{}", place, i)));
  }
  if (const auto axes = plan.find("axes"); axes != plan.end()) {
    if (!axes->is_object()) refuse_at(place + "/axes", "is no object of lists");
    for (const auto& [member, values] : axes->items()) {
      const std::string here = place + "/axes" + pointer_to(member);
      points = product(points, read_axis(context, member, values, here), here);
    }
  }
  return points;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

PointLaunch launch_of(const Json& settings) {
  PointLaunch launch;
  launch.ranks = settings.value("ranks", 1);
  for (const auto& [name, value] : settings.items()) {
    if (name == "ranks_per_node") launch.ranks_per_node = value.get<int>();
    if (name == "cpus_per_rank") launch.cpus_per_rank = value.get<int>();
    if (name.starts_with(kVariablePrefix))
      launch.environment.emplace_back(
          name.substr(kVariablePrefix.size()),
          value.is_null() ? std::nullopt : std::optional(value.get<std::string>()));
  }
  if (launch.ranks_per_node && launch.ranks % *launch.ranks_per_node != 0)
    throw ConfigError(fmt::format("ranks {} is no multiple of ranks_per_node {}", launch.ranks,
                                  *launch.ranks_per_node));
  return launch;
}

std::string id_of(const SweepPoint& point) {
  const PointLaunch& launch = point.launch;
  nlohmann::json identity{{"config_hash", point.config_hash}, {"environment", nlohmann::json()}};
  for (const auto& [name, value] : launch.environment)
    identity["environment"][name] = value ? nlohmann::json(*value) : nlohmann::json();
  identity["ranks"] = launch.ranks;
  identity["ranks_per_node"] = launch.ranks_per_node.value_or(0);
  identity["cpus_per_rank"] = launch.cpus_per_rank.value_or(0);
  return sha256_hex(identity.dump());
}

/// `own`: what makes the point differ; `common`: "settings" of the plan, which it goes before.
SweepPoint make_point(Command command, const Json& common, const Json& own,
                      std::span<const std::string> environment) {
  SweepPoint point;
  point.settings = own;
  Json all = common;
  for (const auto& [name, value] : own.items()) all[name] = value;
  for (const auto& [name, value] : all.items())
    if (!name.starts_with(kVariablePrefix) && !is_launch_setting(name) && !value.is_null())
      point.arguments.push_back(fmt::format("--{}={}", name, text_of(value)));
  try {
    point.launch = launch_of(all);
    point.config = load_config(command, point.arguments, environment).config;
    point.config_hash = config_hash(point.config, point.launch.ranks, command);
  } catch (const ConfigError& error) {
    refuse_at(point.title(), error.what());
  }
  point.id = id_of(point);
  return point;
}

Command read_command(const Json& plan, const std::string& name) {
  const std::string word = plan.value("command", Json("run")).dump();
  if (word == "\"run\"") return Command::run;
  if (word == "\"infer\"") return Command::infer;
  refuse_at(name + ": /command", word + " is no command of a sweep (legal: run, infer)");
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

std::size_t find_standard(const std::vector<SweepPoint>& points, const Json& settings,
                          const std::string& place) {
  const auto matches = [&](const SweepPoint& point) {
    return std::ranges::all_of(settings.items(), [&](const auto& item) {
      return point.settings.contains(item.key()) && point.settings[item.key()] == item.value();
    });
  };
  const auto found = std::ranges::find_if(points, matches);
  if (found == points.end() || std::ranges::count_if(points, matches) > 1)
    refuse_at(place, fmt::format("names {} points; give the settings of exactly one",
                                 std::ranges::count_if(points, matches)));
  return static_cast<std::size_t>(found - points.begin());
}

}  // namespace

std::string SweepPoint::title() const {
  std::string text;
  for (const auto& [name, value] : settings.items())
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, text_of(value));
  return text.empty() ? "the only point" : text;
}

SweepPlan parse_sweep_plan(std::string_view text, const std::string& name,
                           std::span<const std::string> environment, int cores) {
  const Json json = parse_json_object(text, name, "plan");
  check_members(json, name);
  const auto place = [&](const char* member) { return fmt::format("{}: /{}", name, member); };

  SweepPlan plan;
  plan.command = read_command(json, name);
  const SettingsContext context{plan.command, cores};
  if (json.contains("repeats"))
    plan.repeats = whole_number(json["repeats"], 1, 10'000, place("repeats"));
  if (json.contains("seed")) plan.seed = whole_number(json["seed"], 0, INT64_MAX, place("seed"));
  if (json.contains("launch_timeout")) {
    const Json& seconds = json["launch_timeout"];
    if (!seconds.is_number() || seconds < 1 || seconds > 1e7)
      refuse_at(place("launch_timeout"), seconds.dump() + " is no number of seconds from 1 to 1e7");
    plan.launch_timeout = seconds;
  }
  RunConfig launch;
  for (const char* key : {"launcher", "hostfile"})
    if (json.contains(key))
      find_key(key)->set(launch, check_value(*find_key(key), json[key], place(key)));
  plan.launcher = launch.launcher;
  plan.hostfile = launch.hostfile;

  const Json common = json.contains("settings")
                          ? check_settings(context, json["settings"], place("settings"))
                          : Json::object();
  std::set<std::string> ids;
  for (const Json& own : read_points(context, json, name)) {
    try {
      plan.points.push_back(make_point(plan.command, common, own, environment));
    } catch (const ConfigError& error) {
      refuse_at(name, error.what());
    }
    if (!ids.insert(plan.points.back().id).second) plan.points.pop_back();
  }
  if (json.contains("default"))
    plan.standard = find_standard(
        plan.points, check_settings(context, json["default"], place("default")), place("default"));
  return plan;
}

SweepPlan read_sweep_plan(const std::filesystem::path& path,
                          std::span<const std::string> environment, int cores) {
  check_text(path.string(), "plan");
  return parse_sweep_plan(read_json_text(path, "plan"), path.string(), environment, cores);
}

std::vector<std::pair<std::size_t, std::int64_t>> launch_order(std::size_t points,
                                                               std::int64_t repeats,
                                                               std::int64_t seed) {
  std::vector<std::pair<std::size_t, std::int64_t>> order;
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  for (std::int64_t repeat = 1; repeat <= repeats; ++repeat) {
    const std::size_t begin = order.size();
    for (std::size_t i = 0; i < points; ++i) {
      order.emplace_back(i, repeat);
      // Fisher and Yates, and not std::shuffle: its order differs between standard libraries.
      std::swap(order.back(), order[begin + random() % (i + 1)]);
    }
  }
  return order;
}

std::vector<std::pair<std::size_t, std::int64_t>> launch_order(const SweepPlan& plan) {
  return launch_order(plan.points.size(), plan.repeats, plan.seed);
}

}  // namespace scalemark

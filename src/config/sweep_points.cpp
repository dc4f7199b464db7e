// See sweep_points.hpp.
#include "config/sweep_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "config/json_text.hpp"
#include "config/load.hpp"
#include "config/names.hpp"
#include "config/shown_variables.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kMostPlanned = 10'000;

/// What "points" and "axes" say of a point.
struct PlannedPoint {
  Json settings = Json::object();
  LaunchCommands commands = {};
};

/// `settings` with those of `more`, which must be others.
Json joined(Json settings, const Json& more, const std::string& place, const char* here) {
  for (const auto& [name, value] : more.items()) {
    if (settings.contains(name))
      refuse_at(place, fmt::format("{} is both in \"{}\" and in \"points\"{}", quote(name), here,
                                   here == std::string_view("axes") ? "" : " or \"axes\""));
    settings[name] = value;
  }
  return settings;
}

/// Every pair of one of each, joined.
std::vector<PlannedPoint> product(const std::vector<PlannedPoint>& points,
                                  const std::vector<Json>& axis, const std::string& place) {
  if (points.size() * axis.size() > kMostPlanned)
    refuse_at(place, fmt::format("more than {} points", kMostPlanned));
  std::vector<PlannedPoint> all;
  for (const PlannedPoint& point : points)
    for (const Json& value : axis)
      all.push_back({joined(point.settings, value, place, "axes"), point.commands});
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

/// Settings, and the commands beside them.
PlannedPoint read_point(const SettingsContext& context, Json object, bool has_levels,
                        const std::string& place) {
  PlannedPoint point;
  if (object.is_object()) {
    point.commands = read_commands(object, has_levels, place);
    object.erase("before");
    object.erase("after");
  }
  point.settings = check_settings(context, object, place);
  return point;
}

std::vector<PlannedPoint> read_points(const SettingsContext& context, const Json& plan,
                                      const std::string& name) {
  std::vector<PlannedPoint> points(1);
  const std::string place = name + ": ";
  if (const auto listed = plan.find("points"); listed != plan.end()) {
    if (!listed->is_array() || listed->empty())
      refuse_at(place + "/points", "is no list of settings such as [{\"ranks\": 2}]");
    points.clear();
    for (std::size_t i = 0; i < listed->size(); ++i)
      points.push_back(read_point(context, (*listed)[i], plan.contains("alternate"),
                                  fmt::format("{}/points/{}", place, i)));
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
    if (name == "binding") launch.binding = from_string<Binding>(value.get<std::string>());
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
  if (point.config.container)
    identity["container"] = {*point.config.container,
                             point.config.container_runtime.value_or(kStandardRuntimes)};
  if (launch.binding) identity["binding"] = to_string(*launch.binding);
  if (point.settings.contains(kLevelSetting)) identity["level"] = point.settings[kLevelSetting];
  if (!point.commands.empty())
    identity["commands"] = {{"before", point.commands.before}, {"after", point.commands.after}};
  return sha256_hex(identity.dump());
}

/// `level`: null where the plan does not alternate.
SweepPoint make_point(const CommonOfPoints& common, const PlannedPoint& own, const Level* level) {
  SweepPoint point;
  point.settings = own.settings;
  point.commands = nested(common.commands, own.commands);
  Json all = common.settings;
  for (const auto& [name, value] : own.settings.items()) all[name] = value;
  if (level) {
    point.settings[kLevelSetting] = level->name;
    point.commands = nested(point.commands, level->commands);
    for (const auto& [name, value] : level->settings.items()) all[name] = value;
  }
  for (const auto& [name, value] : all.items())
    if (!name.starts_with(kVariablePrefix) && !is_launch_setting(name) && !value.is_null())
      point.arguments.push_back(fmt::format("--{}={}", name, text_of(value)));
  try {
    point.launch = launch_of(all);
    point.config = load_config(common.context.command, point.arguments, common.environment).config;
    point.config_hash = config_hash(point.config, point.launch.ranks, common.context.command);
  } catch (const ConfigError& error) {
    refuse_at(fmt::format("{}: {}", common.name, point.title()), error.what());
  }
  point.id = id_of(point);
  for (const auto& [name, value] : point.settings.items())
    if (name.starts_with(kVariablePrefix) && value.is_string())
      point.settings[name] =
          shown_variable(name.substr(kVariablePrefix.size()), value.get_ref<const std::string&>());
  return point;
}

/// A group of points: of one without levels, or one a level.
std::vector<SweepPoint> make_group(const CommonOfPoints& common, const PlannedPoint& own,
                                   const std::vector<Level>& levels) {
  if (levels.empty()) return {make_point(common, own, nullptr)};
  std::vector<SweepPoint> points;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    joined(own.settings, levels[i].settings, fmt::format("{}: /alternate/{}/set", common.name, i),
           "set");
    points.push_back(make_point(common, own, &levels[i]));
  }
  return points;
}

/// Tables and records tell points apart by their settings.
void refuse_same_settings(const CommonOfPoints& common, const SweepPoint& point,
                          const std::vector<SweepPoint>& others) {
  if (std::ranges::find(others, point.settings, &SweepPoint::settings) != others.end())
    refuse_at(fmt::format("{}: {}", common.name, point.title()),
              "is there twice, with other commands; make them levels of \"alternate\", which have "
              "names");
}

}  // namespace

std::string SweepPoint::title() const { return settings_title(settings); }

LaunchWords SweepPoint::words(std::int64_t repeat) const {
  return {std::to_string(launch.ranks), std::to_string(repeat),
          settings.value(kLevelSetting, std::string())};
}

std::vector<SweepPoint> make_points(const CommonOfPoints& common, const Json& plan) {
  std::vector<Level> levels;
  if (plan.contains("alternate"))
    levels = read_levels(common.context, plan["alternate"], common.name + ": /alternate");
  std::vector<SweepPoint> points;
  std::set<std::string> ids;
  std::size_t group = 0;
  for (const PlannedPoint& own : read_points(common.context, plan, common.name)) {
    for (SweepPoint& point : make_group(common, own, levels)) {
      if (!ids.insert(point.id).second) continue;
      if (!point.commands.empty()) refuse_same_settings(common, point, points);
      point.group = group;
      points.push_back(std::move(point));
    }
    if (!points.empty() && points.back().group == group) ++group;
  }
  return points;
}

}  // namespace scalemark

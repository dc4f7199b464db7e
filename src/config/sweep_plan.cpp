// Reads plans of sweeps, makes their points, and shuffles their launches.
#include "config/sweep_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/json_text.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/names.hpp"
#include "config/shown_variables.hpp"
#include "config/sweep_settings.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

/// A plan as it stands in its text; a member that was left out is null.
struct PlanText {
  const Json *schema, *description, *command, *settings, *axes, *points, *standard, *repeats, *seed,
      *launch_timeout, *command_timeout, *values, *before, *after, *alternate;
};

/// A level of "alternate" as it stands in the text of its plan.
struct LevelText {
  const Json *level, *settings, *before, *after;
};

/// The commands beside the settings of a point.
struct PointText {
  const Json *before, *after;
};

/// A command that is no list of words.
struct CommandText {
  const Json* each_host;
};

template <typename Text>
struct Member {
  const char* name;
  const Json* Text::*value;
};

constexpr std::array kPlanMembers{Member<PlanText>{"$schema", &PlanText::schema},
                                  Member<PlanText>{"description", &PlanText::description},
                                  Member<PlanText>{"command", &PlanText::command},
                                  Member<PlanText>{"settings", &PlanText::settings},
                                  Member<PlanText>{"axes", &PlanText::axes},
                                  Member<PlanText>{"points", &PlanText::points},
                                  Member<PlanText>{"default", &PlanText::standard},
                                  Member<PlanText>{"repeats", &PlanText::repeats},
                                  Member<PlanText>{"seed", &PlanText::seed},
                                  Member<PlanText>{"launch_timeout", &PlanText::launch_timeout},
                                  Member<PlanText>{"command_timeout", &PlanText::command_timeout},
                                  Member<PlanText>{"values", &PlanText::values},
                                  Member<PlanText>{"before", &PlanText::before},
                                  Member<PlanText>{"after", &PlanText::after},
                                  Member<PlanText>{"alternate", &PlanText::alternate}};
constexpr std::array kLevelMembers{
    Member<LevelText>{"level", &LevelText::level}, Member<LevelText>{"before", &LevelText::before},
    Member<LevelText>{"after", &LevelText::after}, Member<LevelText>{"set", &LevelText::settings}};
constexpr std::array kPointMembers{Member<PointText>{"before", &PointText::before},
                                   Member<PointText>{"after", &PointText::after}};
constexpr std::array kCommandMembers{Member<CommandText>{"each_host", &CommandText::each_host}};

/// Returns the members of an object that have a place in `Text`, and calls `other` with the name of
/// each that has none.
template <typename Text, std::size_t n, typename Other>
Text members_of(const Json& object, const std::array<Member<Text>, n>& members, Other other) {
  Text text{};
  for (const auto& [name, value] : object.items()) {
    const auto member = std::ranges::find(members, std::string_view(name), &Member<Text>::name);
    if (member == members.end())
      other(name);
    else
      text.*member->value = &value;
  }
  return text;
}

/// Refuses a member of `what` that has no place.
[[noreturn]] void refuse_member(const std::string& name, const std::vector<std::string>& legal,
                                const char* what, const std::string& place) {
  refuse_at(place, fmt::format("no member of {}{} (legal: {})", what, did_you_mean(name, legal),
                               join(legal, ", ")));
}

template <typename Text, std::size_t n>
std::vector<std::string> names_of_members(const std::array<Member<Text>, n>& members) {
  std::vector<std::string> names;
  for (const Member<Text>& member : members) names.push_back(member.name);
  return names;
}

// The functions below read what a sweep runs around its launches, and its levels.

constexpr std::string_view kLevel = "{level}";
/// What every launch has a value of its own for (LaunchWords).
constexpr std::array<std::string_view, 3> kLaunchWords{"ranks", "repeat", "level"};

/// What stands for something between braces in commands of a plan.
struct CommandNames {
  std::map<std::string, std::string> values;  ///< that the plan gives
  bool has_levels = false;                    ///< it alternates, so that {level} has a meaning
};

bool is_value_name(std::string_view name) {
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == name.npos;
}

std::map<std::string, std::string> read_values(const Json* values, const std::string& place) {
  std::map<std::string, std::string> read;
  if (!values) return read;
  if (!values->is_object()) refuse_at(place, "is no object such as {\"device\": \"eth0\"}");
  for (const auto& [name, value] : values->items()) {
    const std::string here = place + pointer_to(name);
    if (!is_value_name(name) || std::ranges::find(kLaunchWords, name) != kLaunchWords.end())
      refuse_at(here, fmt::format("is no name of a value: one has small letters, digits and _, and "
                                  "is none of {}",
                                  fmt::join(kLaunchWords, ", ")));
    if (!value.is_string()) refuse_at(here, value.dump() + " is no text, which a value is");
    check_text(value.get_ref<const std::string&>(), here);
    read[name] = value;
  }
  return read;
}

/// Returns a word with the plan's values in place of their names; those of a launch stay. Throws
/// ConfigError, which begins with `place`, for a name that nothing is known of. "${NAME}" may be a
/// variable of a shell.
std::string with_values(const std::string& word, const CommandNames& names,
                        const std::string& place) {
  std::string made;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t open = word.find('{', at), close = word.find('}', open);
    if (close == word.npos) return made + word.substr(at);
    const std::string name = word.substr(open + 1, close - open - 1);
    if (!is_value_name(name)) {
      made += word.substr(at, open + 1 - at);
      at = open + 1;
      continue;
    }
    if (name == "level" && !names.has_levels)
      refuse_at(place, "{level} is the name of one, and the plan has no \"alternate\"");
    const auto value = names.values.find(name);
    const bool known =
        value != names.values.end() || std::ranges::find(kLaunchWords, name) != kLaunchWords.end();
    if (!known && (open == 0 || word[open - 1] != '$')) {
      std::vector<std::string> legal(kLaunchWords.begin(), kLaunchWords.end());
      for (const auto& [other, text] : names.values) legal.push_back(other);
      refuse_at(place, fmt::format("{{{}}} stands for nothing{}: give it a text in the plan's "
                                   "\"values\", or write it with a space where the program is to "
                                   "see the braces (known: {})",
                                   name, did_you_mean(name, legal), join(legal, ", ")));
    }
    made += word.substr(at, open - at);
    made += value != names.values.end() ? value->second : word.substr(open, close + 1 - open);
    at = close + 1;
  }
  return made;
}

/// A level of "alternate".
struct Level {
  std::string name;  ///< "level"
  Json settings;     ///< "set": of its launches alone
  LaunchCommands commands;
};

/// `place` begins every message.
CommandWords read_command_words(const Json& words, const CommandNames& names,
                                const std::string& place) {
  if (!words.is_array() || words.empty())
    refuse_at(place, "is no command; one is a list of words such as [\"sleep\", \"1\"]");
  CommandWords command;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string here = fmt::format("{}/{}", place, i);
    if (!words[i].is_string()) refuse_at(here, "a word of a command is a text");
    command.push_back(words[i]);
    if (i == 0 || !command.back().empty()) check_text(command.back(), here);
    command.back() = with_values(command.back(), names, here);
  }
  return command;
}

PlanCommand read_plan_command(const Json& command, const CommandNames& names,
                              const std::string& place) {
  if (!command.is_object()) return {read_command_words(command, names, place)};
  const auto text = members_of(command, kCommandMembers, [&](const std::string& name) {
    refuse_member(name, names_of_members(kCommandMembers), "a command", place + pointer_to(name));
  });
  if (!text.each_host)
    refuse_at(place, "is no command; one on each host is {\"each_host\": [\"ethtool\", ...]}");
  return {read_command_words(*text.each_host, names, place + "/each_host"), true};
}

std::vector<PlanCommand> read_command_list(const Json* list, const CommandNames& names,
                                           const std::string& place) {
  std::vector<PlanCommand> commands;
  if (!list) return commands;
  if (!list->is_array()) refuse_at(place, "is no list of commands such as [[\"sleep\", \"1\"]]");
  for (std::size_t i = 0; i < list->size(); ++i)
    commands.push_back(read_plan_command((*list)[i], names, fmt::format("{}/{}", place, i)));
  return commands;
}

/// Reads "before" and "after" of a plan, a point or a level.
template <typename Text>
LaunchCommands read_commands(const Text& text, const CommandNames& names,
                             const std::string& place) {
  return {read_command_list(text.before, names, place + "/before"),
          read_command_list(text.after, names, place + "/after")};
}

Level read_level(const SettingsContext& context, const Json& object, const CommandNames& names,
                 const std::string& place) {
  LevelText text{};
  if (object.is_object())
    text = members_of(object, kLevelMembers, [&](const std::string& name) {
      refuse_member(name, names_of_members(kLevelMembers), "a level", place + pointer_to(name));
    });
  if (!text.level || !text.level->is_string())
    refuse_at(place, "is no level such as {\"level\": \"1gbit\", \"before\": [[\"tc\", ...]]}");
  Level level{*text.level, Json::object(), read_commands(text, names, place)};
  check_text(level.name, place + "/level");
  if (text.settings) level.settings = check_settings(context, *text.settings, place + "/set");
  return level;
}

/// Reads "alternate" of a plan. Throws ConfigError: fewer than two levels, names that are not
/// unique.
std::vector<Level> read_levels(const SettingsContext& context, const Json& levels,
                               const CommandNames& names, const std::string& place) {
  if (!levels.is_array() || levels.size() < 2)
    refuse_at(place, "is no list of two levels or more, which are launched side by side");
  std::vector<Level> all;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::string here = fmt::format("{}/{}", place, i);
    all.push_back(read_level(context, levels[i], names, here));
    const std::string& name = all.back().name;
    if (std::ranges::count(all, name, &Level::name) > 1)
      refuse_at(here + "/level", quote(name) + " is there twice");
  }
  return all;
}

/// Returns the commands of `inner` within those of `outer`: they run later before the launch, and
/// earlier after it.
LaunchCommands nested(const LaunchCommands& outer, const LaunchCommands& inner) {
  LaunchCommands both = outer;
  both.before.insert(both.before.end(), inner.before.begin(), inner.before.end());
  both.after.insert(both.after.begin(), inner.after.begin(), inner.after.end());
  return both;
}

// The functions below make the points of a sweep's plan, by crossing "points", "axes" and
// "alternate".

/// The properties that all points of a plan have in common.
struct CommonOfPoints {
  SettingsContext context;
  std::string name;                 ///< of the plan, in messages
  nlohmann::ordered_json settings;  ///< points go before them
  CommandNames names;
  LaunchCommands commands;
  std::span<const std::string> environment;  ///< "NAME=value" lines
};

constexpr std::size_t kMostPlanned = 10'000;

/// A point as "points" and "axes" describe it.
struct PlannedPoint {
  Json settings = Json::object();
  LaunchCommands commands = {};
};

/// Returns `settings` with those of `more`, which must have other keys.
Json joined(Json settings, const Json& more, const std::string& place, const char* here) {
  for (const auto& [name, value] : more.items()) {
    if (settings.contains(name))
      refuse_at(place, fmt::format("{} is both in \"{}\" and in \"points\"{}", quote(name), here,
                                   here == std::string_view("axes") ? "" : " or \"axes\""));
    settings[name] = value;
  }
  return settings;
}

/// Returns every pair of one point of each list, joined.
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

/// Reads the settings of a point, and the commands beside them.
PlannedPoint read_point(const SettingsContext& context, const Json& object,
                        const CommandNames& names, const std::string& place) {
  if (!object.is_object()) return {check_settings(context, object, place)};
  Json settings = Json::object();
  const PointText text = members_of(
      object, kPointMembers, [&](const std::string& name) { settings[name] = object[name]; });
  return {check_settings(context, settings, place), read_commands(text, names, place)};
}

std::vector<PlannedPoint> read_points(const SettingsContext& context, const PlanText& plan,
                                      const CommandNames& names, const std::string& name) {
  std::vector<PlannedPoint> points(1);
  if (plan.points) {
    const std::string place = name + ": /points";
    if (!plan.points->is_array() || plan.points->empty())
      refuse_at(place, "is no list of settings such as [{\"ranks\": 2}]");
    points.clear();
    for (std::size_t i = 0; i < plan.points->size(); ++i)
      points.push_back(
          read_point(context, (*plan.points)[i], names, fmt::format("{}/{}", place, i)));
  }
  if (plan.axes) {
    const std::string place = name + ": /axes";
    if (!plan.axes->is_object()) refuse_at(place, "is no object of lists");
    for (const auto& [member, values] : plan.axes->items()) {
      const std::string here = place + pointer_to(member);
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
  for (const auto& [name, value] : settings.items()) {
    if (name == "ranks") launch.ranks = value.get<int>();
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

/// A command that runs here is a list of words, as before there were others.
nlohmann::json identity_of(const std::vector<PlanCommand>& commands) {
  nlohmann::json all = nlohmann::json::array();
  for (const PlanCommand& command : commands)
    all.push_back(command.each_host ? nlohmann::json{{"each_host", command.words}}
                                    : nlohmann::json(command.words));
  return all;
}

/// Hashed, so every key stays as it is.
std::string id_of(const SweepPoint& point) {
  const PointLaunch& launch = point.launch;
  nlohmann::json environment;
  for (const auto& [name, value] : launch.environment)
    environment[name] = value ? nlohmann::json(*value) : nlohmann::json();
  nlohmann::json identity{{"config_hash", point.config_hash},
                          {"environment", environment},
                          {"ranks", launch.ranks},
                          {"ranks_per_node", launch.ranks_per_node.value_or(0)},
                          {"cpus_per_rank", launch.cpus_per_rank.value_or(0)}};
  if (point.config.container)
    identity.push_back(
        {"container",
         {*point.config.container, point.config.container_runtime.value_or(kStandardRuntimes)}});
  if (launch.binding) identity.push_back({"binding", to_string(*launch.binding)});
  if (const auto level = point.settings.find(kLevelSetting); level != point.settings.end())
    identity.push_back({"level", *level});
  if (!point.commands.empty())
    identity.push_back({"commands",
                        {{"before", identity_of(point.commands.before)},
                         {"after", identity_of(point.commands.after)}}});
  return sha256_hex(identity.dump());
}

/// Makes a point. `level` is null where the plan does not alternate.
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

/// Makes a group of points: one point without levels, or one for each level.
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

/// Refuses points of the same settings, since tables and records distinguish points by their
/// settings.
void refuse_same_settings(const CommonOfPoints& common, const SweepPoint& point,
                          const std::vector<SweepPoint>& others) {
  if (std::ranges::find(others, point.settings, &SweepPoint::settings) != others.end())
    refuse_at(fmt::format("{}: {}", common.name, point.title()),
              "is there twice, with other commands; make them levels of \"alternate\", which have "
              "names");
}

/// Returns each point once, with those of a group in a row. Throws ConfigError.
std::vector<SweepPoint> make_points(const CommonOfPoints& common, const PlanText& plan) {
  std::vector<Level> levels;
  if (plan.alternate)
    levels =
        read_levels(common.context, *plan.alternate, common.names, common.name + ": /alternate");
  std::vector<SweepPoint> points;
  std::set<std::string> ids;
  std::size_t group = 0;
  for (const PlannedPoint& own : read_points(common.context, plan, common.names, common.name)) {
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

}  // namespace

CommandWords filled_in(const CommandWords& command, const LaunchWords& words) {
  CommandWords filled = command;
  for (const auto& [name, value] :
       {std::pair<std::string_view, std::string_view>{"{ranks}", words.ranks},
        {"{repeat}", words.repeat},
        {kLevel, words.level}})
    for (std::string& word : filled)
      for (std::size_t at = 0; (at = word.find(name, at)) != word.npos; at += value.size())
        word.replace(at, name.size(), value);
  return filled;
}

namespace {

constexpr std::int64_t kMostLaunches = 100'000;

Command read_command(const Json* command, const std::string& place) {
  const std::string word = command ? command->dump() : "\"run\"";
  if (word == "\"run\"") return Command::run;
  if (word == "\"infer\"") return Command::infer;
  refuse_at(place, word + " is no command of a sweep (legal: run, infer)");
}

double read_seconds(const Json* seconds, double standard, const std::string& place) {
  if (!seconds) return standard;
  if (!seconds->is_number() || *seconds < 1 || *seconds > 1e7)
    refuse_at(place, seconds->dump() + " is no number of seconds from 1 to 1e7");
  return *seconds;
}

PlanText read_plan_text(const Json& plan, const std::string& name) {
  const PlanText text = members_of(plan, kPlanMembers, [&](const std::string& member) {
    if (std::ranges::find(kLaunchKeys, member) != kLaunchKeys.end()) return;
    std::vector<std::string> legal = names_of_members(kPlanMembers);
    legal.insert(legal.end(), kLaunchKeys.begin(), kLaunchKeys.end());
    refuse_member(member, legal, "a plan", fmt::format("{}: {}", name, pointer_to(member)));
  });
  if (text.schema && !text.schema->is_string()) refuse_at(name + ": /$schema", "must be a text");
  if (text.description && !text.description->is_string())
    refuse_at(name + ": /description", "must be a text");
  return text;
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

/// Appends a launch of each point, in an order shuffled by the algorithm of Fisher and Yates. The
/// order of std::shuffle differs between standard libraries.
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

std::string SweepPoint::title() const { return settings_title(settings); }

LaunchWords SweepPoint::words(std::int64_t repeat) const {
  return {std::to_string(launch.ranks), std::to_string(repeat),
          settings.value(kLevelSetting, std::string())};
}

SweepPlan parse_sweep_plan(const Json& json, const std::string& name,
                           std::span<const std::string> environment, int cores) {
  const PlanText text = read_plan_text(json, name);
  const auto place = [&](const char* member) { return fmt::format("{}: /{}", name, member); };

  SweepPlan plan;
  plan.command = read_command(text.command, place("command"));
  const SettingsContext context{plan.command, cores, &plan.warnings};
  if (text.repeats) plan.repeats = whole_number(*text.repeats, 1, 10'000, place("repeats"));
  if (text.seed) plan.seed = whole_number(*text.seed, 0, INT64_MAX, place("seed"));
  plan.launch_timeout =
      read_seconds(text.launch_timeout, plan.launch_timeout, place("launch_timeout"));
  plan.command_timeout =
      read_seconds(text.command_timeout, plan.command_timeout, place("command_timeout"));
  RunConfig launch;
  for (const char* key : kLaunchKeys)
    if (json.contains(key))
      find_key(key)->set(launch, check_value(*find_key(key), json[key], place(key)));
  set_launch_keys(plan, launch);

  plan.values = read_values(text.values, place("values"));
  const CommandNames names{plan.values, text.alternate != nullptr};
  const CommonOfPoints common{
      context,
      name,
      text.settings ? check_settings(context, *text.settings, place("settings")) : Json::object(),
      names,
      read_commands(text, names, name + ": "),
      environment};
  plan.points = make_points(common, text);
  if (static_cast<std::int64_t>(plan.points.size()) * plan.repeats > kMostLaunches)
    refuse_at(name + ": /repeats", fmt::format("{} points x {} repeats are more than {} launches",
                                               plan.points.size(), plan.repeats, kMostLaunches));
  if (text.standard)
    plan.standard = find_standard(plan.points, context, *text.standard, place("default"));
  return plan;
}

void replace_values(const std::vector<Json*>& plans, const std::vector<std::string>& words,
                    const std::string& what) {
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos || equals == 0)
      refuse_at("--value", quote(word) + " is no NAME=TEXT, such as device=ib0");
    const std::string name = word.substr(0, equals);
    std::set<std::string> names;
    for (Json* plan : plans) {
      const auto values = plan->find("values");
      if (values == plan->end() || !values->is_object()) continue;
      for (const auto& [other, text] : values->items()) names.insert(other);
      if (values->contains(name)) (*values)[name] = word.substr(equals + 1);
    }
    if (names.contains(name)) continue;
    const std::vector<std::string> legal(names.begin(), names.end());
    refuse_at(
        "--value",
        fmt::format("{} is no value of {}{} ({})", quote(name), what, did_you_mean(name, legal),
                    legal.empty() ? "it has none" : "it has " + join(legal, ", ")));
  }
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
                          std::span<const std::string> environment, int cores,
                          const std::vector<std::string>& values) {
  check_text(path.string(), "plan");
  Json plan = read_json_object(path, "plan");
  replace_values({&plan}, values);
  return parse_sweep_plan(plan, path.string(), environment, cores);
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

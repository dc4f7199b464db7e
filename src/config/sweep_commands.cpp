// See sweep_commands.hpp.
#include "config/sweep_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/json_text.hpp"
#include "config/keys.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

const std::vector<std::string> kLevelMembers{"level", "before", "after", "set"};
constexpr std::string_view kLevel = "{level}";

CommandWords read_command_words(const Json& words, bool has_levels, const std::string& place) {
  if (!words.is_array() || words.empty())
    refuse_at(place, "is no command; one is a list of words such as [\"sleep\", \"1\"]");
  CommandWords command;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string here = fmt::format("{}/{}", place, i);
    if (!words[i].is_string()) refuse_at(here, "a word of a command is a text");
    command.push_back(words[i]);
    if (i == 0 || !command.back().empty()) check_text(command.back(), here);
    if (!has_levels && command.back().find(kLevel) != std::string::npos)
      refuse_at(here, "{level} is the name of one, and the plan has no \"alternate\"");
  }
  return command;
}

std::vector<CommandWords> read_command_list(const Json& object, const char* member, bool has_levels,
                                            const std::string& place) {
  std::vector<CommandWords> commands;
  const auto found = object.find(member);
  if (found == object.end()) return commands;
  const std::string here = fmt::format("{}/{}", place, member);
  if (!found->is_array()) refuse_at(here, "is no list of commands such as [[\"sleep\", \"1\"]]");
  for (std::size_t i = 0; i < found->size(); ++i)
    commands.push_back(read_command_words((*found)[i], has_levels, fmt::format("{}/{}", here, i)));
  return commands;
}

Level read_level(const SettingsContext& context, const Json& object, const std::string& place) {
  if (!object.is_object() || !object.contains("level") || !object["level"].is_string())
    refuse_at(place, "is no level such as {\"level\": \"1gbit\", \"before\": [[\"tc\", ...]]}");
  for (const auto& [member, value] : object.items())
    if (std::ranges::find(kLevelMembers, member) == kLevelMembers.end())
      refuse_at(place + pointer_to(member),
                fmt::format("no member of a level{} (legal: {})",
                            did_you_mean(member, kLevelMembers), join(kLevelMembers, ", ")));
  Level level{object["level"], Json::object(), read_commands(object, true, place)};
  check_text(level.name, place + "/level");
  if (object.contains("set"))
    level.settings = check_settings(context, object["set"], place + "/set");
  return level;
}

}  // namespace

LaunchCommands read_commands(const Json& object, bool has_levels, const std::string& place) {
  return {read_command_list(object, "before", has_levels, place),
          read_command_list(object, "after", has_levels, place)};
}

std::vector<Level> read_levels(const SettingsContext& context, const Json& levels,
                               const std::string& place) {
  if (!levels.is_array() || levels.size() < 2)
    refuse_at(place, "is no list of two levels or more, which are launched side by side");
  std::vector<Level> all;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::string here = fmt::format("{}/{}", place, i);
    all.push_back(read_level(context, levels[i], here));
    const std::string& name = all.back().name;
    if (std::ranges::count(all, name, &Level::name) > 1)
      refuse_at(here + "/level", quote(name) + " is there twice");
  }
  return all;
}

LaunchCommands nested(const LaunchCommands& outer, const LaunchCommands& inner) {
  LaunchCommands both = outer;
  both.before.insert(both.before.end(), inner.before.begin(), inner.before.end());
  both.after.insert(both.after.begin(), inner.after.begin(), inner.after.end());
  return both;
}

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

}  // namespace scalemark

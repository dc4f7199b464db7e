// Checks the settings of a plan and evaluates expressions of "cores".
#include "config/sweep_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "config/json_text.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/names.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

constexpr std::string_view kBinding = "binding";
constexpr std::array<std::string_view, 4> kLaunchSettings{"ranks", "ranks_per_node",
                                                          "cpus_per_rank", kBinding};
constexpr std::string_view kCores = "cores";

/// Returns the number after a sign, as in "/4", or nullopt where there is none from 1 to a million.
std::optional<std::int64_t> number_behind(std::string_view text) {
  const auto number = text.empty() ? std::nullopt : parse_integer(text.substr(1));
  return number && *number >= 1 && *number <= 1'000'000 ? number : std::nullopt;
}

/// Returns the number that "cores", "cores-1", "cores/2", "cores/4-1" or "cores*8" stands for, at
/// least 1; any other value as it is.
Json with_cores(const Json& value, int cores) {
  if (!value.is_string() || !value.get_ref<const std::string&>().starts_with(kCores)) return value;
  const std::string text = value.get<std::string>().substr(kCores.size());
  const std::string_view rest = text;
  const std::size_t minus = std::min(rest.find('-'), rest.size());
  const std::string_view share = rest.substr(0, minus), less = rest.substr(minus);
  const auto shared = number_behind(share), left_out = number_behind(less);
  if ((!share.empty() && !shared) || (!less.empty() && !left_out)) return value;
  std::int64_t number = cores;
  if (!share.empty() && share[0] != '/' && share[0] != '*') return value;
  if (!share.empty()) number = share[0] == '/' ? number / *shared : number * *shared;
  return std::max<std::int64_t>(1, number - left_out.value_or(0));
}

Json check_binding(const Json& value, const std::string& place) {
  const auto binding =
      value.is_string() ? from_string<Binding>(value.get<std::string>()) : std::nullopt;
  if (!binding)
    refuse_at(place,
              fmt::format("{} is no binding (legal: core, socket, numa, none)", value.dump()));
  return value;
}

void add_once(std::vector<std::string>& warnings, const std::string& warning) {
  if (std::ranges::find(warnings, warning) == warnings.end()) warnings.push_back(warning);
}

void check_variable(const std::string& name, const Json& value, const std::string& place) {
  const auto letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  if (name.empty() || !std::ranges::all_of(name, letter) ||
      std::isdigit(static_cast<unsigned char>(name.front())))
    refuse_at(place, "env. is followed by the name of a variable, such as env.NCCL_ALGO");
  if (name.starts_with("SCALEMARK_") || name.starts_with("SMK_"))
    refuse_at(place, "settings of scalemark are keys of the plan, not variables");
  if (value.is_null()) return;
  if (!value.is_string())
    refuse_at(place, "the value of a variable is a text, or null to unset it");
  if (!value.get_ref<const std::string&>().empty())
    check_text(value.get_ref<const std::string&>(), place);
}

}  // namespace

bool is_launch_setting(std::string_view name) {
  return std::ranges::find(kLaunchSettings, name) != kLaunchSettings.end();
}

std::pair<std::string, Json> check_setting(const SettingsContext& context,
                                           const std::string& written, const Json& value,
                                           const std::string& place) {
  if (written.starts_with(kVariablePrefix)) {
    check_variable(written.substr(kVariablePrefix.size()), value, place);
    return {written, value};
  }
  const std::string name = canonical_name(written);
  if (name == kBinding) return {name, check_binding(value, place)};
  if (is_launch_setting(name))
    return {name, whole_number(with_cores(value, context.cores), 1, 1'000'000, place)};
  if (is_key(name, Trait::presentation))
    refuse_at(place, "a sweep decides this itself; leave it out");
  const Key& key = known_key(written, place);
  if (!key.commands.contains(context.command))
    refuse_at(place, fmt::format("no key of scalemark {}; leave it out", name_of(context.command)));
  const bool number = key.kind == Kind::integer;
  auto checked = check_written(name, number ? with_cores(value, context.cores) : value, place);
  if (context.warnings && !checked.warning.empty()) add_once(*context.warnings, checked.warning);
  return {key.name, std::move(checked.value)};
}

std::string settings_title(const Json& settings) {
  std::string text;
  for (const auto& [name, value] : settings.items())
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name,
                        value.is_string() ? value.get<std::string>() : value.dump());
  return text.empty() ? "the only point" : text;
}

std::int64_t whole_number(const Json& value, std::int64_t low, std::int64_t high,
                          const std::string& place) {
  if (!value.is_number_integer() || value < low || value > high)
    refuse_at(place, fmt::format("{} is no whole number from {} to {}", value.dump(), low, high));
  return value.get<std::int64_t>();
}

Json check_settings(const SettingsContext& context, const Json& object, const std::string& place) {
  if (!object.is_object())
    refuse_at(place, "is no object of settings such as {\"precision\": \"bf16\"}");
  Json settings = Json::object();
  for (const auto& [member, value] : object.items()) {
    const std::string here = place + pointer_to(member);
    auto [name, checked] = check_setting(context, member, value, here);
    if (settings.contains(name)) refuse_at(here, "the setting is there twice");
    settings[name] = std::move(checked);
  }
  return settings;
}

}  // namespace scalemark

// See curve_plan.hpp.
#include "config/curve_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/curves.hpp"
#include "config/keys.hpp"
#include "config/names.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

/// Seconds: a launch that hangs is ended by --timeout.
constexpr int kLongestLaunch = 1'000'000;

/// What the plan itself says.
constexpr std::array kOfPlan{"ranks", "ranks_per_node", "launcher", "hostfile"};

bool is_one_of(const auto& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

void refuse_rounds_alone(const ResolvedConfig& config) {
  const auto refuse = [](const char* what) {
    throw ConfigError(fmt::format(
        "--repeat_unit launch: {} is of rounds of one launch; leave out one of the two", what));
  };
  if (config.largest_batch) refuse("--batch_size max");
  if (config.base_batch_size) refuse("--base_batch_size");
  if (!config.more_micro_batch_sizes.empty()) refuse("a list of --micro_batch_size");
}

/// What was given by flags or a file; variables reach the launches themselves.
Json common_settings_of(const LoadedConfig& loaded, int cpus_per_rank) {
  Json settings = {{"cpus_per_rank", cpus_per_rank}};
  for (const Key& key : all_keys()) {
    const auto origin = loaded.origins.find(key.name);
    if (origin == loaded.origins.end() || origin->second == Origin::standard ||
        origin->second == Origin::environment)
      continue;
    const Json value = key.get(loaded.config);
    if (key.commands.contains(Command::run) && !key.traits.contains(Trait::presentation) &&
        !is_one_of(kOfPlan, key.name) && !value.is_array())
      settings[key.name] = value;
  }
  return settings;
}

/// `family`: the configuration whose lists the curve has a value of.
Json points_of_curve(const CurveConfig& curve, const ResolvedConfig& family,
                     const std::vector<std::int64_t>& ranks) {
  Json points = Json::array();
  for (const std::int64_t n : ranks) {
    Json point = {{"ranks", n}};
    for (const Key& key : all_keys())
      if (key.listed && key.get(family).is_array()) point[key.name] = key.get(curve.config);
    if (curve.config.ranks_per_node)
      point["ranks_per_node"] = std::min(*curve.config.ranks_per_node, n);
    points.push_back(point);
    if (n == 1 || !curve.config.baseline) continue;
    point["communicator"] = "none";
    if (curve.config.reducer != Reducer::scalemark)
      point["reducer"] = to_string(Reducer::scalemark);  // it has no communicator of its own
    points.push_back(point);
  }
  return points;
}

}  // namespace

Json curve_plan(const LoadedConfig& loaded, const std::vector<std::int64_t>& ranks,
                int cpus_per_rank) {
  const ResolvedConfig& config = loaded.config;
  refuse_rounds_alone(config);
  Json points = Json::array();
  for (const CurveConfig& curve : curves_of(config))
    for (const Json& point : points_of_curve(curve, config, ranks)) points.push_back(point);
  Json plan = {{"settings", common_settings_of(loaded, cpus_per_rank)},
               {"points", points},
               {"repeats", config.repeats},
               {"seed", config.seed},
               {"launcher", to_string(config.launcher)},
               {"launch_timeout", kLongestLaunch}};
  if (config.hostfile) plan["hostfile"] = *config.hostfile;
  return plan;
}

}  // namespace scalemark

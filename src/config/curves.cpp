// Divides the lists of a `scale` command into curves, checks their points, and makes the plan of a
// sweep from them.
#include "config/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/keys.hpp"
#include "config/names.hpp"
#include "config/sweep_plan.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {
namespace {

/// Returns the first value of a list and the others.
template <typename T, typename U>
std::vector<T> whole(const T& first, const std::vector<U>& more) {
  std::vector<T> list{first};
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

/// Returns the configuration without the lists that make it a family.
ResolvedConfig single(ResolvedConfig config) {
  config.more_models.clear();
  config.more_precisions.clear();
  config.more_reducers.clear();
  config.more_shards.clear();
  config.more_batch_sizes.clear();
  config.more_global_batch_sizes.clear();
  config.batch_per_precision = false;
  return config;
}

}  // namespace

std::vector<CurveConfig> curves_of(const ResolvedConfig& config) {
  using Batch = std::optional<std::int64_t>;
  const bool by_rank = !config.more_batch_sizes.empty();
  const bool many_batches = by_rank || !config.more_global_batch_sizes.empty();
  const std::vector<Batch> batches =
      by_rank ? whole(config.batch_size, config.more_batch_sizes)
              : whole(config.global_batch_size, config.more_global_batch_sizes);
  const std::vector<Precision> precisions = whole(config.precision, config.more_precisions);
  std::vector<CurveConfig> curves;
  const auto add = [&](const ResolvedConfig& of_model, Precision precision, Reducer reducer,
                       Shard shard, const Batch& batch) {
    std::vector<std::string> names;
    if (!config.more_models.empty()) names.push_back(of_model.model);
    if (precisions.size() > 1) names.push_back(to_string(precision));
    if (!config.more_reducers.empty()) names.push_back(to_string(reducer));
    if (!config.more_shards.empty()) names.push_back(to_string(shard));
    if (many_batches) names.push_back(fmt::format("b{}", *batch));
    curves.push_back({join(names, "-"), single(of_model)});
    ResolvedConfig& curve = curves.back().config;
    curve.precision = precision;
    curve.reducer = reducer;
    curve.shard = shard;
    if (shard == Shard::none) curve.shard_ranks.reset();
    (by_rank ? curve.batch_size : curve.global_batch_size) = batch;
  };
  for (const std::string& model : whole(config.model, config.more_models))
    for (std::size_t p = 0; p < precisions.size(); ++p)
      for (const Reducer reducer : whole(config.reducer, config.more_reducers))
        for (const Shard shard : whole(config.shard, config.more_shards))
          for (std::size_t b = 0; b < batches.size(); ++b)
            if (!config.batch_per_precision || p == b)
              add(config.of_model(model), precisions[p], reducer, shard, batches[b]);
  return curves;
}

std::filesystem::path curve_path(const std::filesystem::path& output, const std::string& name) {
  if (name.empty()) return output;
  std::filesystem::path path = output;
  return path.replace_filename(output.stem().string() + "-" + name + output.extension().string());
}

ResolvedConfig point_config(ResolvedConfig curve, std::int64_t ranks, std::int64_t base_ranks) {
  if (!curve.more_micro_batch_sizes.empty()) {
    const auto at = std::ranges::find(curve.ranks, ranks) - curve.ranks.begin();
    if (at > 0) curve.micro_batch_size = curve.more_micro_batch_sizes.at(at - 1);
    curve.more_micro_batch_sizes.clear();
  }
  if (ranks != base_ranks || !curve.base_batch_size) return curve;
  curve.batch_size = curve.base_batch_size;
  curve.global_batch_size = *curve.base_batch_size * ranks;
  curve.global_batch_tokens.reset();
  return curve;
}

LoadedConfig point_config(LoadedConfig curve, std::int64_t ranks, std::int64_t base_ranks) {
  const bool own_batch = ranks == base_ranks && curve.config.base_batch_size;
  curve.config = point_config(std::move(curve.config), ranks, base_ranks);
  if (own_batch)
    for (const char* key : {"batch_size", "global_batch_size", "global_batch_tokens"})
      curve.origins[key] = curve.origins["base_batch_size"];
  return curve;
}

void check_points(const ResolvedConfig& config, const std::vector<std::int64_t>& ranks) {
  if (ranks.size() < 2 && (config.base_batch_size || config.base_solution_steps))
    throw ConfigError(
        "--base_batch_size and --base_solution_steps are of the smallest rank count, which has no "
        "larger one to be compared with here: give two or more in --ranks, or leave them out");
  if (const auto more = config.more_micro_batch_sizes.size();
      more > 0 && more + 1 != config.ranks.size())
    throw ConfigError(
        fmt::format("--micro_batch_size has {} values and --ranks {}: give one value, or one for "
                    "each point of --ranks",
                    more + 1, config.ranks.size()));
  for (const CurveConfig& curve : curves_of(config))
    for (const std::int64_t n : ranks) plan_batch(point_config(curve.config, n, ranks.front()), n);
}

std::vector<LeaveOut> left_out_in_turn(const ResolvedConfig& curve, std::int64_t ranks) {
  if (ranks == 1 || !curve.baseline || curve.shard == Shard::none || curve.shard_ranks == 1 ||
      curve.leave_out != LeaveOut::none)
    return {};
  std::vector<LeaveOut> parts{LeaveOut::reduce_scatter, LeaveOut::allgather};
  if (ranks > curve.shard_ranks.value_or(ranks)) parts.push_back(LeaveOut::allreduce);
  return parts;
}

std::vector<CurveSegment> curve_segments(const ResolvedConfig& curve,
                                         const std::vector<std::int64_t>& ranks) {
  std::vector<CurveSegment> segments;
  for (const auto& [point, repeat] : launch_order(ranks.size(), curve.repeats, curve.seed)) {
    const int round = static_cast<int>(repeat - 1);
    const CurveSegment whole{point, round, false};
    if (ranks[point] == 1 || !curve.baseline) {
      segments.push_back(whole);
      continue;
    }
    segments.push_back({point, round, true});
    auto parts = left_out_in_turn(curve, ranks[point]);
    if (round % 2 == 1) std::ranges::reverse(parts);
    if (round % 2 == 0) segments.push_back(whole);
    for (const LeaveOut part : parts) segments.push_back({point, round, false, part});
    if (round % 2 == 1) segments.push_back(whole);
  }
  return segments;
}

namespace {

/// The limit of a launch in seconds. A launch that hangs is ended by --timeout before.
constexpr int kLongestLaunch = 1'000'000;

/// The settings that are members of the plan itself, or of those points alone that have them.
constexpr std::array kOfPlan{"ranks", "ranks_per_node", "launcher", "hostfile", "shard_ranks"};

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

/// Returns the settings that flags or a file gave. Variables reach the launches by themselves.
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

/// Returns the points of a curve. `family` is the configuration from whose lists the curve has its
/// values.
Json points_of_curve(const CurveConfig& curve, const ResolvedConfig& family,
                     const std::vector<std::int64_t>& ranks) {
  Json points = Json::array();
  for (const std::int64_t n : ranks) {
    Json point = {{"ranks", n}};
    for (const Key& key : all_keys())
      if (key.listed && key.get(family).is_array()) point[key.name] = key.get(curve.config);
    if (curve.config.ranks_per_node)
      point["ranks_per_node"] = std::min(*curve.config.ranks_per_node, n);
    if (curve.config.shard_ranks) point["shard_ranks"] = *curve.config.shard_ranks;
    points.push_back(point);
    if (n == 1 || !curve.config.baseline) continue;
    for (const LeaveOut part : left_out_in_turn(curve.config, n)) {
      points.push_back(point);
      points.back()["leave_out"] = to_string(part);
    }
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

// See curves.hpp.
#include "config/curves.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/names.hpp"
#include "config/sweep_plan.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

/// A list's first value and the others.
template <typename T, typename U>
std::vector<T> whole(const T& first, const std::vector<U>& more) {
  std::vector<T> list{first};
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

}  // namespace

std::vector<CurveConfig> curves_of(const ResolvedConfig& config) {
  using Batch = std::optional<std::int64_t>;
  const bool by_rank = !config.more_batch_sizes.empty();
  const bool many_batches = by_rank || !config.more_global_batch_sizes.empty();
  const std::vector<Batch> batches =
      by_rank ? whole(config.batch_size, config.more_batch_sizes)
              : whole(config.global_batch_size, config.more_global_batch_sizes);
  std::vector<CurveConfig> curves;
  for (const Precision precision : whole(config.precision, config.more_precisions))
    for (const Batch& batch : batches) {
      CurveConfig curve{"", config};
      curve.config.precision = precision;
      (by_rank ? curve.config.batch_size : curve.config.global_batch_size) = batch;
      curve.config.more_precisions.clear();
      curve.config.more_batch_sizes.clear();
      curve.config.more_global_batch_sizes.clear();
      if (!config.more_precisions.empty()) curve.name = to_string(precision);
      if (many_batches) curve.name += fmt::format("{}b{}", curve.name.empty() ? "" : "-", *batch);
      curves.push_back(std::move(curve));
    }
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

std::vector<CurveSegment> curve_segments(const std::vector<std::int64_t>& ranks,
                                         std::int64_t rounds, bool baselines, std::int64_t seed) {
  std::vector<CurveSegment> segments;
  for (const auto& [point, repeat] : launch_order(ranks.size(), rounds, seed)) {
    const int round = static_cast<int>(repeat - 1);
    if (baselines && ranks[point] > 1) segments.push_back({point, round, true});
    segments.push_back({point, round, false});
  }
  return segments;
}

}  // namespace scalemark

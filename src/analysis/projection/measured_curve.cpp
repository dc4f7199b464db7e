// Makes the curve that a cost model is fitted to, from launches or from a published curve.
#include "analysis/projection/measured_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/compare/match_sets.hpp"
#include "analysis/run_plan.hpp"
#include "config/json_text.hpp"
#include "config/keys.hpp"
#include "config/names.hpp"
#include "error.hpp"
#include "models/catalog.hpp"

namespace scalemark {
namespace {

constexpr double kMebi = 1 << 20;

/// Beside keys of the configuration, what changes with the ranks of one curve.
const std::set<std::string> kOfPlacement{"hosts", "transport", "ranks_per_node"};

bool may_differ(const std::string& name) {
  return kOfPlacement.contains(name) || is_key(name, Trait::varies_with_ranks);
}

std::string text_of(const MeasuredLaunch& launch, const std::string& key) {
  const auto found = launch.keys.find(key);
  return plain_value(found == launch.keys.end() ? Json() : found->second);
}

/// One setting, or ConfigError naming the first key that differs.
void check_one_setting(const ResultSet& set) {
  const MeasuredLaunch& first = set.launches.front();
  for (const MeasuredLaunch& launch : set.launches) {
    std::set<std::string> names;
    for (const auto& [name, value] : first.keys) names.insert(name);
    for (const auto& [name, value] : launch.keys) names.insert(name);
    for (const std::string& name : names) {
      if (may_differ(name) || first.unknown.contains(name) || launch.unknown.contains(name) ||
          text_of(first, name) == text_of(launch, name))
        continue;
      throw ConfigError(fmt::format(
          "{}: launches differ in {} ({}; {}), a curve has one setting: give the records of one",
          set.path, name, text_of(first, name), text_of(launch, name)));
    }
  }
}

template <typename T>
T value_or(const MeasuredLaunch& launch, const char* key, T otherwise) {
  const auto found = launch.keys.find(key);
  if (found == launch.keys.end() || found->second.is_null()) return otherwise;
  try {
    return found->second.get<T>();
  } catch (const Json::exception&) {
    throw ResultError(fmt::format("{}: {} is {}, which is no value of it", launch.path.string(),
                                  key, shown_value(found->second)));
  }
}

/// Target tokens of a sequence; other units count samples.
double units_per_sample(const MeasuredLaunch& launch, const ModelFacts& facts) {
  if (launch.unit != "tokens/sec") return 1;
  return static_cast<double>(value_or(launch, "sequence_length", facts.sequence_length));
}

/// Adds what --shard makes of the buckets, which it plans as --dry_run does.
void add_shard(MeasuredCurve& curve, const MeasuredLaunch& launch, const ModelFacts& facts) {
  const std::string name = value_or<std::string>(launch, "shard", to_string(Shard::none));
  const auto shard = from_string<Shard>(name);
  if (!shard)
    throw ResultError(fmt::format("{}: shard is {}, which is no value of it", launch.path.string(),
                                  shown_value(Json(name))));
  curve.shard = name;
  if (*shard == Shard::none) return;
  if (const auto groups = launch.keys.find("shard_ranks");
      groups != launch.keys.end() && groups->second.is_number())
    throw ConfigError(
        fmt::format("{}: shard_ranks is {}: the model has no groups of ranks; give a curve of "
                    "--shard alone",
                    launch.path.string(), shown_value(groups->second)));
  BucketPlan& buckets = curve.buckets;
  const std::string precision = value_or<std::string>(launch, "precision", "fp32");
  const bool narrow = precision == "bf16" || precision == "fp16";
  const auto parameters = static_cast<double>(facts.parameters);
  const ShardTraffic traffic = shard_traffic(
      facts, {*shard, 1, std::max<std::int64_t>(1, std::llround(buckets.bucket_bytes)),
              std::llround(buckets.gradient_bytes / std::max(1., parameters)), narrow ? 2 : 4});
  ShardPlan& plan = buckets.shard;
  plan.divides = true;
  plan.after_passes = *shard != Shard::optimizer;
  const auto micro = launch.keys.find("micro_batch_size");
  if (micro != launch.keys.end() && micro->second.is_number())
    plan.micro_batch = micro->second.get<double>();
  plan.kept_bytes = static_cast<double>(traffic.kept_bytes);
  plan.kept_messages = static_cast<double>(traffic.kept_messages);
  if (traffic.blocks == 0) {
    buckets.bucket_bytes = std::max(buckets.bucket_bytes,
                                    buckets.gradient_bytes / static_cast<double>(traffic.buckets));
    return;
  }
  plan.blocks = traffic.blocks;
  plan.block_bytes = static_cast<double>(traffic.weight_block_bytes);
  plan.block_share = static_cast<double>(facts.block_parameters) / parameters;
  const double outside = 1 - static_cast<double>(plan.blocks) * plan.block_share;
  const auto head = static_cast<double>(facts.vocabulary * facts.width) / parameters;
  if (!facts.tied) plan.early_share = std::min(1., head / outside);
}

void add_work(MeasuredCurve& curve, const MeasuredLaunch& launch) {
  curve.model = value_or<std::string>(launch, "model", "");
  const auto facts = find_model(curve.model);
  if (!facts)
    throw ConfigError(fmt::format("{}: no facts about the model {}; scalemark list models",
                                  launch.path.string(), curve.model));
  curve.unit = launch.unit;
  curve.parameters = static_cast<double>(facts->parameters);
  curve.units_per_sample = units_per_sample(launch, *facts);
  const bool two_bytes = value_or<std::string>(launch, "wire_dtype", "fp32") != "fp32";
  curve.buckets.gradient_bytes = curve.parameters * (two_bytes ? 2 : 4);
  curve.buckets.bucket_bytes =
      value_or(launch, "bucket_mb",
               default_bucket_mb(value_or<std::string>(launch, "device", "") == "cuda")) *
      kMebi;
  curve.buckets.first_bucket_bytes = value_or(launch, "first_bucket_mb", 1.) * kMebi;
  curve.buckets.hiding =
      hiding_from(value_or<std::string>(launch, "overlap", "backward")).value_or(Hiding::backward);
  add_shard(curve, launch, *facts);
}

double batch_of(const MeasuredLaunch& launch) {
  if (launch.keys.contains("batch_size")) return value_or(launch, "batch_size", 1.);
  return value_or(launch, "global_batch_size", 1.) / launch.ranks;
}

void add_launch(std::map<std::pair<std::int64_t, double>, CurvePoint>& points,
                const MeasuredLaunch& launch, double units_per_sample) {
  const double batch = batch_of(launch);
  CurvePoint& point = points[{launch.ranks, batch}];
  point.ranks = launch.ranks;
  point.batch_per_rank = batch;
  const double units_per_step = batch * launch.ranks * units_per_sample;
  for (const Work& work : launch.repeats)
    point.step_seconds.push_back(units_per_step * work.seconds / work.units);
  if (launch.baseline_throughput)
    point.baseline_step_seconds = units_per_step / *launch.baseline_throughput;
}

/// Most ranks that shared a host, where every launch tells.
std::optional<std::int64_t> ranks_per_node(const ResultSet& set) {
  std::int64_t most = 1;
  for (const MeasuredLaunch& launch : set.launches) {
    if (launch.ranks > 1 && !launch.keys.contains("hosts")) return std::nullopt;
    const auto hosts = value_or<std::int64_t>(launch, "hosts", 1);
    most = std::max(most, (launch.ranks + hosts - 1) / hosts);
  }
  return most;
}

}  // namespace

MeasuredCurve curve_of(const ResultSet& set) {
  const MeasuredLaunch& first = set.launches.front();
  if (value_or<std::string>(first, "kind", "run") != "run")
    throw ConfigError(fmt::format(
        "{}: inferences communicate nothing; give records of scale, sweep or run", set.path));
  check_one_setting(set);
  MeasuredCurve curve;
  curve.label = set.label;
  curve.path = set.path;
  curve.scaling =
      from_string<Scaling>(value_or<std::string>(first, "scaling", "weak")).value_or(Scaling::weak);
  curve.left_out = set.left_out;
  add_work(curve, first);
  bool rounds = false;
  std::map<std::pair<std::int64_t, double>, CurvePoint> points;
  for (const MeasuredLaunch& launch : set.launches) {
    add_launch(points, launch, curve.units_per_sample);
    rounds = rounds || launch.repeats.size() > 1;
    if (launch.ranks == set.launches.front().ranks && launch.step_deviation)
      curve.step_deviation = launch.step_deviation;
    if (std::ranges::find(curve.records, launch.id) == curve.records.end())
      curve.records.push_back(launch.id);
  }
  curve.cpu = value_or<std::string>(first, "device", "auto") != "cuda";
  curve.kind = rounds ? "rounds" : "launches";
  curve.ranks_per_node = ranks_per_node(set);
  for (auto& [place, point] : points) curve.points.push_back(std::move(point));
  return curve;
}

MeasuredCurve curve_of(const PublishedCurve& published, const std::string& label,
                       const std::string& path) {
  MeasuredCurve curve;
  curve.label = label;
  curve.path = path;
  curve.kind = "published";
  curve.source = known_text(published.source);
  curve.model = published.model;
  curve.unit = published.unit;
  curve.scaling = published.scaling;
  curve.shard = Unknown{"published curves are taken for allreduced ones"};
  curve.parameters = published.parameters;
  curve.units_per_sample = published.units_per_sample;
  curve.buckets = {published.parameters * published.bytes_per_gradient, kMebi,
                   published.bucket_mb * kMebi,
                   hiding_from(published.overlap).value_or(Hiding::backward)};
  curve.ranks_per_node = published.ranks_per_node;
  curve.link_gbit = published.link_gbit;
  for (const auto& point : published.points) {
    const double units =
        point.batch_size_per_rank * static_cast<double>(point.ranks) * published.units_per_sample;
    curve.points.push_back(
        {point.ranks, point.batch_size_per_rank, {units / point.throughput}, std::nullopt});
  }
  return curve;
}

}  // namespace scalemark

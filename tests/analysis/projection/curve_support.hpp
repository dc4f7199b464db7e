// Hand-made curves for the tests of projections.
#pragma once

#include <vector>

#include "analysis/projection/measured_curve.hpp"
#include "analysis/projection/step_model.hpp"
#include "measure/statistics.hpp"

namespace scalemark::test {

/// A weak curve of 100 MB of gradients and batch 32 without points.
inline MeasuredCurve empty_curve() {
  MeasuredCurve curve;
  curve.label = "made";
  curve.path = "made.json";
  curve.kind = "launches";
  curve.model = "resnet50";
  curve.unit = "images/sec";
  curve.shard = std::string("none");
  curve.parameters = 25e6;
  curve.buckets = {100e6, 1 << 20, 8 << 20, Hiding::backward};
  curve.ranks_per_node = 1;
  return curve;
}

/// ZeRO-3 of ten blocks with nine tenths of the weights, whose type is that of gradients.
inline ShardPlan blocks_of_ten() {
  return {.divides = true,
          .after_passes = true,
          .kept_bytes = 10e6,
          .blocks = 10,
          .block_bytes = 9e6,
          .block_share = 0.09};
}

/// What the model itself says of these ranks.
inline MeasuredCurve curve_from(const CostParameters& truth, const std::vector<std::int64_t>& ranks,
                                Hiding hiding = Hiding::backward, const ShardPlan& shard = {}) {
  MeasuredCurve curve = empty_curve();
  curve.buckets.hiding = hiding;
  curve.buckets.shard = shard;
  if (shard.divides) curve.shard = std::string("parameters");
  curve.ranks_per_node = truth.network.ranks_per_node;
  for (const std::int64_t n : ranks) {
    const StepCost cost = step_cost(truth, {32, curve.buckets}, n,
                                    expected_maximum_of_normals(static_cast<double>(n)));
    curve.points.push_back({n, 32, {cost.seconds()}, std::nullopt});
  }
  return curve;
}

/// Half a second of computation, 2 % between ranks, 2.5 Gbit/s and 20 us between nodes.
inline CostParameters truth() {
  CostParameters made;
  made.compute_seconds = 0.5;
  made.reference_batch = 32;
  made.straggler_deviation = 0.02;
  made.network = {{5e-6, 1e-10}, {20e-6, 8e-9 / 2.5}, 1e-10, 1};
  return made;
}

/// Throughputs of ranks that scale as they are told: batch 32, one rank 100 images/sec.
inline MeasuredCurve curve_of_throughputs(
    const std::vector<std::pair<std::int64_t, double>>& throughputs) {
  MeasuredCurve curve = empty_curve();
  for (const auto& [ranks, throughput] : throughputs)
    curve.points.push_back(
        {ranks, 32, {32. * static_cast<double>(ranks) / throughput}, std::nullopt});
  return curve;
}

}  // namespace scalemark::test

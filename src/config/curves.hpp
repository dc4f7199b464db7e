// Defines the curves of one `scale` command, each with one value of every list, and the
// configuration of their points.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

/// One curve: the configuration with every list reduced to one value.
struct CurveConfig {
  std::string name;  ///< what it differs by: "bf16", "resnet50-bf16-b16"; empty where it is alone
  ResolvedConfig config;
};

/// Returns the curves of a configuration: batches within reducers within precisions within models,
/// each in the order given; with --batch_per_precision the batch of each precision alone.
std::vector<CurveConfig> curves_of(const ResolvedConfig& config);

/// Returns the path of the record of a curve: FILE.json, or FILE-NAME.json in a family.
std::filesystem::path curve_path(const std::filesystem::path& output, const std::string& name);

/// Returns the configuration of a curve's point of `ranks` ranks: that of the curve, but with its
/// own value of a --micro_batch_size that is a list, and the base (the smallest rank count) has the
/// batch of --base_batch_size where that is given.
ResolvedConfig point_config(ResolvedConfig curve, std::int64_t ranks, std::int64_t base_ranks);
/// Returns the same with the origins of the replaced values.
LoadedConfig point_config(LoadedConfig curve, std::int64_t ranks, std::int64_t base_ranks);

/// Throws ConfigError where a batch does not divide at one of the points `ranks` (ascending) of
/// one of the curves, where there is not a --micro_batch_size for each point, or where a base of
/// its own has no other point to be compared with.
void check_points(const ResolvedConfig& config, const std::vector<std::int64_t>& ranks);

/// A measured run of a curve; of a curve with --leave_out that is whole too.
struct CurveSegment {
  std::size_t point;
  int round;      ///< from 0
  bool baseline;  ///< without communication
  LeaveOut leave_out = LeaveOut::none;
  bool is_whole() const { return !baseline && leave_out == LeaveOut::none; }
  bool operator==(const CurveSegment&) const = default;
};

/// Returns the collectives that are left out one by one beside the baseline of a curve's point of
/// `ranks`: those of --shard, or none.
std::vector<LeaveOut> left_out_in_turn(const ResolvedConfig& curve, std::int64_t ranks);

/// Returns the runs of a curve at `ranks`. Every round measures every point once, in an order
/// shuffled by the seed (launch_order()), so that a drift of the machine meets all points alike.
/// With --baseline each point of several ranks comes after its baseline, so that its record can
/// name it, and beside it stand, before it and after it by turns, those without one collective.
std::vector<CurveSegment> curve_segments(const ResolvedConfig& curve,
                                         const std::vector<std::int64_t>& ranks);

// The function below expresses a curve as the plan of a sweep, in which every point and repeat is a
// separate launch.

/// Returns the plan (docs/sweep.md) of `scale --repeat_unit launch`: its curves at `ranks`, with
/// launches without communication where they are requested, and `cpus_per_rank` at every point.
/// Throws ConfigError for what only rounds of one launch have: --batch_size max, a base or
/// micro-batches of their own.
nlohmann::ordered_json curve_plan(const LoadedConfig& loaded,
                                  const std::vector<std::int64_t>& ranks, int cpus_per_rank);

}  // namespace scalemark

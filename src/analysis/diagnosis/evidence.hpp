// What the rules look at: the numbers of records that they need, each with its place, and how they
// are read. What a record does not have, or has of another type than its schema says, is unknown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/match_sets.hpp"
#include "analysis/diagnosis/finding.hpp"
#include "json.hpp"

namespace scalemark::diagnosis {

struct RankEvidence {
  Number rank, step_seconds, wait_seconds;  ///< means of a step
  Text host;
  bool straggler = false;
};

/// What the throughput did while a run went on.
struct DriftEvidence {
  std::string verdict;  ///< "slower", "faster", "steady", "not shown"
  Number change, p;
  Bounds ci95;
};

/// A run, or an inference, whose ranks may have a straggler too.
struct RunEvidence {
  std::string id;
  std::string name;  ///< "resnet50 fp32, 4 ranks x 8"
  bool ok = false;   ///< its status
  Number world_size, batch_size_per_rank, throughput, step_seconds;
  Number communication_seconds, exposed_seconds;  ///< of a step
  Number input_share, checkpoint_share;           ///< of a step
  Number first_loss, last_loss;
  bool diverged = false;
  Number foreign_cpus;  ///< of other processes, where they are more than every machine has
  DriftEvidence drift;
  std::vector<RankEvidence> ranks;
};

/// What a collective adds to a step by itself.
struct CollectiveEvidence {
  std::string collective;
  Number exposed_seconds;
  Bounds exposed_ci95;
};

struct PointEvidence {
  Number ranks, resources, throughput, speedup, efficiency;
  Number baseline_throughput, exposed_seconds, expected_efficiency;
  Bounds ci95, efficiency_ci95, exposed_ci95;
  bool dip = false;
  std::vector<CollectiveEvidence> collectives;  ///< of a curve with --shard
  std::vector<RunEvidence> runs;                ///< those that were found, with communication
};

struct CurveEvidence {
  std::string name, unit, scaling;
  bool of_launches = false;  ///< its repeats are fresh launches
  std::string wire_dtype, overlap, shard;
  std::vector<PointEvidence> points;  ///< that have a throughput
};

struct InferenceEvidence {
  std::string name;
  Number p50, p99;            ///< seconds of latency
  std::optional<bool> holds;  ///< its latency bound; unset: no server
  bool overload = false;
  Number arrival_rate, quantile, at_quantile_seconds, bound_seconds;
};

struct InstancesEvidence {
  struct Point {
    Number instances, efficiency, cumulative;
  };
  std::string name, unit;
  std::vector<Point> points;  ///< that have an efficiency
};

struct ComparisonEvidence {
  struct Point {
    Text set;
    std::string verdict;
    Number ranks, difference_percent, p_adjusted, repeats, repeats_needed;
    Bounds interval_percent;
  };
  std::string base;
  std::vector<Point> points;
};

struct GateEvidence {
  std::string name, verdict;
  Number slowdown_percent, repeats;
  Bounds interval_percent;
};

struct HistoryEvidence {
  struct Change {
    std::string kind;
    Text at, point;
    Number change_percent, p;
  };
  std::string name;
  std::vector<Change> changes;
  std::string newest_verdict;
  Text newest;
  Number slowdown_percent, p;
};

struct ProjectionEvidence {
  std::string name;
  Number unseen, in_band, error_percent;
};

struct PreflightEvidence {
  struct Check {
    std::string host;  ///< empty: of all
    Text message;
  };
  std::vector<Check> failed;
};

/// StudyEvidence::evidence of what can't show the published effect itself.
inline constexpr const char* kStandIn = "a stand-in";

struct StudyEvidence {
  struct Figure {
    Text name;
    std::string verdict;
  };
  std::string name, title, evidence;
  std::vector<Figure> judged;
};

/// Two sets of launches at one point, by the names of rules: the share of a step that each launch
/// tells. A straggler is 1 where there is one, else 0.
struct SidesEvidence {
  struct Shares {
    std::vector<Number> base, other;
  };
  std::string base, other;  ///< labels
  std::size_t ranks = 1;
  std::map<std::string, Shares> shares = {};
};

/// What a sweep set for a launch, by the names of its keys.
using Settings = std::map<std::string, std::string>;

/// Returns the evidence of a run or an inference. `settings` are told in its name, where they are
/// not there anyway.
RunEvidence run_evidence(const Json& record, const Settings& settings = {});
/// "resnet50 fp32, 4 ranks x 8".
std::string run_name(const Json& record, const Settings& settings = {});

/// `runs`: run records, among them those that the curve was made of; others are passed by.
CurveEvidence curve_evidence(const Json& record, const std::vector<RunEvidence>& runs = {});
/// "resnet50 fp32 weak".
std::string curve_name(const Json& record);

InferenceEvidence inference_evidence(const Json& record, const Settings& settings = {});
InstancesEvidence instances_evidence(const Json& record);
ComparisonEvidence comparison_evidence(const Json& record);
GateEvidence gate_evidence(const Json& record);
HistoryEvidence history_evidence(const Json& record);
ProjectionEvidence projection_evidence(const Json& record);
PreflightEvidence preflight_evidence(const Json& record);
StudyEvidence study_evidence(const Json& record);

/// Returns the evidence of every set but the first, which is the base, at each point that both
/// have.
std::vector<SidesEvidence> sides_evidence(const std::vector<ResultSet>& sets,
                                          const Matching& matching);

}  // namespace scalemark::diagnosis

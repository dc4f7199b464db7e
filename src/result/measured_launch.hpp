// What comparing needs of a record of kind run, inference, scaling or instances: the work of each
// repeat, and the keys that say what was measured and how it was launched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "measure/work.hpp"
#include "record/parts.hpp"
#include "result/foreign_load.hpp"
#include "result/launch_metrics.hpp"
#include "result/records.hpp"

namespace scalemark {

/// What a launch tells of where its steps went, by the name of the rule that looks at it.
struct StepShare {
  double share = 0;     ///< of a step; of a straggler 1 where there is one, else 0
  std::string record;   ///< id of the record that it is read from
  std::string pointer;  ///< JSON pointer in that record
  std::string method;   ///< of exposed communication: "baseline" or "wait", which are not compared
};

/// One launch at one point: a run or inference record, a point of a curve, or jobs side by side.
struct MeasuredLaunch {
  std::filesystem::path path;
  std::string id;          ///< of the record
  std::string started_at;  ///< RFC 3339; sorts by time
  std::string revision, host;
  std::string committed_at;  ///< of the revision, RFC 3339, UTC; empty: not told
  std::string preflight_at;  ///< of the preflight that it names, likewise; empty: it names none
  std::string unit;
  int ranks = 1;
  std::vector<Work> repeats;  ///< one; of a curve its rounds
  std::map<std::string, double>
      metrics;  ///< beside throughput: those of metric_table(), described ones
  std::map<std::string, Metric> described;  ///< metrics that are not in it: preflight's
  /// Identity and measurement keys of the configuration with the batch, device, communicator and
  /// threads that they came to; kind, ranks, hosts, transport, build_type. Of a batch the one that
  /// the scaling mode fixes: the other follows from the ranks.
  std::map<std::string, Json> keys;
  std::set<std::string> defaults;  ///< names of those that nobody has set
  std::set<std::string> unknown;   ///< names of keys that the record does not tell
  std::map<std::string, std::string> environment;
  Json machine;  ///< of rank 0 by names of kHardwareKeys and kSoftwareKeys; empty where the record
                 ///< does not tell

  std::map<std::string, StepShare> shares;    ///< "link", "input", "checkpoint", "straggler"
  std::optional<double> baseline_throughput;  ///< of the same ranks without communication
  std::optional<ForeignLoad> foreign;         ///< of others while it was measured
  std::optional<double> step_deviation;       ///< of the step times, relative and robust
  bool diverged = false;                      ///< its loss went up for good

  std::string sweep;        ///< folder of the journal that names it; empty: none
  std::int64_t repeat = 0;  ///< of that sweep
};

/// What of a record's `system` says which machine it was: differences of the first kind make rates
/// incomparable, those of the second may be what a user looks for.
inline constexpr const char* kHardwareKeys[] = {
    "cpu_model", "sockets", "cores", "smt", "numa_nodes", "memory_gib", "gpus", "virtualisation"};
inline constexpr const char* kSoftwareKeys[] = {"kernel", "gpu_driver", "mpi",
                                                "cuda",   "nccl",       "openmp"};

/// Returns the launches of a record with status ok. A curve has a launch a point; where the run
/// records that it names lie beside it, they tell device, transport, hosts and threads. Instances
/// have a launch a repeat of a point, whose work is that of all jobs together. Throws ResultError
/// where the record is not as its schema says.
std::vector<MeasuredLaunch> measured_launches(const Json& record,
                                              const std::filesystem::path& path);

/// std::invalid_argument where a launch has figures that nobody can have measured, and nothing can
/// be computed from: no repeats, zero, or beyond 1e18.
void check_figures(const MeasuredLaunch& launch);

/// A number of ranks; std::invalid_argument where no launch has so many.
int ranks_of(std::int64_t ranks);

/// What a scaling or instances record says of the launches that it is made of.
struct LaunchesWithin {
  std::set<std::string> runs;  ///< ids of their records
  std::int64_t failed = 0;     ///< that it is without
};
/// ResultError as above.
LaunchesWithin launches_within(const Json& record, const std::filesystem::path& path);

/// What every kind of record tells: id, time, build, configuration.
MeasuredLaunch start_launch(const record::Envelope& record, const record::Settings& config,
                            const std::filesystem::path& path);

/// Sets the keys by which launches of unlike kinds and rank counts are told apart.
void set_kind(MeasuredLaunch& launch, const std::string& kind);

/// The names of kHardwareKeys and kSoftwareKeys, with their values.
Json machine_of(const record::System& system);

}  // namespace scalemark

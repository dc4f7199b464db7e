// What comparing needs of a record of kind run, inference or scaling: the work of each repeat, and
// the keys that say what was measured and how it was launched.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "measure/work.hpp"
#include "result/records.hpp"

namespace scalemark {

/// One launch at one point: a run or inference record, or a point of a curve.
struct MeasuredLaunch {
  std::filesystem::path path;
  std::string id;          ///< of the record
  std::string started_at;  ///< RFC 3339; sorts by time
  std::string revision, host;
  std::string unit;
  int ranks = 1;
  std::vector<Work> repeats;              ///< one; of a curve its rounds
  std::map<std::string, double> metrics;  ///< beside throughput: "latency_p50", ...
  /// Identity and measurement keys of the configuration with the batch, device, communicator and
  /// threads that they came to; kind, ranks, hosts, transport. Of a batch the one that the scaling
  /// mode fixes: the other follows from the ranks.
  std::map<std::string, Json> keys;
  std::set<std::string> defaults;  ///< names of those that nobody has set
  std::set<std::string> unknown;   ///< names of keys that the record does not tell
  std::map<std::string, std::string> environment;
  Json machine;  ///< of rank 0 by names of kHardwareKeys and kSoftwareKeys; empty where the record
                 ///< does not tell

  std::optional<double> baseline_throughput;  ///< of the same ranks without communication
  std::optional<double> step_deviation;       ///< of the step times, relative and robust

  std::string sweep;        ///< folder of the journal that names it; empty: none
  std::int64_t repeat = 0;  ///< of that sweep
};

/// The metrics that records have beside throughput, and which of them are better when larger.
inline constexpr const char* kOtherMetrics[] = {"latency_mean", "latency_p50", "latency_p99",
                                                "joules_per_sample"};

/// What of a record's `system` says which machine it was: differences of the first kind make rates
/// incomparable, those of the second may be what a user looks for.
inline constexpr const char* kHardwareKeys[] = {
    "cpu_model", "sockets", "cores", "smt", "numa_nodes", "memory_gib", "gpus", "virtualisation"};
inline constexpr const char* kSoftwareKeys[] = {"kernel", "gpu_driver", "mpi",
                                                "cuda",   "nccl",       "openmp"};

/// Of a record with status ok. A curve has a launch a point; where the run records that it names
/// lie beside it, they tell device, transport, hosts and threads. ResultError where the record is
/// not as its schema says.
std::vector<MeasuredLaunch> measured_launches(const Json& record,
                                              const std::filesystem::path& path);

/// Ids of the runs that a curve is made of.
std::set<std::string> runs_of_curve(const Json& scaling_record);

}  // namespace scalemark

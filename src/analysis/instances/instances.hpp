// Jobs side by side: what each does alone and with neighbours, from their records:
// pure functions (formulas in docs/measurements.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/clock.hpp"
#include "platform/slots.hpp"
#include "record/instances.hpp"
#include "result/record_context.hpp"

namespace scalemark {

/// Windows that overlap by less are flagged: neighbours were missing for a part of the measurement.
inline constexpr double kLeastOverlap = 0.9;

/// What one instance measured in one launch. Without a record the texts are empty, without one of
/// status ok the numbers 0.
struct MeasuredInstance {
  std::size_t slot = 0;
  std::string run_id = {};  ///< of its run or inference record
  std::string run_path =
      {};  ///< of that file, relative to the instances record; empty: none is kept
  std::string log_path = {};         ///< likewise, of what it printed
  double throughput = 0;             ///< units per second of its own window
  double units = 0;                  ///< in its window
  std::vector<double> latency = {};  ///< seconds of every step or query
  Window window = {};
};

/// Returns an instance by its record of status ok; `latency`: of every step or query.
MeasuredInstance measured_instance(const record::Measured& job, std::vector<double> latency,
                                   std::size_t slot, const Window& window);

/// Instances that began together; one instance: it was alone.
struct InstanceLaunch {
  std::int64_t repeat = 1;
  std::vector<MeasuredInstance> instances;
  Outcome outcome = {};
};

/// The figures of all instances of a launch together.
struct LaunchFigures {
  double throughput = 0;    ///< units of all / (last end - first start)
  double sum_of_rates = 0;  ///< each in its own window
  double overlap = 0;       ///< intersection of the windows / their span; 1 for one window
};
LaunchFigures launch_figures(const std::vector<MeasuredInstance>& instances);

/// What was asked for.
struct InstancesPlan {
  LoadedConfig config;                  ///< of the job
  record::Settings own_config;          ///< keys of `instances` itself
  std::vector<Slot> slots;              ///< as many as the most instances
  std::vector<std::int64_t> instances;  ///< points, ascending
  std::int64_t repeats = 1;
  std::int64_t ranks = 1;  ///< of an instance
};

/// Every set of slots that is measured: each slot alone, then the first K slots for every point of
/// more than one.
std::vector<std::vector<std::size_t>> slot_sets(const InstancesPlan& plan);

/// SHA-256 over what decides the measurement: the job's keys, the largest point, the repeats.
std::string instances_hash(const InstancesPlan& plan);

/// A point has numbers where all its repeats are there and ok, whatever became of the others. The
/// context's configuration is that of the job.
InstancesResult make_instances_record(const RecordContext& context, const InstancesPlan& plan,
                                      const std::vector<InstanceLaunch>& launches,
                                      const Outcome& outcome);

}  // namespace scalemark

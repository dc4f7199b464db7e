// Defines what one rank measures in one run, before anything is computed from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/names.hpp"
#include "config/run_config.hpp"
#include "measure/bus_bandwidth.hpp"

namespace scalemark {

/// The reason why a measured loop ended. All ranks agree on it.
enum class StopReason { num_batches, target_ci, max_seconds, target_loss, signal, non_finite };

constexpr auto names_of(StopReason) {
  return Names{"num_batches", "target_ci", "max_seconds", "target_loss", "signal", "non_finite"};
}

/// The phases of a step, in their order. `backward` includes the communication that runs beside it,
/// and `communication` is the time that the step waits for it. `agreement` is the agreement on
/// whether to stop, and on the loss. `rest` is whatever has no name.
enum class StepPhase {
  input,
  forward,
  backward,
  communication,
  optimizer,
  checkpoint,
  agreement,
  rest
};
inline constexpr std::array<const char*, 8> kStepPhases{"input",         "forward",   "backward",
                                                        "communication", "optimizer", "checkpoint",
                                                        "agreement",     "rest"};
using PhaseSeconds = std::array<double, kStepPhases.size()>;  ///< indexed by StepPhase

/// Counts what loss scaling did in a measured loop and its warm-up.
struct LossScaling {
  double initial = 1, last = 1;
  bool dynamic = false;
  std::int64_t skipped_steps = 0;  ///< their gradients were not finite: no update
};

/// Sums up the cost of gradients of embedding tables for one rank over the steps of its measured
/// loop.
struct EmbeddingSamples {
  std::vector<double> rows;   ///< by table: rows that the rank collected
  double gathered_bytes = 0;  ///< rows and indices of all ranks that the rank held
  double payload_bytes = 0;   ///< part of gathered_bytes that is this rank's own
  double wire_bytes = 0;      ///< sent by a ring allgather, mean over ranks
  double messages = 0;        ///< allgathers started
  double exchange_seconds =
      0;                       ///< the longest of the operations of a step, from post to completion
  double densify_seconds = 0;  ///< adding rows into dense gradients
};

/// Sums up, over the steps of its measured loop, what one collective cost a rank.
struct CollectiveSamples {
  Collective collective = Collective::allreduce;
  double messages = 0, bytes = 0;  ///< started; payload
  double wait_seconds = 0;         ///< nothing was computed because a result was missing
  double seconds = 0;              ///< one or more of them were under way
};

/// Describes the checkpoints that a rank wrote in the measured loop.
struct CheckpointSamples {
  std::int64_t every = 0;  ///< steps; 0: it writes none
  std::int64_t bytes = 0;  ///< size of the rank's file; 0 before the first checkpoint
  std::vector<double> write_seconds = {};
};

/// Describes how a rank's steps got their batches. Seconds are summed over steps.
struct InputSamples {
  InputPlace place = InputPlace::device;
  std::int64_t bytes_per_step = 0;  ///< copied to the device
  double copy_seconds = 0;          ///< from the start of a copy to its end
  double wait_seconds = 0;          ///< time that steps waited for their batch
};

/// The reason why a trial of --mode server ended: all queries were answered; more queries waited
/// than a server that keeps up ever has; more queries were late than the latency bound allows.
enum class ServerEnd { all_served, overload, late };
constexpr auto names_of(ServerEnd) { return Names{"all_served", "overload", "late"}; }

/// Describes how a rank served the queries of --mode server. The latencies are in
/// Samples::step_seconds.
struct ServerSamples {
  double arrival_rate = 0;             ///< offered to this rank, queries per second
  std::int64_t offered = 0;            ///< queries that were to arrive
  std::vector<double> queue_seconds;   ///< for each answered query: arrival to begin of its pass
  std::vector<double> timer_lateness;  ///< for each wait of an idle server for an arrival, seconds
  std::int64_t batches = 0;            ///< forward passes
  std::int64_t queue_length_max = 0;   ///< waiting when a pass began, those of it too
  ServerEnd ended_by = ServerEnd::all_served;
};

/// Holds the times of one rank's measured loop without warm-up, in seconds on a steady clock.
struct Samples {
  std::vector<double> step_seconds;  ///< local time of every step, without barriers
  std::vector<double>
      wait_seconds;  ///< part of step_seconds spent waiting for communication; NaN: unknown
  PhaseSeconds phase_seconds{};  ///< sums over all steps, on the device's clock
  std::vector<double> loss;      ///< mean loss over all ranks' samples of every step
  std::vector<double> units;     ///< units of this rank in every step, without padding
  double padded_units = 0;       ///< units of all steps, with padding
  double began = 0;              ///< begin of the loop in steady_seconds(); not sent to other ranks
  double wall_seconds = 0;     ///< between the synchronised points around the loop, without pauses
  std::int64_t slices = 0;     ///< number of parts of an interleaved loop; 0: it was not divided
  double paused_seconds = 0;   ///< time between these parts
  double warm_up_seconds = 0;  ///< sum of the local times of the warm-up steps
  double communication_seconds =
      0;  ///< sum over steps: first bucket posted to last bucket complete
  StopReason stop_reason = StopReason::num_batches;
  std::vector<CollectiveSamples> collectives;  ///< empty: the reducer does not tell
  std::optional<LossScaling> loss_scaling;     ///< set with fp16
  EmbeddingSamples embedding;                  ///< `rows` is empty without embedding tables
  CheckpointSamples checkpoints;
  InputSamples input;
  std::optional<ServerSamples> server;  ///< set with --mode server
};

}  // namespace scalemark

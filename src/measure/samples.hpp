// What one rank measured in one run, before anything is computed from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/names.hpp"
#include "config/run_config.hpp"

namespace scalemark {

/// Why a measured loop ended. Agreed by all ranks.
enum class StopReason { num_batches, target_ci, max_seconds, target_loss, signal, non_finite };

constexpr auto names_of(StopReason) {
  return Names{"num_batches", "target_ci", "max_seconds", "target_loss", "signal", "non_finite"};
}

/// What a step does, one after the other. backward: what communicates beside it is inside, and in
/// `communication` is what the step waits for; agreement: on whether to stop, and the loss; rest:
/// whatever has no name.
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
using PhaseSeconds = std::array<double, kStepPhases.size()>;  ///< by StepPhase

/// What loss scaling did in a measured loop and its warm-up.
struct LossScaling {
  double initial = 1, last = 1;
  bool dynamic = false;
  std::int64_t skipped_steps = 0;  ///< their gradients were not finite: no update
};

/// What the gradients of embedding tables cost one rank: sums over the steps of its measured loop.
struct EmbeddingSamples {
  std::vector<double> rows;   ///< by table: rows that the rank collected
  double gathered_bytes = 0;  ///< rows and indices of all ranks that the rank held
  double payload_bytes = 0;   ///< of these, its own
  double wire_bytes = 0;      ///< sent by a ring allgather, mean over ranks
  double messages = 0;        ///< allgathers started
  double exchange_seconds =
      0;                       ///< the longest of the operations of a step, from post to completion
  double densify_seconds = 0;  ///< adding rows into dense gradients
};

/// Checkpoints that a rank wrote in the measured loop.
struct CheckpointSamples {
  std::int64_t every = 0;  ///< steps; 0: it writes none
  std::int64_t bytes = 0;  ///< of its file; 0 before the first
  std::vector<double> write_seconds = {};
};

/// How a rank's steps got their batches; seconds are summed over steps.
struct InputSamples {
  InputPlace place = InputPlace::device;
  std::int64_t bytes_per_step = 0;  ///< copied to the device
  double copy_seconds = 0;          ///< from the start of a copy to its end
  double wait_seconds = 0;          ///< of steps for their batch
};

/// Why a trial of --mode server ended: all queries answered; more waiting than a server that keeps
/// up ever has; more late than its bound allows.
enum class ServerEnd { all_served, overload, late };
constexpr auto names_of(ServerEnd) { return Names{"all_served", "overload", "late"}; }

/// How a rank served the queries of --mode server; its latencies are Samples::step_seconds.
struct ServerSamples {
  double arrival_rate = 0;             ///< offered to this rank, queries per second
  std::int64_t offered = 0;            ///< queries that were to arrive
  std::vector<double> queue_seconds;   ///< of each answered one: arrival to begin of its pass
  std::vector<double> timer_lateness;  ///< of each wait of an idle server for an arrival, seconds
  std::int64_t batches = 0;            ///< forward passes
  std::int64_t queue_length_max = 0;   ///< waiting when a pass began, those of it too
  ServerEnd ended_by = ServerEnd::all_served;
};

/// Times of one rank's measured loop (warm-up excluded), seconds on a steady clock.
struct Samples {
  std::vector<double> step_seconds;  ///< local time of every step, without barriers
  std::vector<double> wait_seconds;  ///< of that, waiting for communication; NaN: not known
  PhaseSeconds phase_seconds{};      ///< of all steps, on the device's clock
  std::vector<double> loss;          ///< mean loss over all ranks' samples of every step
  std::vector<double> units;         ///< of this rank in every step, without padding
  double padded_units = 0;           ///< of all steps, with it
  double began = 0;                  ///< steady_seconds() of this rank's machine; stays there
  double wall_seconds = 0;           ///< between the two synchronised points around the loop,
                                     ///< without the turns of others
  std::int64_t turns = 0;            ///< 0: the loop was not divided into turns
  double paused_seconds = 0;         ///< between its turns
  double warm_up_seconds = 0;        ///< sum of the local times of the steps before them
  double communication_seconds =
      0;  ///< sum over steps: first bucket posted to last bucket complete
  StopReason stop_reason = StopReason::num_batches;
  std::optional<LossScaling> loss_scaling;  ///< of fp16
  EmbeddingSamples embedding;               ///< `rows` is empty without embedding tables
  CheckpointSamples checkpoints;
  InputSamples input;
  std::optional<ServerSamples> server;  ///< of --mode server
};

}  // namespace scalemark

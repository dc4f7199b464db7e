// What one rank measured in one run, before anything is computed from it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

/// Why a measured loop ended. Agreed by all ranks.
enum class StopReason { num_batches, target_ci, max_seconds, signal, non_finite };

std::string to_string(StopReason reason);  ///< "num_batches", "target_ci", ...

/// Checkpoints of rank 0 in the measured loop.
struct CheckpointSamples {
  std::int64_t every = 0;  ///< steps; 0: none are written
  std::int64_t bytes = 0;  ///< of one; 0 before the first
  std::vector<double> write_seconds = {};
};

/// How a rank's steps got their batches; seconds are summed over steps.
struct InputSamples {
  InputPlace place = InputPlace::device;
  std::int64_t bytes_per_step = 0;  ///< copied to the device
  double copy_seconds = 0;          ///< from the start of a copy to its end
  double wait_seconds = 0;          ///< of steps for their batch
};

/// Times of one rank's measured loop (warm-up excluded), seconds on a steady clock.
struct Samples {
  std::vector<double> step_seconds;  ///< local time of every step, without barriers
  std::vector<double> wait_seconds;  ///< of that, waiting for communication
  std::vector<double> loss;          ///< mean loss over all ranks' samples of every step
  double wall_seconds = 0;           ///< between the two synchronised points around the loop
  double communication_seconds =
      0;  ///< sum over steps: first bucket posted to last bucket complete
  StopReason stop_reason = StopReason::num_batches;
  CheckpointSamples checkpoints;
  InputSamples input;
};
/// For the way from a rank to rank 0. Non-finite losses travel as null and come back as NaN.
nlohmann::json to_json(const Samples& samples);
/// Throws RunError naming the key for anything that to_json does not write.
Samples samples_from_json(const nlohmann::json& json);

}  // namespace scalemark

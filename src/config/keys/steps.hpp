// Keys of the measured loop: how many steps, what ends them early, what else happens between them.
#pragma once

#include "config/keys/model.hpp"

namespace scalemark {

/// Ranks that write a checkpoint, each the whole state: rank 0, the first of each node, or all.
enum class CheckpointWriters { root, node, rank };
constexpr auto names_of(CheckpointWriters) { return Names{"root", "node", "rank"}; }

struct StepSettings {
  std::int64_t num_batches = 100;
  std::int64_t num_warmup_batches = 10;
  bool roofline = true;               ///< time matrix products before the steps
  std::optional<double> target_ci;    ///< half-width of the 95 % interval, a fraction of the mean
  std::optional<double> max_seconds;  ///< stop the measured loop after this many seconds
  std::optional<double> target_loss;  ///< stop when the loss has come down to this
  std::int64_t checkpoint_every = 0;  ///< steps; 0: none
  std::optional<std::string> checkpoint_dir;  ///< unset: the system's temporary folder
  CheckpointWriters checkpoint_writers = CheckpointWriters::root;
  std::optional<double> storage_gbit;       ///< of a file system that all nodes share
  std::optional<double> storage_node_gbit;  ///< of one node to it
  double wait_for_idle = 0;              ///< seconds to wait for a quiet machine before the clock
  std::optional<double> window_seconds;  ///< of the series that the record keeps
  double timeout = 300;                  ///< seconds that start-up, a step or a collective may take

  static void describe(auto& rows) {
    using S = StepSettings;
    rows.group("Steps and stopping", Role::measurement, kTraining);
    rows.add("num_batches", &S::num_batches, "N", "measured steps")
        .in(1, 1e9)
        .of(kWithModel)
        .is(Trait::varies_with_ranks)
        .often_used();
    rows.add("num_warmup_batches", &S::num_warmup_batches, "N", "steps before the clock starts")
        .in(0, 1e9)
        .of(kWithModel)
        .is(Trait::varies_with_ranks);
    rows.add("roofline", &S::roofline, "",
             "time matrix products before the steps; without, a launch is 0.3 s shorter")
        .of(kWithModel);
    rows.add("target_ci", &S::target_ci, "FRACTION",
             "stop when the 95 % half-width falls below this fraction of the mean")
        .in(1e-4, 0.5)
        .otherwise("all --num_batches steps")
        .of(kWithModel);
    rows.add("max_seconds", &S::max_seconds, "SECONDS", "stop the measured loop after this long")
        .in(1e-3, 1e7)
        .otherwise("all --num_batches steps")
        .of(kWithModel);
    rows.add("target_loss", &S::target_loss, "LOSS",
             "stop when the loss (median of the last 5 steps) has come down to this")
        .in(0, 1e9)
        .otherwise("all --num_batches steps");
    rows.add("checkpoint_every", &S::checkpoint_every, "N",
             "steps between two checkpoints; 0: none")
        .in(0, 1e9);
    rows.add("checkpoint_dir", &S::checkpoint_dir, "DIR",
             "where checkpoints are written and removed again")
        .role(Role::output)
        .otherwise("TMPDIR, or /tmp");
    rows.add("checkpoint_writers", &S::checkpoint_writers, "RANKS",
             "who writes a checkpoint, a file of the whole state each: rank 0, the first rank of "
             "each node, or every rank");
    rows.add("storage_gbit", &S::storage_gbit, "GBIT",
             "write rate, Gbit/s, of a file system that all nodes share: the record projects what "
             "checkpoints cost there")
        .in(1e-3, 1e6)
        .role(Role::output)
        .otherwise("only common rates are projected");
    rows.add("storage_node_gbit", &S::storage_node_gbit, "GBIT",
             "what one node writes to it at most, Gbit/s")
        .in(1e-3, 1e6)
        .role(Role::output)
        .otherwise("as much as the file system");
    rows.add("wait_for_idle", &S::wait_for_idle, "SECONDS",
             "before the clock, wait up to this long until others leave the machine alone")
        .in(0, 86400)
        .role(Role::output)
        .of(kEverywhere);
    rows.add("window_seconds", &S::window_seconds, "SECONDS",
             "keep throughput, clocks, temperature, power, memory and errors by windows of this "
             "length, and say whether the throughput drifts")
        .in(1, 86400)
        .role(Role::output)
        .otherwise("no series")
        .of(kWithModel);
    rows.add("timeout", &S::timeout, "SECONDS",
             "deadline of start-up, of a step and of a collective; then exit code 5")
        .in(1, 86400)
        .of(kEverywhere);
  }

  static void check(const auto& whole) {
    const auto& config = whole.given;
    // Checkpoints hold what training has changed.
    if (config.checkpoint_every > 0 && config.forward_only)
      whole.refuse("--checkpoint_every saves what training has learnt; leave out --forward_only");
    if (config.checkpoint_dir && config.checkpoint_every == 0)
      whole.refuse(
          "--checkpoint_dir is where checkpoints are written; say how often with "
          "--checkpoint_every N");
    if (config.checkpoint_every == 0 && (config.storage_gbit || config.storage_node_gbit))
      whole.refuse(
          "--storage_gbit and --storage_node_gbit project what checkpoints cost; say how often "
          "with --checkpoint_every N");
    if (config.storage_node_gbit && !config.storage_gbit)
      whole.refuse("--storage_node_gbit is a node's share of --storage_gbit, which is missing");
    // A target loss is for training, and best for a task that can be learnt.
    if (config.target_loss && config.forward_only)
      whole.refuse(
          "--target_loss has no meaning with --forward_only: without an update the loss stays");
    if (config.target_loss && config.data == SyntheticData::noise)
      whole.warn(
          "--target_loss with --data noise: its labels are random, so that a lower loss is one "
          "learnt by heart; --data learnable is a task to learn");
  }
};

}  // namespace scalemark

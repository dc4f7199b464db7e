// Defines the keys of the measured loop (how many steps, what ends them early, what else happens
// between them), of the learning rate over the steps, of gradient clipping and of fp16's loss
// scale. config/learning_rate.hpp computes the schedules.
#pragma once

#include <algorithm>
#include <cmath>

#include "config/keys/arithmetic.hpp"
#include "config/keys/model.hpp"
#include "config/text.hpp"

namespace scalemark {

/// The ranks that write a checkpoint, each of the whole state: rank 0, the first of each node, or
/// all. With --shard each writes its part.
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
             "each node, or every rank; with --shard every rank writes the part that it holds");
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

/// The value of `--lr_schedule`.
struct LearningRateSchedule {
  enum class Shape { constant, piecewise, polynomial, vaswani };
  Shape shape = Shape::constant;
  std::vector<double> rates = {};             ///< piecewise: one more than boundaries
  std::vector<std::int64_t> boundaries = {};  ///< piecewise: where the next rate begins, ascending
  bool in_steps = false;                      ///< their unit: steps, else epochs
};

struct ScheduleSettings {
  LearningRateSchedule lr_schedule;
  std::optional<std::int64_t> lr_warmup_steps;
  std::optional<std::int64_t> lr_decay_steps;  ///< of polynomial
  double lr_end = 0, lr_power = 1;             ///< of polynomial
  std::optional<double> clip_norm;             ///< unset: gradients are not clipped
  double fp16_loss_scale = 65536;              ///< at the start
  bool fp16_enable_auto_loss_scale = true;     ///< halve it on overflow, double it after a while
  std::int64_t fp16_inc_loss_scale_every_n = 2000;  ///< steps without overflow

  static void describe(auto& rows) {
    using S = ScheduleSettings;
    rows.group("Learning rate and clipping", Role::identity, kTraining);
    rows.add("lr_schedule", &S::lr_schedule, "SCHEDULE",
             "learning rate of each step: constant; \"LR0;E1;LR1;...\", LR1 from epoch E1 (of "
             "1,281,167 images) on, or from step N where written Ns; polynomial decay; inverse "
             "square root (vaswani)");
    rows.add("lr_warmup_steps", &S::lr_warmup_steps, "N",
             "steps of linear increase, from the first warm-up step of the run on")
        .in(0, 1e9)
        .otherwise("0, with vaswani 4000");
    rows.add("lr_decay_steps", &S::lr_decay_steps, "N",
             "steps after which polynomial reaches --lr_end, its warm-up included")
        .in(1, 2e9)
        .otherwise("--num_warmup_batches + --num_batches");
    rows.add("lr_end", &S::lr_end, "RATE", "what polynomial decays to").in(0, 1e6);
    rows.add("lr_power", &S::lr_power, "EXPONENT", "of polynomial; 1 is linear").in(0.01, 100);
    rows.add("clip_norm", &S::clip_norm, "NORM",
             "largest 2-norm of all gradients together; longer ones are scaled down to it")
        .in(1e-9, 1e9)
        .otherwise("no clipping");
    rows.add("fp16_loss_scale", &S::fp16_loss_scale, "FACTOR",
             "of --precision fp16: what the loss is multiplied with, at the start")
        .in(1, 16777216);
    rows.add("fp16_enable_auto_loss_scale", &S::fp16_enable_auto_loss_scale, "",
             "halve the loss scale where gradients overflow, double it after a while");
    rows.add("fp16_inc_loss_scale_every_n", &S::fp16_inc_loss_scale_every_n, "N",
             "steps without an overflow after which the loss scale is doubled")
        .in(1, 1e9);
  }

  /// Resolves the steps of the schedule, and the learning rate that follows from it or from the
  /// optimizer.
  static void resolve(auto& config, const auto& facts) {
    using Shape = LearningRateSchedule::Shape;
    const Shape shape = config.lr_schedule.shape;
    if (!config.lr_warmup_steps) config.lr_warmup_steps = shape == Shape::vaswani ? 4000 : 0;
    if (shape == Shape::polynomial && !config.lr_decay_steps)
      config.lr_decay_steps = config.num_warmup_batches + config.num_batches;
    if (config.init_learning_rate) return;
    config.init_learning_rate =
        std::min(default_rates(*config.optimizer).learning_rate, facts.learning_rate);
    if (shape == Shape::piecewise) config.init_learning_rate = config.lr_schedule.rates.front();
    if (shape == Shape::vaswani && facts.width > 0)
      config.init_learning_rate =
          1 / std::sqrt(static_cast<double>(facts.width) *
                        static_cast<double>(std::max<std::int64_t>(1, *config.lr_warmup_steps)));
  }

  /// Checks keys that lack their schedule, and schedules that lack what they need.
  static void check(const auto& whole) {
    using Shape = LearningRateSchedule::Shape;
    const auto& config = whole.given;
    const LearningRateSchedule& schedule = config.lr_schedule;
    const std::string name = quote(to_string(config.lr_schedule));
    if (config.forward_only &&
        (schedule.shape != Shape::constant || config.lr_warmup_steps || config.clip_norm))
      whole.refuse(
          "--lr_schedule, --lr_warmup_steps and --clip_norm have no meaning with --forward_only: "
          "there is no update");
    if (schedule.shape != Shape::polynomial &&
        (config.lr_decay_steps || config.lr_end != 0 || config.lr_power != 1))
      whole.refuse(
          "--lr_decay_steps, --lr_end and --lr_power belong to --lr_schedule polynomial, not to {}",
          name);
    if (schedule.shape == Shape::piecewise && config.init_learning_rate)
      whole.refuse(
          "--init_learning_rate: --lr_schedule {} begins with its own rate, {}; give one of the "
          "two",
          name, schedule.rates.front());
    if (schedule.shape == Shape::piecewise && !schedule.in_steps && whole.facts.image_size == 0)
      whole.refuse(
          "--lr_schedule {}: an epoch is 1,281,167 images, and {} has sequences; give steps, such "
          "as \"0.001;1000s;0.0001\"",
          name, whole.facts.name);
    if (schedule.shape == Shape::vaswani) check_vaswani(whole);
    if (schedule.shape == Shape::polynomial &&
        *whole.resolved.lr_decay_steps <= *whole.resolved.lr_warmup_steps)
      whole.refuse("--lr_decay_steps {} must be more than --lr_warmup_steps {}, which it includes",
                   *whole.resolved.lr_decay_steps, *whole.resolved.lr_warmup_steps);
  }

 private:
  static void check_vaswani(const auto& whole) {
    if (whole.given.lr_warmup_steps == 0)
      whole.refuse("--lr_warmup_steps 0: vaswani needs a warm-up; give 1 or more");
    if (whole.facts.width == 0 && !whole.given.init_learning_rate)
      whole.refuse(
          "--lr_schedule vaswani follows from the width of a sequence model, which {} has not; "
          "give --init_learning_rate, the rate at the end of the warm-up",
          whole.facts.name);
  }
};

}  // namespace scalemark

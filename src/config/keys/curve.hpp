// Defines the keys of `scale`: the points of a curve, the questions about them, and who starts
// their ranks.
#pragma once

#include "config/keys/machine.hpp"
#include "config/keys/model.hpp"

namespace scalemark {

/// The resource that a curve's efficiency counts.
enum class Resource { rank, node, core, gpu };
constexpr auto names_of(Resource) { return Names{"rank", "node", "core", "gpu"}; }

/// The unit that a curve repeats: rounds of one launch, or launches.
enum class RepeatUnit { in_process, launch };
constexpr auto names_of(RepeatUnit) { return Names{"in_process", "launch"}; }

enum class Launcher { automatic, mpirun, srun };
constexpr auto names_of(Launcher) { return Names{"auto", "mpirun", "srun"}; }

struct CurveSettings {
  std::vector<std::int64_t> ranks;  ///< empty: powers of two that this machine holds
  std::optional<std::int64_t> ranks_per_node;
  std::int64_t repeats = 3;
  RepeatUnit repeat_unit = RepeatUnit::in_process;
  std::optional<std::string> from;  ///< folder of a sweep, whose curves are shown
  bool baseline = true;             ///< measure each point without communication too
  Resource resource = Resource::rank;
  std::optional<std::int64_t> solution_steps;       ///< steps to solution of the larger points
  std::optional<std::int64_t> base_solution_steps;  ///< of the base; unset: solution_steps
  std::optional<std::int64_t> base_batch_size;      ///< samples per rank of the base
  Launcher launcher = Launcher::automatic;
  std::optional<std::string> hostfile;
  std::optional<std::string> torch;  ///< folder of LibTorch; unset: where it was linked from

  static void describe(auto& rows) {
    using S = CurveSettings;
    rows.group("Curve (scale)", Role::measurement, Command::scale);
    rows.add("ranks", &S::ranks, "N,N,...|auto",
             "points of the curve, ascending; auto: powers of two up to what the machine holds, "
             "and that")
        .in(1, 1e6)
        .of(kEverywhere)
        .means({Command::run, Command::infer, Command::preflight}, "N",
               "how many ranks to start, outside a launcher",
               "those that a launcher has started, else one")
        .is({Trait::implied, Trait::varies_with_ranks, Trait::typed})
        .often_used();
    rows.add("ranks_per_node", &S::ranks_per_node, "N",
             "ranks on each node, one node after the other; another placement is exit code 7")
        .in(1, 1e6)
        .otherwise("as even as the nodes allow")
        .role(Role::output)
        .of(kEverywhere);
    rows.add("repeats", &S::repeats, "N", "measurements of every point, interleaved")
        .in(1, 10000)
        .often_used();
    rows.add("repeat_unit", &S::repeat_unit, "NAME",
             "rounds of one launch, or fresh launches; these in random order, journalled in "
             "FILE.sweep/ beside --output, so that the same command goes on")
        .role(Role::output);
    rows.add("from", &S::from, "DIR",
             "folder of a sweep, whose curves are shown; nothing is started")
        .role(Role::output)
        .otherwise("the curve is measured")
        .is(Trait::presentation);
    rows.add("baseline", &S::baseline, "", "measure every point without communication too");
    rows.add("resource", &S::resource, "NAME",
             "what efficiency counts: ranks, nodes, cores or GPUs");
    rows.add("solution_steps", &S::solution_steps, "N",
             "steps to solution: adds the time to solution of every point")
        .in(1, 1e12)
        .otherwise("no time to solution");
    rows.add("base_solution_steps", &S::base_solution_steps, "N",
             "the same of the base, where it has another batch")
        .in(1, 1e12)
        .otherwise("--solution_steps");
    rows.add("base_batch_size", &S::base_batch_size, "N",
             "samples per rank of the base, where they differ")
        .in(1, 1e6)
        .otherwise("as the other points");
    rows.add("launcher", &S::launcher, "NAME",
             "starts the ranks; auto: srun in a Slurm allocation with PMIx, else mpirun")
        .role(Role::output)
        .of(kEverywhere);
    rows.add("hostfile", &S::hostfile, "FILE",
             "hosts for mpirun, a line each (n0 slots=4), over which ranks are spread as evenly as "
             "the slots allow")
        .role(Role::output)
        .otherwise("this machine, or the allocation of Slurm, PBS, LSF or Grid Engine")
        .of(kEverywhere);
    rows.add("torch", &S::torch, "FOLDER",
             "LibTorch's, with lib/ in it, of the release that this program was built with")
        .role(Role::output)
        .otherwise("where it was linked from, or lib/ of an installed tree")
        .of(kEverywhere);
  }

  static void check(const auto& whole) {
    if (whole.command == Command::scale)
      check_curve(whole);
    else
      check_single(whole);
    for (const auto& curve : curves_of(whole.resolved)) check_batch(whole, curve.config);
  }

 private:
  /// Refuses lists, which are for curves only.
  static void check_single(const auto& whole) {
    const auto& config = whole.given;
    for (const auto& [key, listed] :
         {std::pair{"model", !config.more_models.empty()},
          {"precision", !config.more_precisions.empty()},
          {"reducer", !config.more_reducers.empty()},
          {"shard", !config.more_shards.empty()},
          {"batch_size", !config.more_batch_sizes.empty()},
          {"global_batch_size", !config.more_global_batch_sizes.empty()},
          {"micro_batch_size", !config.more_micro_batch_sizes.empty()}})
      if (listed)
        whole.refuse("--{}: a list is for the curves of scalemark scale; scalemark {} takes one",
                     key, name_of(whole.command));
    if (config.ranks.size() > 1)
      whole.refuse(
          "--ranks: a list is a curve, which is for scalemark scale; scalemark {} takes one number",
          name_of(whole.command));
  }

  static void check_curve(const auto& whole) {
    const auto& config = whole.given;
    if (config.resource == Resource::gpu && config.device == Device::cpu)
      whole.refuse(
          "--resource gpu counts GPUs, and --device cpu uses none: give rank, node or core");
    if (!config.solution_steps && (config.base_solution_steps || config.base_batch_size))
      whole.refuse(
          "--base_solution_steps and --base_batch_size belong to a time to solution: give "
          "--solution_steps, the steps of the larger points");
    if (config.scaling == Scaling::weak && (config.global_batch_size || config.global_batch_tokens))
      whole.refuse(
          "--global_batch_size and --global_batch_tokens: a weak-scaling curve fixes the batch per "
          "rank; give --batch_size, or --scaling strong");
    if (config.brings_model() && !config.more_models.empty())
      whole.refuse("--model: a list is of the catalog; a network of your own is measured alone");
    const auto batches =
        std::max(config.more_batch_sizes.size(), config.more_global_batch_sizes.size());
    if (config.batch_per_precision && (batches == 0 || batches != config.more_precisions.size()))
      whole.refuse(
          "--batch_per_precision pairs the lists of --precision and of --batch_size or "
          "--global_batch_size: give both, of one length (here {} and {})",
          config.more_precisions.size() + 1, batches + 1);
    if (!config.more_micro_batch_sizes.empty() && config.ranks.empty())
      whole.refuse("--micro_batch_size: a list has a value for each point of --ranks; give both");
    if (!config.ranks.empty() && !config.largest_batch) check_points(whole.resolved, config.ranks);
  }

  static void check_batch(const auto& whole, const auto& config) {
    if (!config.batch_size || !config.global_batch_size ||
        *config.global_batch_size % *config.batch_size == 0)
      return;
    const std::int64_t batch = *config.batch_size, global = *config.global_batch_size;
    const std::int64_t below = global / batch * batch;
    whole.refuse(
        "--global_batch_size {} is no multiple of --batch_size {}: the nearest legal values are "
        "{}{}",
        global, batch, below > 0 ? std::to_string(below) + " and " : "", below + batch);
  }
};

}  // namespace scalemark

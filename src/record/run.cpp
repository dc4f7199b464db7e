// The keys of a run record.
#include "record/run.hpp"

namespace scalemark {
namespace record {

void Summary::describe(Fields& fields) {
  fields.add("mean", &Summary::mean, "wall time of the measured loop / steps")
      .unit("s")
      .above(0)
      .column(48, "step_seconds_mean");
  fields.add("p50", &Summary::p50, "median of the samples")
      .unit("s")
      .above(0)
      .column(49, "step_seconds_p50");
  fields.add("p90", &Summary::p90, "quantile of the samples")
      .unit("s")
      .above(0)
      .column(50, "step_seconds_p90");
  fields.add("p99", &Summary::p99, "quantile of the samples")
      .unit("s")
      .above(0)
      .column(51, "step_seconds_p99");
  fields.add("samples", &Summary::samples, "of each step the maximum over ranks")
      .unit("s")
      .filled()
      .or_null("not a finite number");
}

void Link::describe(Fields& fields) {
  fields.add("host", &Link::host, "machine").filled();
  fields.add("link", &Link::link, "network interface or InfiniBand port").filled();
  fields.add("bytes_per_step", &Link::bytes_per_step, "sent, by its counter")
      .unit("bytes")
      .at_least(0);
}

void EmbeddingTable::describe(Fields& fields) {
  fields.add("name", &EmbeddingTable::name, "of the table").filled();
  fields.add("rows", &EmbeddingTable::rows, "vocabulary").at_least(1);
  fields.add("width", &EmbeddingTable::width, "values of a row").at_least(1);
  fields.add("tied", &EmbeddingTable::tied, "whether a projection shares it");
  fields.add("rows_per_rank", &EmbeddingTable::rows_per_rank, "that a rank collected, mean")
      .at_least(0)
      .otherwise("dense gradients are not collected as rows");
}

void Embedding::describe(Fields& fields) {
  fields.add("strategy", &Embedding::strategy, "how gradients of tables travel")
      .one_of({"dense", "sparse", "sparse_as_dense"});
  fields.add("tied_gradient", &Embedding::tied_gradient, "of a projection that shares a table")
      .one_of({"dense", "sparse"});
  fields.add("tables", &Embedding::tables, "of the model").filled();
  fields.add("rows_per_rank", &Embedding::rows_per_rank, "of all tables, mean")
      .at_least(0)
      .otherwise("dense gradients are not collected as rows");
  fields
      .add("buffer_bytes_per_rank", &Embedding::buffer_bytes_per_rank,
           "that a rank holds for gradients of tables")
      .unit("bytes")
      .at_least(0);
  fields.add("wire_bytes_per_step", &Embedding::wire_bytes_per_step, "sent by a rank for tables")
      .unit("bytes")
      .at_least(0);
  fields.add("exchange_seconds", &Embedding::exchange_seconds, "the longest exchange of rows")
      .unit("s")
      .above(0);
  fields.add("densify_seconds", &Embedding::densify_seconds, "of adding rows to dense gradients")
      .unit("s")
      .at_least(0);
}

void CollectiveCost::describe(Fields& fields) {
  fields.add("collective", &CollectiveCost::collective, "what ranks do together")
      .one_of({"allreduce", "reduce_scatter", "allgather"});
  fields.add("messages_per_step", &CollectiveCost::messages_per_step, "collectives started")
      .at_least(0);
  fields.add("bytes_per_step", &CollectiveCost::bytes_per_step, "payload")
      .unit("bytes")
      .at_least(0);
  fields.add("wire_bytes_per_step", &CollectiveCost::wire_bytes_per_step, "sent, as by a ring")
      .unit("bytes")
      .at_least(0);
  fields.add("total_seconds", &CollectiveCost::total_seconds, "one or more of them are under way")
      .unit("s")
      .at_least(0);
  fields.add("wait_seconds", &CollectiveCost::wait_seconds, "nothing is computed for want of them")
      .unit("s")
      .at_least(0);
}

void Communication::describe(Fields& fields) {
  fields
      .add("communicator", &Communication::communicator,
           "[`--communicator`](configuration.md), or `gloo`")
      .one_of({"mpi", "nccl", "none", "gloo"})
      .column(26, "communicator");
  fields.add("transport", &Communication::transport, "what carries the bytes")
      .otherwise("the communicator does not tell")
      .column(27, "transport");
  fields.add("algorithm", &Communication::algorithm, "the allreduce behind `wire_bytes_per_step`")
      .otherwise("the communicator does not tell");
  fields
      .add("reducer", &Communication::reducer,
           "`scalemark` or [`c10d`](measurements.md#the-other-reducer)")
      .one_of({"scalemark", "c10d"})
      .column(28, "reducer");
  fields.add("wire_dtype", &Communication::wire_dtype, "type of the sent gradients")
      .one_of({"fp32", "bf16", "fp16"})
      .column(29, "wire_dtype");
  fields.add("overlap", &Communication::overlap, "`--overlap`")
      .one_of({"none", "backward", "step"})
      .column(30, "overlap");
  fields.add("shard", &Communication::shard, "what is divided among the ranks: `--shard`")
      .one_of({"none", "optimizer", "gradients", "parameters"})
      .since(11);
  fields
      .add("shard_ranks", &Communication::shard_ranks,
           "consecutive ranks among which it is divided; between such groups it is replicated: "
           "`--shard_ranks`")
      .at_least(1)
      .since(12)
      .otherwise("nothing is divided");
  fields
      .add("bucket_mb", &Communication::bucket_mb,
           "size at which a bucket of gradients is closed: `--bucket_mb`, or what the device takes "
           "without it")
      .unit("MiB")
      .above(0)
      .since(9);
  fields.add("bytes_per_step", &Communication::bytes_per_step, "payload")
      .unit("bytes")
      .at_least(0)
      .column(62, "bytes_per_step");
  fields
      .add("wire_bytes_per_step", &Communication::wire_bytes_per_step,
           "sent, by the stated algorithm")
      .unit("bytes")
      .at_least(0)
      .column(63, "wire_bytes_per_step")
      .metric("wire_bytes", "bytes/step", Better::lower);
  fields
      .add("nic_bytes_per_step", &Communication::nic_bytes_per_step,
           "sent, by the counters of network interfaces and of InfiniBand and RoCE ports "
           "(`port_xmit_data` x 4)")
      .unit("bytes")
      .at_least(0)
      .column(64, "nic_bytes_per_step")
      .metric("nic_bytes", "bytes/step", Better::lower);
  fields.add("links", &Communication::links, "the same by host and link").since(4);
  fields.add("messages_per_step", &Communication::messages_per_step, "collectives started")
      .at_least(0)
      .column(65, "messages_per_step");
  fields.add("total_seconds", &Communication::total_seconds, "of all buckets")
      .unit("s")
      .at_least(0)
      .column(58, "communication_seconds", "of a step");
  fields
      .add("exposed_seconds", &Communication::exposed_seconds, "what communication adds to a step")
      .unit("s")
      .column(59, "exposed_seconds", "of a step")
      .metric("exposed_seconds", "seconds/step", Better::lower);
  fields
      .add("exposed_method", &Communication::exposed_method,
           "`baseline`: mean step less that without communication; `wait`: time of waiting")
      .one_of({"baseline", "wait"})
      .column(60, "exposed_method");
  fields.add("overlap_fraction", &Communication::overlap_fraction, "1 - exposed / total")
      .within(0, 1)
      .column(61, "overlap_fraction");
  fields
      .add("baseline_throughput", &Communication::baseline_throughput,
           "of the same ranks without communication")
      .unit("units/s")
      .above(0)
      .otherwise("no run without communication was measured on these ranks")
      .column(40, "baseline_throughput", "of the same ranks without communication");
  fields.add("collectives", &Communication::collectives, "the same, each by itself").since(11);
  fields.add("embedding", &Communication::embedding,
             "[gradients of embedding tables](measurements.md#gradients-of-embeddings)");
}

void Input::describe(Fields& fields) {
  fields.add("place", &Input::place, "of the prepared batches");
  fields.add("bytes_per_step", &Input::bytes_per_step, "copied to the device, per rank")
      .unit("bytes")
      .at_least(0);
  fields.add("copy_seconds", &Input::copy_seconds, "of the copies of a step").unit("s").at_least(0);
  fields.add("wait_seconds", &Input::wait_seconds, "of a step for its batch").unit("s").at_least(0);
}

void WriteSeconds::describe(Fields& fields) {
  fields.add("mean", &WriteSeconds::mean, "over checkpoints, slowest file each").unit("s").above(0);
  fields.add("max", &WriteSeconds::max, "of the slowest checkpoint").unit("s").above(0);
}

void FileRates::describe(Fields& fields) {
  fields.add("mean", &FileRates::mean, "over files").unit("bytes/s").above(0);
  fields.add("min", &FileRates::min, "of the slowest file").unit("bytes/s").above(0);
  fields.add("max", &FileRates::max, "of the fastest file").unit("bytes/s").above(0);
}

void NodeFiles::describe(Fields& fields) {
  fields.add("host", &NodeFiles::host, "machine");
  fields.add("files", &NodeFiles::files, "of a checkpoint that it writes").at_least(1);
  fields.add("bytes_per_second", &NodeFiles::bytes_per_second, "of its files together")
      .unit("bytes/s")
      .above(0);
}

void ProjectedCheckpoint::describe(Fields& fields) {
  fields
      .add("storage_bytes_per_second", &ProjectedCheckpoint::storage_bytes_per_second,
           "of the storage; the measured rate comes first")
      .unit("bytes/s")
      .above(0);
  fields.add("interval_steps", &ProjectedCheckpoint::interval_steps, "between two checkpoints")
      .unit("steps")
      .at_least(1);
  fields.add("overhead_fraction", &ProjectedCheckpoint::overhead_fraction, "of the time")
      .within(0, 1);
}

void Storage::describe(Fields& fields) {
  fields.add("bytes_per_second", &Storage::bytes_per_second, "of `--storage_gbit`")
      .unit("bytes/s")
      .above(0);
  fields.add("node_bytes_per_second", &Storage::node_bytes_per_second, "of `--storage_node_gbit`")
      .unit("bytes/s")
      .above(0)
      .otherwise("--storage_node_gbit was not given");
  fields.add("limited_by", &Storage::limited_by, "what decides").one_of({"file system", "node"});
  fields.add("seconds", &Storage::seconds, "of one checkpoint").unit("s").above(0);
  fields.add("overhead_fraction", &Storage::overhead_fraction, "of the time").within(0, 1);
}

void Checkpoint::describe(Fields& fields) {
  fields.add("every", &Checkpoint::every, "between two checkpoints").unit("steps").at_least(1);
  fields.add("writers", &Checkpoint::writers, "`--checkpoint_writers`; with `--shard` `rank`")
      .one_of({"root", "node", "rank"})
      .since(5);
  fields.add("files", &Checkpoint::files, "of a checkpoint").at_least(0).since(5);
  fields.add("bytes", &Checkpoint::bytes, "of a file, mean").unit("bytes").at_least(0);
  fields.add("count", &Checkpoint::count, "checkpoints in the measured loop").at_least(0);
  fields.add("write_seconds", &Checkpoint::write_seconds, "of a checkpoint");
  fields.add("bytes_per_second", &Checkpoint::bytes_per_second, "of a file, mean")
      .unit("bytes/s")
      .above(0);
  fields
      .add("step_overhead_fraction", &Checkpoint::step_overhead_fraction,
           "of the measured loop that went into checkpoints")
      .within(0, 1);
  fields.add("projected", &Checkpoint::projected, "cost at other rates and intervals");
  fields.add("total_bytes", &Checkpoint::total_bytes, "of all files")
      .unit("bytes")
      .at_least(0)
      .since(5);
  fields.add("total_bytes_per_second", &Checkpoint::total_bytes_per_second, "of all files together")
      .unit("bytes/s")
      .above(0)
      .since(5);
  fields.add("file_bytes_per_second", &Checkpoint::file_bytes_per_second, "of single files")
      .since(5);
  fields.add("nodes", &Checkpoint::nodes, "by host").since(5);
  fields.add("storage", &Checkpoint::storage, "the same checkpoints on another file system")
      .since(5)
      .otherwise("--storage_gbit was not given");
}

void RunRank::describe(Fields& fields) {
  RankPlacement::describe(fields);
  fields.add("step_seconds_mean", &RunRank::step_seconds_mean, "of this rank").unit("s").above(0);
  fields.add("wait_seconds_mean", &RunRank::wait_seconds_mean, "of that, for communication")
      .unit("s")
      .at_least(0);
  fields.add("units_per_step", &RunRank::units_per_step, "of this rank, without padding");
  fields.add("straggler", &RunRank::straggler,
             "slower than its peers by the [rule](measurements.md#one-run)");
}

void ScalingOfLoss::describe(Fields& fields) {
  fields.add("initial", &ScalingOfLoss::initial, "loss scale at the start").at_least(1);
  fields.add("last", &ScalingOfLoss::last, "loss scale at the end").at_least(1);
  fields.add("dynamic", &ScalingOfLoss::dynamic, "whether it adapts itself");
  fields.add("skipped_steps", &ScalingOfLoss::skipped_steps, "whose gradients were not finite")
      .at_least(0);
}

void TargetLoss::describe(Fields& fields) {
  fields.add("loss", &TargetLoss::loss, "`--target_loss`");
  fields.add("reached", &TargetLoss::reached, "whether the loss came down to it");
  fields.add("steps", &TargetLoss::steps, "until the loss came down to it, warm-up included")
      .at_least(5)
      .metric("target_steps", "steps", Better::lower);
  fields.add("seconds", &TargetLoss::seconds, "of these steps")
      .unit("s")
      .above(0)
      .metric("target_seconds", "seconds", Better::faster);
}

void Loss::describe(Fields& fields) {
  fields.add("first", &Loss::first, "of the first measured step").column(72, "loss_first");
  fields.add("last", &Loss::last, "of the last measured step").column(73, "loss_last");
  fields.add("trace", &Loss::trace, "of every `trace_stride`-th step")
      .size(0, 1000)
      .or_null("the loss was not finite at these points");
  fields.add("trace_stride", &Loss::trace_stride, "between two values of the trace")
      .unit("steps")
      .at_least(1);
  fields.add("scaling", &Loss::scaling, "loss scaling of fp16")
      .otherwise("the loss is scaled in fp16 alone");
  fields.add("diverged", &Loss::diverged, "whether it went [up for good](measurements.md#the-loss)")
      .column(74, "loss_diverged");
  fields.add("target", &Loss::target, "[`--target_loss`](measurements.md#a-target-loss)")
      .otherwise("no --target_loss was asked for");
}

void Lengths::describe(Fields& fields) {
  fields.add("distribution", &Lengths::distribution, "of lengths").one_of({"uniform", "lognormal"});
  fields.add("median", &Lengths::median, "of the distribution")
      .unit("tokens")
      .above(0)
      .otherwise("of lognormal lengths alone");
  fields.add("sigma", &Lengths::sigma, "of the distribution's logarithm")
      .above(0)
      .otherwise("of lognormal lengths alone");
  fields.add("longest", &Lengths::longest, "that is possible").unit("tokens").above(0);
  fields.add("mean", &Lengths::mean, "measured, target side").unit("tokens").above(0);
  fields.add("padding_fraction", &Lengths::padding_fraction, "of a batch").within(0, 1);
  fields
      .add("imbalance", &Lengths::imbalance,
           "sum over steps of the largest rank's tokens / the mean rank's")
      .at_least(1);
}

void RunMemory::describe(Fields& fields) {
  Memory::describe(fields);
  fields
      .add("gradient_buffer_bytes", &RunMemory::gradient_buffer_bytes, "of one rank, with padding")
      .unit("bytes")
      .at_least(0);
  fields.add("weight_bytes", &RunMemory::weight_bytes, "of one rank, masters and copies")
      .unit("bytes")
      .at_least(0);
  fields.add("optimizer_state_bytes", &RunMemory::optimizer_state_bytes, "of one rank")
      .unit("bytes")
      .at_least(0);
  fields.add("batch_bytes", &RunMemory::batch_bytes, "of the prepared batches of one rank")
      .unit("bytes")
      .at_least(0);
}

void EnergyUse::describe(Fields& fields) {
  fields.add("joules_per_sample", &EnergyUse::joules_per_sample, "warm-up and measured loop")
      .unit("J")
      .above(0)
      .column(80, "joules_per_sample")
      .metric("joules_per_sample", "joules/sample", Better::lower);
  fields.add("source", &EnergyUse::source, "`rapl`, `nvml` or `nvml+rapl`")
      .otherwise("no energy was measured");
}

void RunNoise::describe(Fields& fields) {
  describe_first(fields);
  fields
      .add("communication_cpu_seconds", &RunNoise::communication_cpu_seconds,
           "of all ranks' communication threads")
      .unit("s")
      .at_least(0)
      .metric("communication_cpu_seconds", "seconds/step", Better::lower, "steps");
  describe_last(fields);
}

void Interleaving::describe(Fields& fields) {
  fields.add("count", &Interleaving::count, "slices of the measured loop").at_least(0);
  fields.add("paused_seconds", &Interleaving::paused_seconds, "between them, not in `wall_seconds`")
      .unit("s")
      .at_least(0);
}

void PhaseValues::describe(Fields& fields) {
  fields.add("input", &PhaseValues::input).column(66, "input_seconds", "phases of a step");
  fields.add("forward", &PhaseValues::forward).column(67, "forward_seconds");
  fields.add("backward", &PhaseValues::backward).column(68, "backward_seconds");
  fields.add("communication", &PhaseValues::communication)
      .otherwise("c10d's stream waits within the backward pass, where it is counted")
      .column(69, "waiting_seconds", "for communication");
  fields.add("optimizer", &PhaseValues::optimizer).column(70, "optimizer_seconds");
  fields.add("checkpoint", &PhaseValues::checkpoint).column(71, "checkpoint_seconds");
  fields.add("agreement", &PhaseValues::agreement);
  fields.add("rest", &PhaseValues::rest);
}

void Phases::describe(Fields& fields) {
  fields.add("clock", &Phases::clock, "that the phases were measured with")
      .one_of({"host", "events of the stream"});
  fields.add("seconds", &Phases::seconds, "of a step, mean over ranks and steps").unit("s");
  fields.add("fractions", &Phases::fractions, "of a step");
}

void RankSteps::describe(Fields& fields) {
  fields.add("steps_per_cell", &RankSteps::steps_per_cell, "consecutive steps behind a value")
      .at_least(1);
  fields
      .add("compute_seconds", &RankSteps::compute_seconds, "by rank, means of local step less wait")
      .unit("s")
      .filled()
      .each(1);
}

}  // namespace record

void RunResult::describe(Fields& fields) {
  using R = RunResult;
  Envelope::describe(fields, "run");
  describe_model(fields);
  fields.add("world_size", &R::world_size, "ranks")
      .at_least(1)
      .column(15, "ranks", "of an instance where it is one of several jobs");
  describe_batch(fields);
  fields.add("global_batch_size", &R::global_batch_size, "of a step")
      .unit("samples")
      .at_least(1)
      .column(20, "global_batch_size", "samples");
  describe_batch_search(fields);
  fields.add("units_per_step", &R::units_per_step, "of all ranks in one step").above(0);
  describe_precision(fields);
  fields.add("scaling", &R::scaling, "what stays the same as ranks are added")
      .column(14, "scaling");
  describe_device(fields);
  describe_config(fields, Presence::when_ok);
  fields.add("step_seconds", &R::step_seconds, "of the measured loop").known(Presence::when_ok);
  fields.add("steps", &R::steps, "measured").at_least(0).column(47, "steps");
  fields.add("stop_reason", &R::stop_reason, "what ended the measured loop");
  fields
      .add("communication", &R::communication,
           "per step and rank ([formulas](measurements.md#communication-per-step))")
      .known(Presence::when_ok);
  fields.add("input", &R::input, "where batches come from").otherwise("no step was completed");
  fields.add("checkpoint", &R::checkpoint, "[cost](measurements.md#checkpoints) of checkpoints")
      .otherwise("--checkpoint_every was not asked for");
  fields.add("ranks", &R::ranks, "by number").known(Presence::when_ok);
  fields.add("loss", &R::loss, "of training").otherwise("no loss was computed");
  fields.add("lengths", &R::lengths, "of `--length_distribution`");
  describe_flops(fields);
  fields.add("memory", &R::memory, "that the run took");
  fields.add("energy", &R::energy, "that the run took");
  fields.add("noise", &R::noise,
             "[of warm-up and loop](measurements.md#noise-during-warm-up-and-measured-loop)");
  describe_context(fields);
  fields.add("turns", &R::turns, "of a run that was interleaved with another ([gate](gate.md))")
      .since(2)
      .otherwise("the run was not interleaved");
  fields.add("phases", &R::phases, "[where a step goes](measurements.md#where-a-step-goes)")
      .since(3);
  describe_trace(fields);
  fields
      .add("rank_steps", &R::rank_steps,
           "each rank's own time over the run; null where the waits are unknown")
      .since(6);
  describe_placement(fields);
}

}  // namespace scalemark

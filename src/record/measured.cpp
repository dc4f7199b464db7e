// The keys that records of a training and of an inference run have in common.
#include "record/measured.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace scalemark::record {

void PreflightReference::describe(Fields& fields) {
  fields.add("id", &PreflightReference::id, "of its record").filled();
  fields.add("status", &PreflightReference::status, "of its record");
  fields.add("verdict", &PreflightReference::verdict, "of its rules")
      .otherwise("that preflight did not come to an end")
      .one_of({"pass", "warn", "fail"});
  fields.add("created_at", &PreflightReference::created_at, "RFC 3339, UTC").filled();
  fields.add("hosts_not_covered", &PreflightReference::hosts_not_covered,
             "hosts of this record that it did not look at");
}

void TriedBatch::describe(Fields& fields) {
  fields.add("batch_size", &TriedBatch::batch_size, "of a rank").unit("samples").at_least(1);
  fields.add("fits", &TriedBatch::fits, "on every rank");
  fields.add("seconds", &TriedBatch::seconds, "of its step, slowest rank").unit("s").at_least(0);
  fields.add("peak_bytes", &TriedBatch::peak_bytes, "of the largest rank")
      .unit("bytes")
      .at_least(0);
}

void BatchSizeSearch::describe(Fields& fields) {
  fields.add("requested", &BatchSizeSearch::requested, "what was asked for").one_of({"max"});
  fields.add("tried", &BatchSizeSearch::tried, "in their order");
  fields.add("limit_bytes", &BatchSizeSearch::limit_bytes, "memory that a rank may take")
      .unit("bytes")
      .at_least(0)
      .otherwise("neither the host nor the device tells how much memory is left");
  fields.add("limited_by", &BatchSizeSearch::limited_by, "why no larger batch was taken")
      .one_of({"memory", "step time", "legal batch sizes", "signal"});
}

void Throughput::describe(Fields& fields) {
  fields
      .add("mean", &Throughput::mean,
           "all units of all ranks / wall time between the two synchronised points")
      .unit("units/s")
      .above(0)
      .column(34, "throughput", "units a second of all ranks, or of all instances");
  fields.add("median", &Throughput::median, "units of a step / median step")
      .unit("units/s")
      .above(0)
      .column(37, "throughput_median");
  fields
      .add("ci95", &Throughput::ci95, "95 % interval of the mean; null below 30 effective samples")
      .unit("units/s")
      .column(35, "throughput", "of the 95 % interval");
  fields.add("ci95_scope", &Throughput::ci95_scope, "what the interval is about")
      .one_of({"this launch only"});
  fields
      .add("jitter", &Throughput::jitter, "1.4826 x median absolute deviation of the steps' rates")
      .unit("units/s")
      .at_least(0)
      .column(38, "throughput_jitter");
  fields.add("per_rank_min", &Throughput::per_rank_min, "of the slowest rank")
      .unit("units/s")
      .above(0);
  fields.add("per_rank_max", &Throughput::per_rank_max, "of the fastest rank")
      .unit("units/s")
      .above(0);
}

void Binding::describe(Fields& fields) {
  fields.add("overlaps_with", &Binding::overlaps_with, "ranks of the host that share a CPU")
      .at_least(0);
  fields.add("as_asked", &Binding::as_asked, "whether the binding that was asked for came about")
      .otherwise(
          "the launcher does not tell what it was asked for, or the kernel where the rank runs");
  fields.add("near_gpu", &Binding::near_gpu, "whether all CPUs are near the GPU")
      .otherwise("the run used no GPU");
  fields
      .add("crosses_numa", &Binding::crosses_numa,
           "whether the CPUs are of several NUMA nodes and leave out CPUs of these")
      .since(7)
      .otherwise("hwloc sees no NUMA nodes");
}

void RankPlacement::describe(Fields& fields) {
  fields.add("rank", &RankPlacement::rank, "number").at_least(0);
  fields.add("host", &RankPlacement::host, "machine");
  fields.add("cpus", &RankPlacement::cpus, "logical CPUs that the kernel allows")
      .pattern("^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$")
      .otherwise("sched_getaffinity is refused");
  fields.add("numa", &RankPlacement::numa, "NUMA nodes of the CPUs")
      .at_least(0)
      .filled()
      .otherwise("hwloc sees no NUMA nodes");
  fields
      .add("affinity_requested", &RankPlacement::affinity_requested,
           "binding asked of the launcher, or by `--gpu_binding`")
      .otherwise("the launcher does not tell what it was asked for");
  fields.add("binding", &RankPlacement::binding, "what came of it");
  fields.add("threads", &RankPlacement::threads, "that compute")
      .at_least(1)
      .column(18, "threads", "of rank 0");
  fields.add("gpu", &RankPlacement::gpu, "device number among the visible ones")
      .at_least(0)
      .otherwise("the run used no GPU")
      .column(84, "gpu", "of rank 0");
  fields.add("gpu_uuid", &RankPlacement::gpu_uuid, "of a MIG slice `MIG-…`")
      .otherwise("the run used no GPU, or the driver tells no UUID");
}

void HostRanks::describe(Fields& fields) {
  fields.add("host", &HostRanks::host, "machine").filled();
  fields.add("ranks", &HostRanks::ranks, "neighbouring ranks on it").at_least(1);
}

void Roofline::describe(Fields& fields) {
  fields.add("gemm_flops", &Roofline::gemm_flops, "measured GEMM peak of all ranks")
      .unit("FLOP/s")
      .above(0)
      .otherwise("the GEMM rate was not measured in this run");
  fields.add("fraction", &Roofline::fraction, "achieved / measured peak")
      .above(0)
      .known(Presence::if_ok)
      .column(77, "roofline_fraction");
  fields
      .add("published_flops", &Roofline::published_flops,
           "the vendor's [peak](measurements.md#published-peaks) of all GPUs, dense, in this "
           "precision")
      .unit("FLOP/s")
      .above(0)
      .since(12);
  fields
      .add("published_fraction", &Roofline::published_fraction,
           "achieved / published peak: the model FLOPs utilisation (MFU)")
      .above(0)
      .since(12);
}

void ForeignLoad::describe(Fields& fields) {
  fields.add("host", &ForeignLoad::host, "worst host").filled();
  fields.add("cpus", &ForeignLoad::cpus, "that other processes used, mean")
      .unit("CPUs")
      .at_least(0)
      .column(81, "foreign_cpus", "that others used meanwhile");
  fields.add("of_cpus", &ForeignLoad::of_cpus, "logical CPUs of the host").at_least(0);
  fields.add("seconds", &ForeignLoad::seconds, "that the host was looked at").unit("s").above(0);
}

namespace {

constexpr double kUsualCpus = 0.1;         // daemons, kernel threads
constexpr double kUsualFraction = 0.01;    // of a large host
constexpr double kLeastCpuSeconds = 0.15;  // ticks are 10 ms, of every CPU

}  // namespace

bool ForeignLoad::notable() const {
  return cpus > std::max(kUsualCpus, kUsualFraction * static_cast<double>(of_cpus)) &&
         cpus * seconds > kLeastCpuSeconds;
}

std::string ForeignLoad::words() const {
  return fmt::format("other processes used {:.1f} of {} CPUs", cpus, of_cpus);
}

void Noise::describe_first(Fields& fields) {
  fields.add("steal", &Noise::steal, "share of CPU time that the hypervisor took")
      .within(0, 1)
      .otherwise("/proc/stat is not readable");
  fields.add("foreign", &Noise::foreign, "what other processes used, worst host")
      .since(3)
      .otherwise("/proc/stat is not readable");
  fields.add("throttled", &Noise::throttled, "that a cgroup's CPU quota held a rank up, worst rank")
      .unit("s")
      .at_least(0)
      .otherwise("no cgroup with CPU statistics");
  fields.add("load", &Noise::load, "1-minute load average at the end, worst host")
      .at_least(0)
      .otherwise("/proc/loadavg is not readable");
  fields.add("context_switches", &Noise::context_switches, "involuntary, of all ranks").at_least(0);
}

void Noise::describe_last(Fields& fields) {
  fields
      .add("error_counters", &Noise::error_counters,
           "new network errors and drops by `host:interface`")
      .at_least(0);
}

void Noise::describe(Fields& fields) {
  describe_first(fields);
  describe_last(fields);
}

void Window::describe(Fields& fields) {
  fields.add("begin_seconds", &Window::begin_seconds, "from the start of the measured loop")
      .unit("s")
      .at_least(0);
  fields.add("seconds", &Window::seconds, "of rank 0's steps in it").unit("s").above(0);
  fields.add("steps", &Window::steps, "of rank 0 that end in it").at_least(1);
  fields.add("throughput", &Window::throughput, "of all ranks").unit("units/s").above(0);
  fields.add("cpu_mhz", &Window::cpu_mhz, "of the slowest rank").unit("MHz").at_least(0);
  fields.add("cpu_celsius", &Window::cpu_celsius, "the hottest sensor").unit("°C");
  fields.add("memory_bytes", &Window::memory_bytes, "resident, of the largest rank")
      .unit("bytes")
      .at_least(0);
  fields.add("gpu_mhz", &Window::gpu_mhz, "of the slowest GPU").unit("MHz").at_least(0);
  fields.add("gpu_celsius", &Window::gpu_celsius, "of the hottest GPU").unit("°C");
  fields.add("gpu_watts", &Window::gpu_watts, "of all GPUs").unit("W").at_least(0);
  fields.add("gpu_memory_bytes", &Window::gpu_memory_bytes, "of the largest rank")
      .unit("bytes")
      .at_least(0);
  fields.add("host_watts", &Window::host_watts, "of all hosts (RAPL)").unit("W").at_least(0);
  fields.add("busy_cpus", &Window::busy_cpus, "of all hosts and processes")
      .unit("CPUs")
      .at_least(0);
  fields.add("nic_errors", &Window::nic_errors, "network errors and drops");
  fields.add("gpu_errors", &Window::gpu_errors, "of ECC");
}

void Drift::describe(Fields& fields) {
  fields
      .add("verdict", &Drift::verdict,
           "`slower` or `faster`: p at most 0.01 and a change of 1 % or more; `steady`: the "
           "whole interval within 1 %; else `not shown`")
      .one_of({"slower", "faster", "steady", "not shown"});
  fields.add("change", &Drift::change,
             "mean of the last third less that of the first, a fraction of the mean of all");
  fields.add("ci95", &Drift::ci95, "95 % interval of the change");
  fields.add("p", &Drift::p, "of no change, Student's t over 60 pieces").within(0, 1);
  fields.add("autocorrelation", &Drift::autocorrelation, "of the pieces, which corrects p")
      .within(0, 1);
  fields.add("beside", &Drift::beside,
             "what of the machine changed by 1 % or more between the same thirds, as a fraction");
}

void Windows::describe(Fields& fields) {
  fields.add("seconds", &Windows::seconds, "length of a window").unit("s").above(0);
  fields.add("series", &Windows::series, "in the order of time");
  fields.add("drift", &Windows::drift, "whether the throughput changed");
}

void Trace::describe(Fields& fields) {
  fields.add("path", &Trace::path, "of the file").filled();
  fields.add("steps", &Trace::steps, "traced steps of a rank").at_least(1);
  fields.add("events", &Trace::events, "of all ranks").at_least(0);
  fields
      .add("dropped_events", &Trace::dropped_events,
           "operators for which there was no room; they count in `operators` all the same")
      .at_least(0);
  fields.add("step_seconds", &Trace::step_seconds, "mean traced step").unit("s").above(0);
  fields.add("slowdown", &Trace::slowdown, "of a traced step against the measured one, a fraction")
      .otherwise("no mean step was measured");
  fields.add("seconds", &Trace::seconds, "of the pass as a whole").unit("s").above(0);
  fields
      .add("clock_uncertainty_seconds", &Trace::clock_uncertainty_seconds,
           "how far the times of a rank may be off from those of rank 0, worst rank")
      .unit("s")
      .at_least(0);
}

void TopOperator::describe(Fields& fields) {
  fields.add("name", &TopOperator::name, "of LibTorch's operator").filled();
  fields.add("group", &TopOperator::group, "what it is counted under")
      .one_of({"convolution", "matrix_product", "normalisation", "optimizer", "communication",
               "other"});
  fields.add("calls_per_step", &TopOperator::calls_per_step, "of a rank").above(0);
  fields
      .add("self_seconds", &TopOperator::self_seconds,
           "without operators that it calls; of n threads that call operators in one loop, 1/n")
      .unit("s")
      .at_least(0);
  fields.add("share", &TopOperator::share, "of the step").at_least(0);
}

void OperatorGroup::describe(Fields& fields) {
  fields.add("seconds", &OperatorGroup::seconds, "of a step").unit("s").at_least(0);
  fields.add("share", &OperatorGroup::share, "of the step").at_least(0);
  fields.add("flops", &OperatorGroup::flops, "of all ranks in a step").unit("FLOP").at_least(0);
  fields.add("achieved_flops", &OperatorGroup::achieved_flops, "of all ranks")
      .unit("FLOP/s")
      .at_least(0);
  fields.add("roofline_fraction", &OperatorGroup::roofline_fraction, "of the measured GEMM peak")
      .at_least(0);
}

void OperatorGroups::describe(Fields& fields) {
  fields.add("convolution", &OperatorGroups::convolution);
  fields.add("matrix_product", &OperatorGroups::matrix_product);
  fields.add("normalisation", &OperatorGroups::normalisation);
  fields.add("optimizer", &OperatorGroups::optimizer);
  fields.add("communication", &OperatorGroups::communication);
  fields.add("other", &OperatorGroups::other);
}

void OutsideOperators::describe(Fields& fields) {
  fields.add("seconds", &OutsideOperators::seconds, "of a step").unit("s").at_least(0);
  fields.add("share", &OutsideOperators::share, "of the step").at_least(0);
}

void Operators::describe(Fields& fields) {
  fields.add("clock", &Operators::clock, "whose times these are").one_of({"host"});
  fields.add("top", &Operators::top, "the 20 operators with the most time of their own");
  fields.add("groups", &Operators::groups, "all operators");
  fields.add("outside", &Operators::outside, "where no operator ran and nothing was waited for");
}

void Memory::describe(Fields& fields) {
  fields.add("peak_rss_bytes", &Memory::peak_rss_bytes, "resident, largest rank")
      .unit("bytes")
      .at_least(0)
      .column(78, "peak_rss_bytes");
  fields.add("peak_gpu_bytes", &Memory::peak_gpu_bytes, "largest rank")
      .unit("bytes")
      .at_least(0)
      .otherwise("the run used no GPU")
      .column(79, "peak_gpu_bytes");
}

void Measured::describe_model(Fields& fields) {
  fields.add("model", &Measured::model, "name").filled().column(11, "model");
  fields.add("unit", &Measured::unit, "of rates")
      .one_of(unit_words())
      .column(12, "unit", "of throughput, speedup's numbers and latencies' queries");
}

void Measured::describe_batch(Fields& fields) {
  fields.add("batch_size_per_rank", &Measured::batch_size_per_rank, "of a step")
      .unit("samples")
      .at_least(1)
      .column(19, "batch_size_per_rank", "samples");
}

void Measured::describe_batch_search(Fields& fields) {
  fields
      .add("batch_size_search", &Measured::batch_size_search,
           "[search](measurements.md#the-largest-batch) of `--batch_size max`")
      .otherwise("--batch_size max was not asked for");
}

void Measured::describe_precision(Fields& fields) {
  fields.add("precision", &Measured::precision, "arithmetic").column(23, "precision");
  fields
      .add("kernels", &Measured::kernels,
           "whose kernels computed: this program's (`scalemark`; `triton`: those for a GPU) or "
           "LibTorch's alone (`torch`): [which is for what](configuration.md#kernels)")
      .since(9);
  fields.add("precision_native", &Measured::precision_native,
             "whether the processor has instructions for it");
  fields
      .add("proven_on", &Measured::proven_on,
           "of a run on a GPU: card, driver and date with which the tests of this program's "
           "CUDA path have passed last ([list](gpu.md))")
      .filled()
      .since(8);
}

void Measured::describe_device(Fields& fields) {
  fields.add("device", &Measured::device, "what computes")
      .one_of({"cpu", "cuda"})
      .column(25, "device");
  fields.add("device_name", &Measured::device_name, "the GPU's name");
}

void Context::describe_config(Fields& fields) { record::describe_config(fields, &Context::config); }

void Context::describe_machine(Fields& fields, const char* wall) {
  fields.add("system", &Context::system, "the machine of rank 0");
  describe_environment(fields, &Context::environment);
  fields.add("allocator", &Context::allocator, "`tcmalloc` or `glibc`");
  fields.add("started_at", &Context::started_at, "RFC 3339, UTC").pattern(kTimePattern);
  fields.add("wall_seconds", &Context::wall_seconds, wall)
      .unit("s")
      .above(0)
      .column(7, "wall_seconds");
}

void Measured::describe_config(Fields& fields, Presence of_hash) {
  Context::describe_config(fields);
  fields
      .add("config_hash", &Measured::config_hash,
           "SHA-256 of the keys that decide what is measured and of the world size")
      .pattern(kSha256Pattern)
      .known(of_hash)
      .column(90, "config_hash");
  fields.add("throughput", &Measured::throughput, "null unless `status` is `ok`")
      .known(Presence::only_when_ok);
  fields
      .add("partial_throughput", &Measured::partial_throughput,
           "of an interrupted or timed-out run")
      .unit("units/s")
      .above(0)
      .known(Presence::when_partial)
      .otherwise("only of runs that were interrupted or timed out")
      .column(39, "partial_throughput", "of a run that was interrupted");
}

void Measured::describe_flops(Fields& fields) {
  fields.add("parameters", &Measured::parameters, "trainable").at_least(0).column(75, "parameters");
  fields.add("flops_per_sample", &Measured::flops_per_sample, "of one sample")
      .unit("FLOP")
      .above(0);
  fields.add("achieved_flops", &Measured::achieved_flops, "of all ranks")
      .unit("FLOP/s")
      .above(0)
      .known(Presence::if_ok)
      .column(76, "achieved_flops", "a second, of all ranks");
  fields.add("roofline", &Measured::roofline, "against the machine's peak");
}

void Measured::describe_context(Fields& fields) {
  fields.add("preflight", &Measured::preflight, "of `--preflight FILE`")
      .otherwise("no preflight record was named: --preflight FILE");
  describe_machine(fields, "of the measured loop");
}

void Measured::describe_placement(Fields& fields) {
  fields.add("placement", &Measured::placement, "how many ranks are on which host").since(4);
  fields.add("windows", &Measured::windows, "the run by time, of `--window_seconds`")
      .since(4)
      .otherwise("without --window_seconds no series is kept");
}

void Measured::describe_trace(Fields& fields) {
  fields.add("trace", &Measured::trace, "the steps that `--trace` recorded after the measured ones")
      .since(6)
      .otherwise("--trace was not asked for");
  fields.add("operators", &Measured::operators, "the traced steps by operator")
      .since(6)
      .otherwise("--trace was not asked for");
}

}  // namespace scalemark::record

// The keys of a preflight record. Those that say which way they are better are statistics that
// rules know by their names.
#include "record/preflight.hpp"

#include <algorithm>

namespace scalemark {
namespace record {
namespace {

constexpr const char* kUntold = "the host does not tell, or --pinning measures nothing";
constexpr Better kHigher = Better::higher, kLower = Better::lower;

}  // namespace

void Check::describe(Fields& fields) {
  constexpr const char* kSkipped = "skipped, or not of one rank or host alone";
  fields.add("name", &Check::name, "of the check, [above](#what-is-measured)").filled();
  fields.add("statistic", &Check::statistic, "of the check").filled();
  fields.add("status", &Check::status, "what became of it");
  fields.add("value", &Check::value, "of `relative_to_median` the fraction")
      .types({"number", "string", "boolean"})
      .otherwise(kSkipped);
  fields.add("bound", &Check::bound, "of the [rule](#rules)");
  fields.add("limit", &Check::limit, "of the rule")
      .types({"number", "string", "boolean"})
      .otherwise(kSkipped);
  fields.add("unit", &Check::unit, "of value and limit");
  fields.add("rank", &Check::rank, "that it is about").at_least(0).otherwise(kSkipped);
  fields.add("host", &Check::host, "that it is about").otherwise(kSkipped);
  fields.add("message", &Check::message, "the same as a sentence").filled();
}

void GemmRate::describe(Fields& fields) {
  fields.add("flops", &GemmRate::flops, "of all products").unit("FLOP/s").above(0).better(kHigher);
  fields.add("median_flops", &GemmRate::median_flops, "of the median one")
      .unit("FLOP/s")
      .above(0)
      .better(kHigher);
}

void GemmRates::describe(Fields& fields) {
  fields.add("fp64", &GemmRates::fp64, "a precision");
  fields.add("fp32", &GemmRates::fp32, "likewise");
  fields.add("bf16", &GemmRates::bf16, "likewise");
  fields.add("fp16", &GemmRates::fp16, "likewise");
}

void MemoryBandwidth::describe(Fields& fields) {
  fields.add("bytes_per_second", &MemoryBandwidth::bytes_per_second, "of all passes")
      .unit("bytes/s")
      .above(0)
      .better(kHigher);
  fields.add("best_bytes_per_second", &MemoryBandwidth::best_bytes_per_second, "of the fastest")
      .unit("bytes/s")
      .above(0)
      .better(kHigher);
  fields.add("array_bytes", &MemoryBandwidth::array_bytes, "of each array")
      .unit("bytes")
      .at_least(1);
  fields.add("passes", &MemoryBandwidth::passes, "over the arrays").at_least(1);
}

void NoiseQuantum::describe(Fields& fields) {
  const auto seconds = [&](const char* key, double NoiseQuantum::*member, const char* text) {
    fields.add(key, member, text).unit("s").above(0).better(kLower);
  };
  fields.add("steps", &NoiseQuantum::steps, "of a quantum").at_least(1);
  fields.add("samples", &NoiseQuantum::samples, "quanta").at_least(1);
  seconds("mean_seconds", &NoiseQuantum::mean_seconds, "of a quantum");
  seconds("median_seconds", &NoiseQuantum::median_seconds, "of a quantum");
  seconds("best_mean_seconds", &NoiseQuantum::best_mean_seconds, "of the best block");
  seconds("p99_seconds", &NoiseQuantum::p99_seconds, "of a quantum");
  fields.add("max_over_min", &NoiseQuantum::max_over_min, "slowest / fastest quantum")
      .at_least(1)
      .better(kLower);
}

void EccCounts::describe(Fields& fields) {
  const auto count = [&](const char* key, Known<std::uint64_t> EccCounts::*member,
                         const char* text) {
    fields.add(key, member, text).at_least(0).better(kLower).otherwise(kUntold);
  };
  fields.add("enabled", &EccCounts::enabled, "whether it is on").better(kLower).otherwise(kUntold);
  count("corrected", &EccCounts::corrected, "errors since the driver was loaded");
  count("uncorrected", &EccCounts::uncorrected, "likewise");
  count("corrected_new", &EccCounts::corrected_new, "during preflight");
  count("uncorrected_new", &EccCounts::uncorrected_new, "likewise");
}

void Xids::describe(Fields& fields) {
  fields.add("events", &Xids::events, "errors during preflight").at_least(0).otherwise(kUntold);
  fields.add("kernel_log", &Xids::kernel_log, "in the kernel log (root only)")
      .at_least(0)
      .otherwise(kUntold);
}

void NvLinks::describe(Fields& fields) {
  fields.add("active", &NvLinks::active, "links").at_least(0).better(kHigher).otherwise(kUntold);
  fields.add("inactive", &NvLinks::inactive, "links").at_least(0).better(kLower).otherwise(kUntold);
}

void GpuDirect::describe(Fields& fields) {
  fields.add("peermem", &GpuDirect::peermem, "its kernel module is loaded").better(kHigher);
  fields.add("dmabuf", &GpuDirect::dmabuf, "memory can be shared as a DMA buffer")
      .better(kHigher)
      .otherwise(kUntold);
}

void GpuCopy::describe(Fields& fields) {
  fields.add("numa", &GpuCopy::numa, "node of the pinned memory").at_least(0);
  fields.add("near", &GpuCopy::near, "whether it is the GPU's").otherwise(kUntold);
  fields.add("to_device_bytes_per_second", &GpuCopy::to_device, "to the GPU")
      .unit("bytes/s")
      .above(0)
      .better(kHigher);
  fields.add("from_device_bytes_per_second", &GpuCopy::from_device, "from the GPU")
      .unit("bytes/s")
      .above(0)
      .better(kHigher);
}

void GpuHealth::describe(Fields& fields) {
  const auto clock = [&](const char* key, Known<int> GpuHealth::*member, const char* text) {
    fields.add(key, member, text).unit("MHz").at_least(0).otherwise(kUntold);
  };
  fields.add("memory_bytes", &GpuHealth::memory_bytes, "in all; of a MIG slice its own")
      .unit("bytes")
      .at_least(0)
      .otherwise(kUntold);
  fields.add("memory_free_bytes", &GpuHealth::memory_free_bytes, "before measuring")
      .unit("bytes")
      .at_least(0)
      .otherwise(kUntold);
  clock("sm_mhz", &GpuHealth::sm_mhz, "median under load; of a MIG slice its GPU's");
  clock("sm_max_mhz", &GpuHealth::sm_max_mhz, "largest");
  clock("memory_mhz", &GpuHealth::memory_mhz, "median under load");
  clock("memory_max_mhz", &GpuHealth::memory_max_mhz, "largest");
  fields.add("slowdowns", &GpuHealth::slowdowns, "faults that lowered the clocks")
      .one_of({"hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"})
      .otherwise(kUntold);
  fields.add("power_capped", &GpuHealth::power_capped, "whether the power limit did")
      .otherwise(kUntold);
  fields.add("ecc", &GpuHealth::ecc, "errors of memory");
  fields.add("xids", &GpuHealth::xids, "numbers of XID errors");
  fields.add("nvlinks", &GpuHealth::nvlinks, "of the GPU");
  fields.add("gpudirect", &GpuHealth::gpudirect, "what GPUDirect RDMA could use");
  fields.add("ats", &GpuHealth::ats, "whether it uses the host's page tables").otherwise(kUntold);
  fields.add("numa", &GpuHealth::numa, "node that it is near").at_least(0).otherwise(kUntold);
  fields.add("copies", &GpuHealth::copies, "with memory of every NUMA node");
}

void RankNoise::describe(Fields& fields) {
  fields.add("steal", &RankNoise::steal, "share of CPU time that the hypervisor took")
      .within(0, 1)
      .better(kLower)
      .otherwise(kUntold);
  fields.add("throttled", &RankNoise::throttled, "that a cgroup's CPU quota held it up")
      .unit("s")
      .at_least(0)
      .better(kLower)
      .otherwise(kUntold);
  fields.add("load", &RankNoise::load, "1-minute load average at the end")
      .at_least(0)
      .better(kLower)
      .otherwise(kUntold);
  fields.add("context_switches", &RankNoise::context_switches, "involuntary")
      .at_least(0)
      .better(kLower);
  fields.add("foreign_cpus", &RankNoise::foreign_cpus, "that other processes of the host used")
      .unit("CPUs")
      .at_least(0)
      .since(3)
      .better(kLower)
      .otherwise(kUntold);
}

void CheckedRank::describe(Fields& fields) {
  RankPlacement::describe(fields);
  fields.add("cpus_of_host", &CheckedRank::cpus_of_host, "logical ones that are online")
      .at_least(0);
  fields.add("gemm", &CheckedRank::gemm, "products of matrices").otherwise(kUntold);
  fields.add("memory_bandwidth", &CheckedRank::memory_bandwidth, "of the STREAM triad")
      .otherwise(kUntold);
  fields.add("noise_quantum", &CheckedRank::noise_quantum, "fixed work of about 1 ms")
      .otherwise(kUntold);
  fields.add("gpu_health", &CheckedRank::gpu_health, "state of its GPU").otherwise(kUntold);
  fields.add("noise", &CheckedRank::noise, "what disturbed it");
}

void LinkSpeed::describe(Fields& fields) {
  fields.add("name", &LinkSpeed::name, "of the interface");
  fields.add("speed_mbps", &LinkSpeed::speed_mbps, "of the link")
      .unit("Mbit/s")
      .at_least(0)
      .better(kHigher)
      .otherwise(kUntold);
}

void FabricPort::describe(Fields& fields) {
  fields.add("name", &FabricPort::name, "device and port");
  fields.add("state", &FabricPort::state, "`ACTIVE`, `DOWN`, …").better(kHigher).otherwise(kUntold);
  fields.add("gigabits_per_second", &FabricPort::gigabits_per_second, "of the link")
      .unit("Gbit/s")
      .at_least(0)
      .better(kHigher)
      .otherwise(kUntold);
}

void Scratch::describe(Fields& fields) {
  fields.add("folder", &Scratch::folder, "of the file").filled();
  fields.add("bytes", &Scratch::bytes, "of the file").unit("bytes").at_least(1);
  fields.add("write_bytes_per_second", &Scratch::write_bytes_per_second, "with fsync")
      .unit("bytes/s")
      .above(0)
      .better(kHigher);
  fields.add("read_bytes_per_second", &Scratch::read_bytes_per_second, "past the page cache")
      .unit("bytes/s")
      .above(0)
      .better(kHigher);
}

void CheckedHost::describe(Fields& fields) {
  fields.add("host", &CheckedHost::host, "name");
  fields.add("memory_available_bytes", &CheckedHost::memory_available_bytes, "left to take")
      .unit("bytes")
      .at_least(0)
      .better(kHigher)
      .otherwise(kUntold);
  fields.add("governor", &CheckedHost::governor, "of cpufreq, CPU 0")
      .better(kHigher)
      .otherwise(kUntold);
  fields.add("smt", &CheckedHost::smt, "whether a core has several threads")
      .better(kHigher)
      .otherwise(kUntold);
  fields.add("nics", &CheckedHost::nics, "network interfaces");
  fields.add("fabric", &CheckedHost::fabric, "InfiniBand and RoCE ports");
  fields.add("scratch", &CheckedHost::scratch, "a file in `--scratch`").otherwise(kUntold);
  fields.add("gpu_peers", &CheckedHost::gpu_peers, "every visible GPU to every other")
      .otherwise(kUntold);
  fields.add("risen_counters", &CheckedHost::risen_counters, "by `link.counter`").at_least(1);
  fields.add("error_counters", &CheckedHost::error_counters, "new errors and drops by link")
      .at_least(0);
}

void CollectiveRow::describe(Fields& fields) {
  fields.add("collective", &CollectiveRow::collective, "of fp32 values")
      .one_of({"allreduce", "allgather", "alltoall", "broadcast"});
  fields.add("carrier", &CollectiveRow::carrier, "what carries it")
      .one_of({"mpi", "scalemark", "nccl", "nccl_in_place"});
  fields.add("bytes", &CollectiveRow::bytes, "[its size](#collectives)").unit("bytes").at_least(4);
  fields.add("seconds", &CollectiveRow::seconds, "median of the slowest rank")
      .unit("s")
      .above(0)
      .better(kLower);
  fields.add("algbw", &CollectiveRow::algbw, "bytes / time")
      .unit("bytes/s")
      .above(0)
      .better(kHigher);
  fields.add("busbw", &CollectiveRow::busbw, "[bus bandwidth](#collectives)")
      .unit("bytes/s")
      .above(0)
      .better(kHigher);
  fields.add("repetitions", &CollectiveRow::repetitions, "that were timed").at_least(1);
  fields.add("wrong_elements", &CollectiveRow::wrong_elements, "of all ranks")
      .at_least(0)
      .better(kLower);
  fields.add("first_wrong", &CollectiveRow::first_wrong, "of them in words")
      .otherwise("no element was wrong");
}

void AllreduceRatio::describe(Fields& fields) {
  fields.add("bytes", &AllreduceRatio::bytes, "of the allreduce").unit("bytes").at_least(4);
  fields.add("scalemark_over_mpi", &AllreduceRatio::scalemark_over_mpi, "ratio of the times")
      .above(0);
}

void Collectives::describe(Fields& fields) {
  fields.add("transport", &Collectives::transport, "what carries MPI's bytes")
      .better(kHigher)
      .otherwise("the communicator does not tell");
  fields.add("algorithm", &Collectives::algorithm, "of scalemark's allreduce")
      .otherwise("the communicator does not tell");
  fields.add("rows", &Collectives::rows, "by collective, size and carrier").filled();
  fields.add("allreduce_ratio", &Collectives::allreduce_ratio, "scalemark's to MPI's");
}

void HostPair::describe(Fields& fields) {
  fields.add("hosts", &HostPair::hosts, "the two");
  fields.add("bytes", &HostPair::bytes, "each way at once").unit("bytes").at_least(1);
  fields.add("latency_seconds", &HostPair::latency_seconds, "half a round trip of 8 bytes")
      .unit("s")
      .at_least(0)
      .better(kLower);
  fields.add("bytes_per_second", &HostPair::bytes_per_second, "each way")
      .unit("bytes/s")
      .at_least(0)
      .better(kHigher);
}

void DifferingValue::describe(Fields& fields) {
  fields.add("value", &DifferingValue::value, "on these ranks").otherwise("not set on these ranks");
  fields.add("ranks", &DifferingValue::ranks, "ascending").filled().at_least(0);
}

void DifferingSetting::describe(Fields& fields) {
  fields.add("name", &DifferingSetting::name, "of the variable or parameter").filled();
  fields.add("values", &DifferingSetting::values, "by the first rank that has each").size(2);
}

void CommunicationSettings::describe(Fields& fields) {
  using S = CommunicationSettings;
  constexpr const char* kUnset = "not set: the library decides";
  fields.add("environment", &S::environment, "variables of libraries")
      .keys(kVariablePattern)
      .each(0, 1024);
  fields.add("open_mpi", &S::open_mpi, "parameters in effect");
  fields.add("hcoll_enabled", &S::hcoll_enabled, "whether Open MPI may use HCOLL")
      .otherwise("this Open MPI has no HCOLL");
  fields.add("nccl_relaxed_ordering", &S::nccl_relaxed_ordering, "`NCCL_IB_PCI_RELAXED_ORDERING`")
      .otherwise(kUnset);
  fields.add("ucx_relaxed_ordering", &S::ucx_relaxed_ordering, "`UCX_IB_PCI_RELAXED_ORDERING`")
      .otherwise(kUnset);
  fields.add("differing", &S::differing, "those that ranks do not have alike");
}

}  // namespace record

void Description<PeerLink>::of(Fields& fields) {
  fields.add("from", &PeerLink::from, "GPU among the visible ones").at_least(0);
  fields.add("to", &PeerLink::to, "likewise").at_least(0);
  fields.add("can_access", &PeerLink::can_access, "without the host").better(Better::higher);
  fields.add("bytes_per_second", &PeerLink::bytes_per_second, "of copies")
      .unit("bytes/s")
      .above(0)
      .better(Better::higher);
}

bool PreflightResult::of_pinning() const {
  return std::ranges::any_of(config, [](const auto& entry) {
    return entry.first == "pinning" && entry.second.value == true;
  });
}

void PreflightResult::describe(Fields& fields) {
  using R = PreflightResult;
  Envelope::describe(fields, "preflight");
  fields.add("verdict", &R::verdict, "the most severe status of `checks`")
      .one_of({"pass", "warn", "fail"})
      .known(Presence::only_when_ok);
  fields.add("checks", &R::checks, "what rules say").known(Presence::when_ok);
  fields.add("world_size", &R::world_size, "ranks").at_least(1);
  fields.add("device", &R::device, "what computes").one_of({"cpu", "cuda"});
  fields.add("device_name", &R::device_name, "the GPU's name");
  describe_config(fields);
  fields.add("ranks", &R::ranks, "by number").known(Presence::when_ok);
  fields.add("hosts", &R::hosts, "by their first ranks").known(Presence::when_ok);
  fields.add("collectives", &R::collectives, "null for one rank");
  fields.add("pairs", &R::pairs, "every two hosts, by a rank of each; null for one host").since(5);
  fields.add("settings", &R::settings, "of communication, of rank 0");
  describe_machine(fields, "of all checks");
}

}  // namespace scalemark

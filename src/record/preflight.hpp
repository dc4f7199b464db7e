// The preflight record: what was measured on the nodes of the ranks, and what rules say of it
// (docs/preflight.md).
#pragma once

#include "platform/fabric.hpp"
#include "platform/gpu_health.hpp"
#include "platform/posix_file.hpp"
#include "record/measured.hpp"

namespace scalemark {

enum class CheckStatus { pass, skip, warn, fail };
constexpr auto names_of(CheckStatus) { return Names{"pass", "skip", "warn", "fail"}; }

/// What a value must keep. relative_to_median: at least this fraction of the median of the ranks,
/// of two ranks of the better one; of a time, where less is better, the fraction is median / time.
enum class Bound { min, max, relative_to_median, equals };
constexpr auto names_of(Bound) { return Names{"min", "max", "relative_to_median", "equals"}; }

namespace record {

/// What a rule says of a value, or of several that keep it.
struct Check {
  std::string name, statistic;
  CheckStatus status = CheckStatus::pass;
  Known<Json> value;  ///< what was compared: of relative_to_median the fraction
  Bound bound = Bound::min;
  Known<Json> limit;
  std::string unit;
  Known<int> rank;
  Known<std::string> host;
  std::string message;
  static void describe(Fields& fields);
};

struct GemmRate {
  double flops = 0, median_flops = 0;
  static void describe(Fields& fields);
};
struct GemmRates {
  GemmRate fp64, fp32, bf16, fp16;
  static void describe(Fields& fields);
};
struct MemoryBandwidth {
  double bytes_per_second = 0, best_bytes_per_second = 0;
  std::int64_t array_bytes = 0, passes = 0;
  static void describe(Fields& fields);
};
/// Of fixed work on one thread.
struct NoiseQuantum {
  std::int64_t steps = 0, samples = 0;
  double mean_seconds = 0, median_seconds = 0, best_mean_seconds = 0, p99_seconds = 0;
  double max_over_min = 0;
  static void describe(Fields& fields);
};

struct EccCounts {
  Known<bool> enabled;
  Known<std::uint64_t> corrected, uncorrected, corrected_new, uncorrected_new;
  static void describe(Fields& fields);
};
struct Xids {
  Known<std::vector<int>> events, kernel_log;
  static void describe(Fields& fields);
};
struct NvLinks {
  Known<int> active, inactive;
  static void describe(Fields& fields);
};
struct GpuDirect {
  bool peermem = false;
  Known<bool> dmabuf;
  static void describe(Fields& fields);
};
/// Between pinned memory of a NUMA node and a GPU.
struct GpuCopy : scalemark::GpuCopy {
  Known<bool> near;
  static void describe(Fields& fields);
};
struct GpuHealth {
  Known<std::int64_t> memory_bytes, memory_free_bytes;
  Known<int> sm_mhz, sm_max_mhz, memory_mhz, memory_max_mhz;
  Known<std::vector<std::string>> slowdowns;
  Known<bool> power_capped;
  EccCounts ecc;
  Xids xids;
  NvLinks nvlinks;
  GpuDirect gpudirect;
  Known<bool> ats;
  Known<int> numa;
  std::vector<GpuCopy> copies;
  static void describe(Fields& fields);
};

/// What disturbed a rank.
struct RankNoise {
  Known<double> steal, throttled, load;
  std::int64_t context_switches = 0;
  Known<double> foreign_cpus;
  static void describe(Fields& fields);
};
struct CheckedRank : RankPlacement {
  std::int64_t cpus_of_host = 0;
  Known<GemmRates> gemm;
  Known<MemoryBandwidth> memory_bandwidth;
  Known<NoiseQuantum> noise_quantum;
  Known<GpuHealth> gpu_health;
  RankNoise noise;
  static void describe(Fields& fields);
};

struct LinkSpeed {
  std::string name;
  Known<std::int64_t> speed_mbps;
  static void describe(Fields& fields);
};
/// Of an InfiniBand or RoCE adapter.
struct FabricPort {
  std::string name;
  Known<std::string> state;
  Known<double> gigabits_per_second;
  static void describe(Fields& fields);
};
struct Scratch : ScratchRates {
  std::string folder;
  static void describe(Fields& fields);
};
struct CheckedHost {
  std::string host;
  Known<std::int64_t> memory_available_bytes;
  Known<std::string> governor;
  Known<bool> smt;
  std::vector<LinkSpeed> nics;
  std::vector<FabricPort> fabric;
  Known<Scratch> scratch;
  Known<std::vector<PeerLink>> gpu_peers;
  ErrorCounters risen_counters;
  std::map<std::string, std::uint64_t> error_counters;
  static void describe(Fields& fields);
};

struct CollectiveRow {
  std::string collective, carrier;
  std::int64_t bytes = 0;
  double seconds = 0, algbw = 0, busbw = 0;
  std::int64_t repetitions = 0, wrong_elements = 0;
  Known<std::string> first_wrong;
  static void describe(Fields& fields);
};
struct AllreduceRatio {
  std::int64_t bytes = 0;
  double scalemark_over_mpi = 0;
  static void describe(Fields& fields);
};
struct Collectives {
  Known<std::string> transport, algorithm;
  std::vector<CollectiveRow> rows;
  std::vector<AllreduceRatio> allreduce_ratio;
  static void describe(Fields& fields);
};

/// Two hosts, measured by a rank of each.
struct HostPair {
  std::array<std::string, 2> hosts;
  std::int64_t bytes = 0;
  double latency_seconds = 0, bytes_per_second = 0;
  static void describe(Fields& fields);
};

struct DifferingValue {
  Known<std::string> value;
  std::vector<int> ranks;
  static void describe(Fields& fields);
};
struct DifferingSetting {
  std::string name;
  std::vector<DifferingValue> values;
  static void describe(Fields& fields);
};
struct CommunicationSettings {
  std::map<std::string, std::string> environment, open_mpi;
  Known<bool> hcoll_enabled;
  Known<std::string> nccl_relaxed_ordering, ucx_relaxed_ordering;
  std::vector<DifferingSetting> differing;
  static void describe(Fields& fields);
};

}  // namespace record

struct PreflightResult : record::Context {
  Known<CheckStatus> verdict;
  std::vector<record::Check> checks;
  std::int64_t world_size = 1;
  Known<std::string> device, device_name;
  std::vector<record::CheckedRank> ranks;
  std::vector<record::CheckedHost> hosts;
  Known<record::Collectives> collectives;
  Known<std::vector<record::HostPair>> pairs;
  Known<record::CommunicationSettings> settings;

  /// Whether it is of --pinning, which measures nothing.
  bool of_pinning() const;
  static void describe(Fields& fields);
};

template <>
struct Description<PeerLink> {
  static void of(Fields& fields);
};

}  // namespace scalemark

// What records of a training and of an inference run have in common.
#pragma once

#include "config/run_config.hpp"
#include "measure/samples.hpp"
#include "record/parts.hpp"

namespace scalemark::record {

/// Of --preflight FILE.
struct PreflightReference {
  std::string id;
  Status status = Status::ok;
  Known<std::string> verdict;
  std::string created_at;
  std::vector<std::string> hosts_not_covered;
  static void describe(Fields& fields);
};

struct TriedBatch {
  std::int64_t batch_size = 1;
  bool fits = false;
  double seconds = 0;
  std::int64_t peak_bytes = 0;
  static void describe(Fields& fields);
};
/// Of --batch_size max.
struct BatchSizeSearch {
  std::string requested;
  std::vector<TriedBatch> tried;
  Known<std::int64_t> limit_bytes;
  std::string limited_by;
  static void describe(Fields& fields);
};

/// Units a second of all ranks together.
struct Throughput {
  double mean = 0;
  Known<double> median;
  Known<Interval> ci95;
  std::string ci95_scope = "this launch only";
  Known<double> jitter, per_rank_min, per_rank_max;
  static void describe(Fields& fields);
};

struct Binding {
  std::vector<std::int64_t> overlaps_with;
  Known<bool> as_asked, near_gpu, crosses_numa;
  static void describe(Fields& fields);
};
/// Where a rank ran.
struct RankPlacement {
  std::int64_t rank = 0;
  std::string host;
  Known<std::string> cpus;
  Known<std::vector<std::int64_t>> numa;
  Known<std::string> affinity_requested;
  Binding binding;
  std::int64_t threads = 1;
  Known<std::int64_t> gpu;
  Known<std::string> gpu_uuid;
  static void describe(Fields& fields);
};
struct HostRanks {
  std::string host;
  std::int64_t ranks = 1;
  static void describe(Fields& fields);
};

struct Roofline {
  Known<double> gemm_flops, fraction, published_flops, published_fraction;
  static void describe(Fields& fields);
};

/// What processes other than the measured ones used of a host.
struct ForeignLoad {
  std::string host;
  double cpus = 0;
  std::int64_t of_cpus = 0;
  double seconds = 0;

  /// More than what every machine does beside, and more than the ticks of the kernel leave open.
  bool notable() const;
  /// "other processes used 1.3 of 2 CPUs".
  std::string words() const;
  static void describe(Fields& fields);
};
/// What disturbed a measurement.
struct Noise {
  Known<double> steal;
  Known<ForeignLoad> foreign;
  Known<double> throttled, load;
  Known<std::int64_t> context_switches;
  Known<Entries<std::int64_t>> error_counters;
  static void describe(Fields& fields);
  /// The same in two parts: records have keys of their own between them.
  static void describe_first(Fields& fields);
  static void describe_last(Fields& fields);
};

/// The machine within a window of time.
struct Window {
  double begin_seconds = 0, seconds = 0;
  std::int64_t steps = 0;
  double throughput = 0;
  Known<double> cpu_mhz, cpu_celsius, memory_bytes, gpu_mhz, gpu_celsius, gpu_watts,
      gpu_memory_bytes, host_watts, busy_cpus, nic_errors, gpu_errors;
  static void describe(Fields& fields);
};
struct Drift {
  std::string verdict;
  double change = 0;
  Interval ci95{};
  double p = 1, autocorrelation = 0;
  Entries<double> beside;
  static void describe(Fields& fields);
};
struct Windows {
  double seconds = 0;
  std::vector<Window> series;
  Known<Drift> drift;
  static void describe(Fields& fields);
};

/// Of --trace.
struct Trace {
  std::string path;
  std::int64_t steps = 1, events = 0, dropped_events = 0;
  double step_seconds = 0;
  Known<double> slowdown;
  double seconds = 0, clock_uncertainty_seconds = 0;
  static void describe(Fields& fields);
};
struct TopOperator {
  std::string name, group;
  double calls_per_step = 0, self_seconds = 0, share = 0;
  static void describe(Fields& fields);
};
struct OperatorGroup {
  Known<double> seconds, share, flops, achieved_flops, roofline_fraction;
  static void describe(Fields& fields);
};
struct OperatorGroups {
  OperatorGroup convolution, matrix_product, normalisation, optimizer, communication, other;
  static void describe(Fields& fields);
};
struct OutsideOperators {
  Known<double> seconds, share;
  static void describe(Fields& fields);
};
struct Operators {
  std::string clock = "host";
  std::vector<TopOperator> top;
  OperatorGroups groups;
  OutsideOperators outside;
  static void describe(Fields& fields);
};

/// Of the largest rank.
struct Memory {
  Known<std::int64_t> peak_rss_bytes, peak_gpu_bytes;
  static void describe(Fields& fields);
};

/// What a record says of its surroundings.
struct Context : Envelope {
  Settings config;
  System system;
  Entries<std::string> environment;
  Known<std::string> allocator, started_at;
  Known<double> wall_seconds;

  static void describe_config(Fields& fields);
  /// All but the configuration. `wall`: of what the seconds are.
  static void describe_machine(Fields& fields, const char* wall);
};

/// The keys that both kinds have, each at its own place.
struct Measured : Context {
  std::string model;
  Known<std::string> unit;
  std::int64_t world_size = 1;
  Known<std::int64_t> batch_size_per_rank;
  Known<BatchSizeSearch> batch_size_search;
  Precision precision = Precision::fp32;
  Known<Kernels> kernels;
  Known<bool> precision_native;
  Known<std::string> proven_on, device, device_name;
  Known<std::string> config_hash;
  Known<Throughput> throughput;
  Known<double> partial_throughput;
  Known<StopReason> stop_reason;
  Known<std::int64_t> parameters;
  Known<double> flops_per_sample, achieved_flops;
  Roofline roofline;
  Known<PreflightReference> preflight;
  Known<Trace> trace;
  Known<Operators> operators;
  Known<std::vector<HostRanks>> placement;
  Known<Windows> windows;

  /// Keys that stand side by side in both.
  static void describe_model(Fields& fields);
  static void describe_batch(Fields& fields);
  static void describe_batch_search(Fields& fields);
  static void describe_precision(Fields& fields);
  static void describe_device(Fields& fields);
  static void describe_config(Fields& fields, Presence of_hash);
  static void describe_flops(Fields& fields);
  static void describe_context(Fields& fields);
  static void describe_placement(Fields& fields);
  static void describe_trace(Fields& fields);
};

}  // namespace scalemark::record

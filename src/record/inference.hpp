// The inference record: throughput and latency of forward passes.
#pragma once

#include "record/measured.hpp"

namespace scalemark {
namespace record {

/// Of --precision int8.
struct Quantization {
  std::int64_t layers = 1;
  std::string weights, convolution_activations, product_activations;
  Known<double> relative_error;
  static void describe(Fields& fields);
};

struct Quantiles {
  Known<double> mean, p50, p90, p99, p99_9;
  static void describe(Fields& fields);
};
struct Latency : Quantiles {
  std::vector<double> samples;
  static void describe(Fields& fields);
};

struct QueueLength {
  double mean = 0;
  std::int64_t max = 0;
  static void describe(Fields& fields);
};
struct TimerLateness {
  std::int64_t waits = 0;
  Known<double> mean, max;
  static void describe(Fields& fields);
};
struct OfferedRate {
  double arrival_rate = 0;
  bool confirms = false;
  std::int64_t queries = 1, answered = 0;
  double seconds = 0;
  Known<double> latency_seconds;
  ServerEnd ended_by = ServerEnd::all_served;
  bool holds = false;
  static void describe(Fields& fields);
};
struct ArrivalRateSearch {
  Known<double> found;
  std::string limited_by;
  double tolerance = 0;
  std::vector<OfferedRate> trials;
  static void describe(Fields& fields);
};
/// Of --mode server.
struct Server {
  double arrival_rate = 0, achieved_rate = 0;
  std::int64_t queries_offered = 1;
  double latency_quantile = 0.99;
  Known<double> latency_at_quantile_seconds, latency_bound_seconds;
  Known<bool> holds;
  ServerEnd ended_by = ServerEnd::all_served;
  double batch_size_mean = 1;
  Known<Quantiles> queue_seconds, service_seconds;
  QueueLength queue_length;
  TimerLateness timer_lateness_seconds;
  Known<ArrivalRateSearch> search;
  static void describe(Fields& fields);
};

struct InferenceRank : RankPlacement {
  std::int64_t queries = 0;
  Known<double> latency_seconds_mean, throughput;
  Known<bool> straggler;
  static void describe(Fields& fields);
};

}  // namespace record

struct InferenceResult : record::Measured {
  InferenceMode mode = InferenceMode::batch;
  Known<std::string> fused;
  Known<record::Quantization> quantization;
  Known<double> units_per_query;
  Known<record::Latency> latency_seconds;
  Known<record::Server> server;
  Known<std::int64_t> queries;
  std::vector<record::InferenceRank> ranks;
  record::Memory memory;
  record::Noise noise;
  static void describe(Fields& fields);
};

}  // namespace scalemark

// Defines the keys of `infer`.
#pragma once

#include <cmath>

#include "config/keys/arithmetic.hpp"

namespace scalemark {

enum class InferenceMode { batch, single_stream, server };
constexpr auto names_of(InferenceMode) { return Names{"batch", "single_stream", "server"}; }

/// Returns the number of queries of which ten lie beyond quantile q: 1000 for 0.99.
inline std::int64_t queries_for_quantile(double q) { return std::llround(10 / (1 - q)); }

struct InferenceSettings {
  InferenceMode mode = InferenceMode::batch;
  std::optional<double> arrival_rate;  ///< queries per second of all ranks; unset: searched for
  std::optional<double> latency_bound_ms;
  double latency_quantile = 0.99;
  double max_queue_delay_ms = 0;
  std::optional<std::int64_t> min_query_count;
  double min_duration = 10;  ///< seconds

  /// Returns whether --mode server searches for the largest rate that keeps the bound.
  bool searches_rate() const { return mode == InferenceMode::server && !arrival_rate; }

  static void describe(auto& rows) {
    using S = InferenceSettings;
    rows.group("Inference (infer)", Role::identity, Command::infer);
    rows.add("mode", &S::mode, "MODE",
             "throughput of batches; single_stream: the latency of one query after the other; "
             "server: that of queries that arrive as a Poisson process")
        .often_used();
    rows.add("arrival_rate", &S::arrival_rate, "PER_SECOND",
             "of server: queries that arrive a second, of all ranks together")
        .in(1e-3, 1e7)
        .otherwise("the largest that holds --latency_bound_ms is searched for");
    rows.add("latency_bound_ms", &S::latency_bound_ms, "MILLISECONDS",
             "of server: what --latency_quantile of the latencies may be at most")
        .in(1e-3, 1e7)
        .otherwise("no bound");
    rows.add("latency_quantile", &S::latency_quantile, "SHARE", "of server: which latency is bound")
        .in(0.5, 0.9999);
    rows.add("max_queue_delay_ms", &S::max_queue_delay_ms, "MILLISECONDS",
             "of server: how long a query waits for others to fill a batch of --batch_size")
        .in(0, 1e6);
    rows.add("min_query_count", &S::min_query_count, "N",
             "of server: queries of a trial, of all ranks, and more where it would be shorter than "
             "--min_duration")
        .in(1, 1e9)
        .otherwise("10 / (1 - --latency_quantile), 1000 for 0.99");
    rows.add("min_duration", &S::min_duration, "SECONDS", "of server: of a trial").in(0, 1e6);
  }

  static void resolve(auto& config, const auto&) {
    if (config.mode != InferenceMode::batch && !config.batch_size && !config.largest_batch)
      config.batch_size = 1;
    if (config.mode == InferenceMode::server && !config.min_query_count)
      config.min_query_count = queries_for_quantile(config.latency_quantile);
  }

  static void check(const auto& whole) {
    const auto& config = whole.given;
    if (config.mode == InferenceMode::single_stream && config.largest_batch)
      whole.refuse(
          "--batch_size max finds the batch of a rank: a single stream asks one query at a time; "
          "give a number, or --mode batch");
    if (whole.command == Command::infer) check_server(whole);
    if (config.precision == Precision::int8 && whole.resolved.kernels == Kernels::torch)
      whole.refuse("--precision int8 folds and fuses layers, which --kernels torch does not; {}",
                   has_own_kernels() ? "leave out --kernels torch"
                                     : "build with cmake -DSCALEMARK_KERNELS=ON");
    if (whole.command != Command::infer || !config.inject) return;
    if (config.inject->kind == "nan_loss" || config.inject->kind == "corrupt_allreduce")
      whole.refuse("--inject {}: inference has neither a loss nor an allreduce",
                   config.inject->kind);
  }

 private:
  static void check_server(const auto& whole) {
    const auto& config = whole.given;
    if (config.mode != InferenceMode::server) {
      if (config.arrival_rate || config.latency_bound_ms || config.min_query_count)
        whole.refuse(
            "--arrival_rate, --latency_bound_ms and --min_query_count belong to --mode server");
      return;
    }
    if (config.largest_batch)
      whole.refuse("--batch_size max: a server takes what has arrived; give a number");
    if (config.target_ci || config.max_seconds || config.window_seconds)
      whole.refuse(
          "--target_ci, --max_seconds and --window_seconds: a trial of --mode server lasts for "
          "--min_query_count queries and --min_duration seconds");
    if (config.trace)
      whole.refuse("--trace: a server's passes are those of --mode batch; trace them there");
    if (config.max_queue_delay_ms > 0 && *whole.resolved.batch_size == 1)
      whole.refuse("--max_queue_delay_ms waits for a batch; say how large with --batch_size");
    if (!config.searches_rate()) return;
    if (!config.latency_bound_ms)
      whole.refuse(
          "--mode server: give --arrival_rate, or --latency_bound_ms to search for the largest "
          "rate that holds it");
    if (const auto least = queries_for_quantile(config.latency_quantile);
        *whole.resolved.min_query_count < least)
      whole.refuse("--min_query_count {}: quantile {} needs {}", *config.min_query_count,
                   config.latency_quantile, least);
  }
};

}  // namespace scalemark

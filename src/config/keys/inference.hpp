// Keys of `infer`.
#pragma once

#include "config/keys/group.hpp"

namespace scalemark {

enum class InferenceMode { batch, single_stream };
constexpr auto names_of(InferenceMode) { return Names{"batch", "single_stream"}; }

enum class Fused { on, off };
constexpr auto names_of(Fused) { return Names{"on", "off"}; }

struct InferenceSettings {
  InferenceMode mode = InferenceMode::batch;
  Fused fused = Fused::on;

  static void describe(auto& rows) {
    using S = InferenceSettings;
    rows.group("Inference (infer)", Role::identity, Command::infer);
    rows.add("mode", &S::mode, "MODE",
             "throughput of batches; single_stream: the latency of one query after the other")
        .often_used();
    rows.add("fused", &S::fused, "SWITCH",
             "fold batch normalisation into convolutions, and let oneDNN add and clip as it writes")
        .is(Trait::found_by_run);
  }

  static void resolve(auto& config, const auto&) {
    if (config.mode == InferenceMode::single_stream && !config.batch_size && !config.largest_batch)
      config.batch_size = 1;
  }

  static void check(const auto& whole) {
    const auto& config = whole.given;
    if (config.mode == InferenceMode::single_stream && config.largest_batch)
      whole.refuse(
          "--batch_size max finds the batch of a rank: a single stream asks one query at a time; "
          "give a number, or --mode batch");
    if (whole.command != Command::infer || !config.inject) return;
    if (config.inject->kind == "nan_loss" || config.inject->kind == "corrupt_allreduce")
      whole.refuse("--inject {}: inference has neither a loss nor an allreduce",
                   config.inject->kind);
  }
};

}  // namespace scalemark

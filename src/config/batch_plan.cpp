// From batch keys to samples per rank and per pass; what does not divide is refused, never rounded.
#include <fmt/format.h>

#include "config/names.hpp"
#include "config/run_config.hpp"
#include "error.hpp"
#include "models/catalog.hpp"

namespace scalemark {
namespace {

/// "the nearest legal value is 8", or "values are 8 and 12", of the multiples of `step` around
/// `value`.
std::string nearest_multiples(std::int64_t value, std::int64_t step) {
  const std::int64_t below = value / step * step;
  if (below == 0) return fmt::format("the nearest legal value is {}", step);
  return fmt::format("the nearest legal values are {} and {}", below, below + step);
}

/// Divisors of `whole` around `part`, which is none.
std::string nearest_divisors(std::int64_t part, std::int64_t whole) {
  std::int64_t below = part, above = part;
  while (whole % below != 0) --below;
  while (whole % above != 0) ++above;
  return fmt::format("the nearest legal values are {} and {}", below, above);
}

/// A global batch as it was asked for: samples, and what one of them counts under that key.
struct GlobalBatch {
  const char* key;
  std::int64_t samples;
  std::int64_t units_per_sample;

  std::int64_t over(std::int64_t ranks) const {
    if (samples % ranks == 0) return samples / ranks;
    throw ConfigError(fmt::format(
        "--{} {} is not divisible by {} ranks{}: {}", key, samples * units_per_sample, ranks,
        units_per_sample == 1 ? "" : fmt::format(" with sequences of {} tokens", units_per_sample),
        nearest_multiples(samples * units_per_sample, ranks * units_per_sample)));
  }
};

GlobalBatch batch_of_tokens(const RunConfig& config, std::int64_t sequence_length) {
  const std::int64_t tokens = *config.global_batch_tokens;
  if (sequence_length == 0)
    throw ConfigError(
        fmt::format("--global_batch_tokens counts target tokens, and {} has images: give "
                    "--global_batch_size",
                    config.model));
  if (config.global_batch_size)
    throw ConfigError(
        "--global_batch_size and --global_batch_tokens both fix the global batch: give one");
  if (tokens % sequence_length != 0)
    throw ConfigError(
        fmt::format("--global_batch_tokens {} is not divisible by --sequence_length {}: {}", tokens,
                    sequence_length, nearest_multiples(tokens, sequence_length)));
  return {"global_batch_tokens", tokens / sequence_length, sequence_length};
}

BatchPlan whole_batches(const RunConfig& config, const ModelFacts& facts, std::int64_t world_size) {
  if (!config.global_batch_size && !config.global_batch_tokens) {
    if (config.scaling == Scaling::strong)
      throw ConfigError(facts.sequence_length > 0
                            ? "--scaling strong needs --global_batch_size or --global_batch_tokens"
                            : "--scaling strong needs --global_batch_size");
    const std::int64_t batch = config.batch_size.value_or(facts.default_batch_size);
    return {batch, batch * world_size};
  }
  const GlobalBatch global =
      config.global_batch_tokens
          ? batch_of_tokens(config, config.sequence_length.value_or(facts.sequence_length))
          : GlobalBatch{"global_batch_size", *config.global_batch_size, 1};
  if (config.batch_size && *config.batch_size * world_size != global.samples)
    throw ConfigError(fmt::format(
        "--batch_size {} on {} ranks is a global batch of {}, not --{} {}: change one, or leave "
        "out --{} (scaling is {})",
        *config.batch_size, world_size, *config.batch_size * world_size * global.units_per_sample,
        global.key, global.samples * global.units_per_sample,
        config.scaling == Scaling::weak ? global.key : "batch_size", to_string(config.scaling)));
  return {global.over(world_size), global.samples};
}

}  // namespace

BatchPlan plan_batch(const RunConfig& config, std::int64_t world_size) {
  if (world_size < 1)
    throw ConfigError(fmt::format("a run needs at least one rank, not {}", world_size));
  const auto facts = find_model(config.model);
  if (!facts) throw ConfigError(fmt::format("unknown model \"{}\"", config.model));
  if (config.largest_batch && !config.batch_size)
    throw ConfigError("--batch_size max: the largest batch has not been found yet");
  BatchPlan plan = whole_batches(config, *facts, world_size);
  const std::int64_t batch = plan.batch_size_per_rank;
  plan.micro_batch_size = std::min(config.micro_batch_size.value_or(batch), batch);
  if (batch % plan.micro_batch_size != 0)
    throw ConfigError(fmt::format(
        "the batch of a rank, {} of {} ranks, is not divisible by --micro_batch_size {}: {}", batch,
        world_size, plan.micro_batch_size, nearest_divisors(plan.micro_batch_size, batch)));
  return plan;
}

}  // namespace scalemark

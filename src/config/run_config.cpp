// What follows from a configuration: its batch, its record and its hash.
#include "config/run_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/hash.hpp"
#include "config/keys.hpp"
#include "config/names.hpp"
#include "error.hpp"
#include "models/catalog.hpp"

namespace scalemark {
namespace {

ModelFacts facts_of(const RunConfig& config) {
  if (const auto facts = find_model(config.model)) return *facts;
  throw ConfigError(fmt::format("unknown model \"{}\"", config.model));
}

struct Rates {
  double learning_rate, beta2, epsilon, weight_decay;
};

/// adam: Vaswani et al. 2017, 5.3; adamw: Devlin et al. 2018, A.2, epsilon of google-research/bert;
/// lamb: You et al. 2020, of its batch of 512 sequences.
Rates default_rates(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adam:
      return {1e-4, 0.98, 1e-9, 0};
    case Optimizer::adamw:
      return {1e-4, 0.999, 1e-6, 0.01};
    case Optimizer::lamb:
      return {6.25e-4, 0.999, 1e-6, 0.01};
    default:
      return {0.1, 0.98, 1e-9, 4e-5};  // without moments
  }
}

/// Steps of the schedule, and the learning rate that follows from it.
void complete_schedule(RunConfig& config, const ModelFacts& facts) {
  using Shape = LearningRateSchedule::Shape;
  const LearningRateSchedule& schedule = config.lr_schedule;
  if (!config.lr_warmup_steps) config.lr_warmup_steps = schedule.shape == Shape::vaswani ? 4000 : 0;
  if (schedule.shape == Shape::polynomial && !config.lr_decay_steps)
    config.lr_decay_steps = config.num_warmup_batches + config.num_batches;
  if (config.init_learning_rate) return;
  if (schedule.shape == Shape::piecewise) config.init_learning_rate = schedule.rates.front();
  if (schedule.shape == Shape::vaswani && facts.width > 0)
    config.init_learning_rate =
        1 / std::sqrt(static_cast<double>(facts.width) *
                      static_cast<double>(std::max<std::int64_t>(1, *config.lr_warmup_steps)));
}

}  // namespace

RunConfig resolved(RunConfig config) {
  const ModelFacts facts = facts_of(config);
  if (!config.image_size && facts.image_size > 0) config.image_size = facts.image_size;
  if (!config.sequence_length && facts.sequence_length > 0)
    config.sequence_length = facts.sequence_length;
  if (!config.optimizer) config.optimizer = from_string<Optimizer>(facts.optimizer);
  const Rates rates = default_rates(*config.optimizer);
  complete_schedule(config, facts);
  if (!config.init_learning_rate) config.init_learning_rate = rates.learning_rate;
  if (!config.adam_beta2) config.adam_beta2 = rates.beta2;
  if (!config.adam_epsilon) config.adam_epsilon = rates.epsilon;
  if (!config.weight_decay) config.weight_decay = rates.weight_decay;
  if (!config.dropout) config.dropout = facts.dropout;
  if (!config.length_median && config.length_distribution == LengthDistribution::lognormal)
    config.length_median =
        std::max(1., static_cast<double>(config.sequence_length.value_or(2)) / 2);
  if (!config.overlap) config.overlap = config.forward_only ? Overlap::none : Overlap::backward;
  return config;
}

nlohmann::ordered_json config_to_json(const LoadedConfig& loaded) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const RunConfig complete = resolved(loaded.config);
  for (const Key& key : all_keys()) {
    if (!recorded(key, loaded.command)) continue;
    const auto origin = loaded.origins.find(key.name);
    json[key.name] = {
        {"value", key.get(complete)},
        {"origin", to_string(origin == loaded.origins.end() ? Origin::standard : origin->second)}};
  }
  return json;
}

nlohmann::json hashed_config(const RunConfig& config, std::int64_t world_size, Command command) {
  nlohmann::json json = nlohmann::json::object();  // sorted by key
  const RunConfig complete = resolved(config);
  // A global batch is the same in samples and in tokens.
  for (const Key& key : all_keys())
    if (key.role != Role::output && recorded(key, command) && key.name != "ranks" &&
        key.name != "global_batch_tokens")
      json[key.name] = nlohmann::json(key.get(complete));
  const BatchPlan batch = plan_batch(config, world_size);
  json["batch_size"] = batch.batch_size_per_rank;
  json["global_batch_size"] = batch.global_batch_size;
  json["micro_batch_size"] = batch.micro_batch_size;
  json["world_size"] = world_size;
  return json;
}

std::string config_hash(const RunConfig& config, std::int64_t world_size, Command command) {
  return sha256_hex(hashed_config(config, world_size, command).dump());
}

std::vector<std::int64_t> default_ranks(std::int64_t largest) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t n = 1; n < largest; n *= 2) ranks.push_back(n);
  ranks.push_back(largest);
  return ranks;
}

}  // namespace scalemark

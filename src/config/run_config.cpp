// What follows from a configuration: its batch, its record and its hash.
#include "config/run_config.hpp"

#include <fmt/format.h>

#include <utility>

#include "build_facts.hpp"
#include "config/keys.hpp"
#include "config/names.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "models/catalog.hpp"

namespace scalemark {
namespace {

ModelFacts facts_of(const RunConfig& config) {
  if (const auto facts = find_model(config.model)) return *facts;
  throw ConfigError(fmt::format("unknown model \"{}\"", config.model));
}

}  // namespace

bool has_own_kernels() { return build_facts::kKernels; }

ResolvedConfig::ResolvedConfig(RunConfig given) : RunConfig(std::move(given)) {
  if (!more_models.empty()) given_ = std::make_shared<const RunConfig>(*this);
  const ModelFacts facts = facts_of(*this);
  for_each_group([&]<typename Group>() {
    if constexpr (requires { Group::resolve(*this, facts); }) Group::resolve(*this, facts);
  });
}

ResolvedConfig ResolvedConfig::of_model(const std::string& name) const {
  if (!given_) return *this;
  RunConfig one = *given_;
  one.model = name;
  one.more_models.clear();
  return one;
}

std::string unit_of(const RunConfig& config) {
  if (config.brings_model()) return to_string(config.model_unit) + "/sec";
  const auto facts = find_model(config.model);
  return facts ? std::string(facts->unit) : "images/sec";
}

nlohmann::ordered_json config_to_json(const LoadedConfig& loaded) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Key& key : all_keys()) {
    if (!recorded(key, loaded.command)) continue;
    const auto origin = loaded.origins.find(key.name);
    json[key.name] = {
        {"value", key.get(loaded.config)},
        {"origin", to_string(origin == loaded.origins.end() ? Origin::standard : origin->second)}};
  }
  return json;
}

LoadedConfig config_from_json(const nlohmann::ordered_json& json, Command command,
                              const std::string& place) {
  RunConfig config;
  LoadedConfig loaded;
  loaded.command = command;
  for (const auto& [written, entry] : json.items()) {
    const auto [name, value] = current_setting(written, entry.at("value"));
    const Key* key = find_key(name);
    if (!key) continue;
    const bool is_auto = value.is_array() && value.empty();  // as records have it
    key->set(config, is_auto ? value : check_value(*key, value, fmt::format("{}/{}", place, name)));
    loaded.origins[name] =
        from_string<Origin>(entry.at("origin").get<std::string>()).value_or(Origin::standard);
  }
  loaded.config = ResolvedConfig(std::move(config));
  return loaded;
}

nlohmann::json hashed_config(const ResolvedConfig& config, std::int64_t world_size,
                             Command command) {
  nlohmann::json json = nlohmann::json::object();  // sorted by key
  for (const Key& key : all_keys())
    if (key.role != Role::output && recorded(key, command) && !key.traits.contains(Trait::implied))
      json[key.name] = nlohmann::json(key.get(config));
  const BatchPlan batch = plan_batch(config, world_size);
  json["batch_size"] = batch.batch_size_per_rank;
  json["global_batch_size"] = batch.global_batch_size;
  json["micro_batch_size"] = batch.micro_batch_size;
  json["world_size"] = world_size;
  return json;
}

std::string config_hash(const ResolvedConfig& config, std::int64_t world_size, Command command) {
  return sha256_hex(hashed_config(config, world_size, command).dump());
}

std::vector<std::int64_t> default_ranks(std::int64_t largest,
                                        std::optional<std::int64_t> ranks_per_node) {
  std::vector<std::int64_t> ranks;
  const std::int64_t node = std::min(ranks_per_node.value_or(largest), largest);
  for (std::int64_t n = 1; n < node; n *= 2) ranks.push_back(n);
  for (std::int64_t n = node; n < largest; n *= 2) ranks.push_back(n);
  ranks.push_back(largest);
  return ranks;
}

}  // namespace scalemark

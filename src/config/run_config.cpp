// What follows from a configuration: its batch, its record and its hash.
#include "config/run_config.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <memory>

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

/// Global batch / ranks, or the nearest global batches that can be divided.
std::int64_t divided(std::int64_t global, std::int64_t ranks) {
  if (global % ranks == 0) return global / ranks;
  const std::int64_t below = global / ranks * ranks;
  if (below == 0)
    throw ConfigError(fmt::format(
        "--global_batch_size {} is not divisible by {} ranks: the nearest legal value is {}",
        global, ranks, ranks));
  throw ConfigError(fmt::format(
      "--global_batch_size {} is not divisible by {} ranks: the nearest legal values are {} and {}",
      global, ranks, below, below + ranks));
}

std::string sha256_hex(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1)
    throw EnvironmentError("OpenSSL refuses SHA-256");
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + length, ""));
}

}  // namespace

BatchPlan plan_batch(const RunConfig& config, std::int64_t world_size) {
  if (world_size < 1)
    throw ConfigError(fmt::format("a run needs at least one rank, not {}", world_size));
  if (config.global_batch_size) {
    const std::int64_t global = *config.global_batch_size;
    if (config.batch_size && *config.batch_size * world_size != global)
      throw ConfigError(
          fmt::format("--batch_size {} on {} ranks is a global batch of {}, not "
                      "--global_batch_size {}: change one, or "
                      "leave out --{} (scaling is {})",
                      *config.batch_size, world_size, *config.batch_size * world_size, global,
                      config.scaling == Scaling::weak ? "global_batch_size" : "batch_size",
                      to_string(config.scaling)));
    return {divided(global, world_size), global};
  }
  if (config.scaling == Scaling::strong)
    throw ConfigError("--scaling strong needs --global_batch_size");
  const std::int64_t batch = config.batch_size.value_or(facts_of(config).default_batch_size);
  return {batch, batch * world_size};
}

std::int64_t image_size_of(const RunConfig& config) {
  return config.image_size.value_or(facts_of(config).image_size);
}

nlohmann::ordered_json config_to_json(const LoadedConfig& loaded) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Key& key : all_keys()) {
    const auto origin = loaded.origins.find(key.name);
    json[key.name] = {
        {"value", key.get(loaded.config)},
        {"origin", to_string(origin == loaded.origins.end() ? Origin::standard : origin->second)}};
  }
  return json;
}

nlohmann::json hashed_config(const RunConfig& config, std::int64_t world_size) {
  nlohmann::json json = nlohmann::json::object();  // sorted by key
  for (const Key& key : all_keys())
    if (key.role != Role::output && key.name != "ranks")
      json[key.name] = nlohmann::json(key.get(config));
  const BatchPlan batch = plan_batch(config, world_size);
  json["batch_size"] = batch.batch_size_per_rank;
  json["global_batch_size"] = batch.global_batch_size;
  json["image_size"] = image_size_of(config);
  json["world_size"] = world_size;
  return json;
}

std::string config_hash(const RunConfig& config, std::int64_t world_size) {
  return sha256_hex(hashed_config(config, world_size).dump());
}

std::vector<std::int64_t> default_ranks(std::int64_t largest) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t n = 1; n < largest; n *= 2) ranks.push_back(n);
  ranks.push_back(largest);
  return ranks;
}

}  // namespace scalemark

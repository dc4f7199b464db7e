// Derives the batch, the record and the hash of a configuration.
#include "config/run_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

#include "config/json_text.hpp"
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

// The functions below turn batch keys into samples per rank and per pass. What does not divide is
// refused, never rounded.

namespace {

/// Returns "the nearest legal value is 8", or "values are 8 and 12", for the multiples of `step`
/// around `value`.
std::string nearest_multiples(std::int64_t value, std::int64_t step) {
  const std::int64_t below = value / step * step;
  if (below == 0) return fmt::format("the nearest legal value is {}", step);
  return fmt::format("the nearest legal values are {} and {}", below, below + step);
}

/// Returns the divisors of `whole` around `part`, which is not one.
std::string nearest_divisors(std::int64_t part, std::int64_t whole) {
  std::int64_t below = part, above = part;
  while (whole % below != 0) --below;
  while (whole % above != 0) ++above;
  return fmt::format("the nearest legal values are {} and {}", below, above);
}

/// A requested global batch: its samples, and what one of them counts under that key.
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
  ranks_of_shards(config, world_size);
  return plan;
}

std::int64_t ranks_of_shards(const RunConfig& config, std::int64_t world_size) {
  if (config.shard == Shard::none) return 1;
  const std::int64_t ranks = std::min(config.shard_ranks.value_or(world_size), world_size);
  if (world_size % ranks == 0) return ranks;
  std::vector<std::int64_t> legal;
  for (std::int64_t n = 1; n <= world_size; ++n)
    if (world_size % n == 0) legal.push_back(n);
  throw ConfigError(fmt::format(
      "--shard_ranks {} does not divide {} ranks into equal groups: legal values are {}", ranks,
      world_size, fmt::join(legal, ", ")));
}

std::vector<std::int64_t> shape_of(std::string_view text) {
  std::vector<std::int64_t> shape;
  while (true) {
    const std::size_t cross = text.find('x');
    const auto size = parse_integer(text.substr(0, cross));
    if (!size || *size < 1 || *size > 1'000'000) return {};
    shape.push_back(*size);
    if (cross == text.npos) return shape;
    text.remove_prefix(cross + 1);
  }
}

std::string digest_of_file(std::string_view flag, const std::string& path) {
  constexpr std::size_t kLargestModel = std::size_t{16} << 30;
  static std::map<std::string, std::string> known;  // of every point of a plan once
  std::string& digest = known[path];
  if (!digest.empty()) return digest;
  try {
    Sha256 sum;
    read_in_parts(path, kLargestModel, [&](std::string_view part) { sum.add(part); });
    return digest = sum.hex();
  } catch (const InputFault& fault) {
    const std::string what = fmt::format("{} {}: {}", flag, path, fault.what());
    if (fault.missing) throw ConfigError(what);
    throw ResultError(what);
  }
}

bool is_exported(const std::string& path) {
  // A zip lists its files at its end, about 100 bytes each, of which one has this name.
  constexpr std::streamoff kList = 1 << 20;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (size <= 0) return false;
  std::string end(static_cast<std::size_t>(std::min(size, kList)), '\0');
  file.seekg(size - static_cast<std::streamoff>(end.size()));
  file.read(end.data(), static_cast<std::streamsize>(end.size()));
  return file && end.find("/archive_format") != std::string::npos;
}

}  // namespace scalemark

// Defines what to run: every setting of `run`, `scale`, `infer` and `preflight`, with its default,
// in the groups of config/keys/. config/load.hpp reads it (defaults <- file <- SCALEMARK_* <-
// command line) and resolves what is unset.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/keys/arithmetic.hpp"
#include "config/keys/container.hpp"
#include "config/keys/curve.hpp"
#include "config/keys/inference.hpp"
#include "config/keys/machine.hpp"
#include "config/keys/model.hpp"
#include "config/keys/output.hpp"
#include "config/keys/own_model.hpp"
#include "config/keys/preflight.hpp"
#include "config/keys/steps.hpp"

namespace scalemark {

/// The groups of keys, in the order of help and records.
template <typename... Group>
struct KeyGroups : Group... {
  /// Calls visit.operator()<Group>() for each group.
  static void for_each_group(auto&& visit) { (visit.template operator()<Group>(), ...); }
};

/// A configuration as it was given. A setting that nobody has decided is unset.
struct RunConfig : KeyGroups<ModelSettings, OwnModelSettings, StepSettings, ArithmeticSettings,
                             ScheduleSettings, MachineSettings, CurveSettings, ContainerSettings,
                             InferenceSettings, PreflightSettings, OutputSettings> {};

/// A configuration with the model's defaults in place of what is unset: image_size or
/// sequence_length, optimizer, learning rate and its schedule, beta 2, epsilon, weight decay,
/// dropout; and overlap. What is loaded is resolved; code that makes a RunConfig by hand may pass
/// it where this is asked for.
struct ResolvedConfig : RunConfig {
  ResolvedConfig() : ResolvedConfig(RunConfig{}) {}
  ResolvedConfig(RunConfig given);
  /// Returns the configuration for another one of its models, with that model's defaults.
  ResolvedConfig of_model(const std::string& name) const;

 private:
  std::shared_ptr<const RunConfig> given_;  ///< where there are several models
};

/// The source of a key's value, which the record shows as its origin.
enum class Origin { standard, file, environment, command_line };
constexpr auto names_of(Origin) { return Names{"default", "file", "environment", "command_line"}; }

/// A configuration, and what the record says about it.
struct LoadedConfig {
  ResolvedConfig config;
  Command command = Command::run;
  std::map<std::string, Origin> origins;  ///< of every key
  std::vector<std::string> warnings;      ///< e.g. unknown SCALEMARK_* variables, for stderr
  RunConfig given = {};                   ///< what `config` was resolved from
};

/// Returns the unit from the catalog, or --model_unit for a user's network, or "images/sec" for an
/// unknown model.
std::string unit_of(const RunConfig& config);

/// Returns {"key": {"value": ..., "origin": "default"|"file"|"environment"|"command_line"}, ...},
/// every key of the command; a run's are those of `scale` too.
nlohmann::ordered_json config_to_json(const LoadedConfig& loaded);

/// Returns the configuration and the origins that a record's `config` of `command` contains. Throws
/// ConfigError, beginning with `place`, where a value is illegal for its key. Keys that this
/// version lacks are left out.
LoadedConfig config_from_json(const nlohmann::ordered_json& json, Command command,
                              const std::string& place);

/// Returns what config_hash() covers: every identity and measurement key that the command's records
/// show, with the batch resolved for `world_size`, which stands in for `ranks`. Two of these differ
/// in the keys that make runs unlike.
nlohmann::json hashed_config(const ResolvedConfig& config, std::int64_t world_size,
                             Command command = Command::run);

/// Returns the SHA-256 (hex) of the canonical JSON (sorted, compact) of hashed_config(). Build,
/// host and output keys are outside.
std::string config_hash(const ResolvedConfig& config, std::int64_t world_size,
                        Command command = Command::run);

/// Returns the points of `--ranks auto`: powers of two up to what a node holds, and that; then
/// whole nodes, likewise, up to `largest`, and `largest`. Where the ranks of a node are unset, all
/// are on one node.
std::vector<std::int64_t> default_ranks(std::int64_t largest,
                                        std::optional<std::int64_t> ranks_per_node = {});

/// The samples of one point: over all ranks, of a rank, and of one forward and backward pass.
struct BatchPlan {
  std::int64_t batch_size_per_rank = 0;
  std::int64_t global_batch_size = 0;
  std::int64_t micro_batch_size = 0;
  std::int64_t micro_batches() const { return batch_size_per_rank / micro_batch_size; }
};

/// Resolves weak or strong scaling for `world_size` ranks.
/// Throws ConfigError with the nearest legal values where the keys are inconsistent or not
/// divisible, which also holds for ranks_of_shards().
BatchPlan plan_batch(const RunConfig& config, std::int64_t world_size);

/// Returns among how many of `world_size` ranks --shard divides, in groups of consecutive ones; 1:
/// nothing is divided. Throws ConfigError with the legal values where --shard_ranks is less than
/// `world_size` and does not divide it.
std::int64_t ranks_of_shards(const RunConfig& config, std::int64_t world_size);

}  // namespace scalemark

// Puts the layers on top of each other and checks what only the whole configuration can tell.
#include "config/load.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>

#include "config/arguments.hpp"
#include "config/curves.hpp"
#include "config/file_layer.hpp"
#include "config/keys.hpp"
#include "config/learning_rate.hpp"
#include "config/names.hpp"
#include "config/text.hpp"
#include "config/values.hpp"
#include "error.hpp"
#include "models/catalog.hpp"

namespace scalemark {
namespace {

constexpr std::string_view kPrefix = "SCALEMARK_";

struct Variable {
  std::string name;  ///< with the prefix
  std::string key;   ///< canonical key, perhaps unknown
  std::string text;
};

/// SCALEMARK_* variables that are not empty.
std::vector<Variable> our_variables(std::span<const std::string> environment) {
  std::vector<Variable> variables;
  for (const std::string& line : environment) {
    const std::size_t equals = line.find('=');
    if (!line.starts_with(kPrefix) || equals == line.npos || equals + 1 == line.size()) continue;
    const std::string name = line.substr(0, equals);
    std::string key = name.substr(kPrefix.size());
    for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    variables.push_back({name, key, line.substr(equals + 1)});
  }
  return variables;
}

void set(LoadedConfig& loaded, const std::string& key, const nlohmann::ordered_json& value,
         Origin origin) {
  find_key(key)->set(loaded.config, value);
  loaded.origins[key] = origin;
}

void apply_file(LoadedConfig& loaded, const Arguments& arguments,
                const std::vector<Variable>& variables) {
  if (arguments.config_files.size() > 1)
    throw ConfigError("--config: given more than once; one file is read");
  std::string path = arguments.config_files.empty() ? "" : arguments.config_files.front();
  if (!arguments.config_files.empty() && path.empty())
    throw ConfigError("--config: the path is empty");
  for (const Variable& variable : variables)
    if (variable.key == "config" && path.empty()) path = variable.text;
  if (path.empty()) return;
  const nlohmann::ordered_json values = read_config_file(path);
  for (const auto& [key, value] : values.items()) set(loaded, key, value, Origin::file);
}

void apply_variables(LoadedConfig& loaded, const std::vector<Variable>& variables) {
  std::vector<std::string> names{"SCALEMARK_CONFIG"};
  for (const Key& key : all_keys()) {
    names.emplace_back(kPrefix);
    for (const char c : key.name)
      names.back() += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  for (const Variable& variable : variables) {
    if (variable.key == "config") continue;
    if (const Key* key = find_key(variable.key))
      set(loaded, key->name, parse_value(*key, variable.text, variable.name), Origin::environment);
    else
      loaded.warnings.push_back(fmt::format("ignoring the unknown variable {}{}", variable.name,
                                            did_you_mean(variable.name, names)));
  }
}

/// A file or variables may hold keys of training; other commands have their defaults.
void forget_other_keys(LoadedConfig& loaded) {
  const RunConfig defaults;
  for (const Key& key : all_keys()) {
    if (belongs(key, loaded.command)) continue;
    key.set(loaded.config, key.get(defaults));
    loaded.origins[key.name] = Origin::standard;
  }
}

void prepare_inference(LoadedConfig& loaded) {
  RunConfig& config = loaded.config;
  forget_other_keys(loaded);
  if (!config.batch_size && !config.largest_batch && config.mode == InferenceMode::single_stream)
    config.batch_size = 1;
  if (config.inject &&
      (config.inject->kind == "nan_loss" || config.inject->kind == "corrupt_allreduce"))
    throw ConfigError(fmt::format("--inject {}: inference has neither a loss nor an allreduce",
                                  config.inject->kind));
}

/// Preflight has one fault, and its pinning table measures nothing.
void prepare_preflight(LoadedConfig& loaded) {
  const RunConfig& config = loaded.config;
  forget_other_keys(loaded);
  if (config.inject && config.inject->kind != "corrupt_allreduce")
    throw ConfigError(fmt::format(
        "--inject {}: preflight has no steps; corrupt_allreduce is the fault that it has",
        config.inject->kind));
  if (config.seconds >= config.timeout)
    throw ConfigError(
        fmt::format("--seconds {} does not end before --timeout {}, the deadline of a measurement",
                    config.seconds, config.timeout));
  if (config.pinning && config.make_rules)
    throw ConfigError("--pinning measures nothing that --make_rules could hold: leave out one");
}

/// Keys of a schedule without it, and schedules that lack what they need.
void check_learning_rate(const RunConfig& config, const ModelFacts& facts) {
  using Shape = LearningRateSchedule::Shape;
  const LearningRateSchedule& schedule = config.lr_schedule;
  const std::string name = to_string(schedule);
  if (config.forward_only &&
      (schedule.shape != Shape::constant || config.lr_warmup_steps || config.clip_norm))
    throw ConfigError(
        "--lr_schedule, --lr_warmup_steps and --clip_norm have no meaning with --forward_only: "
        "there is no update");
  if (schedule.shape != Shape::polynomial &&
      (config.lr_decay_steps || config.lr_end != 0 || config.lr_power != 1))
    throw ConfigError(fmt::format(
        "--lr_decay_steps, --lr_end and --lr_power belong to --lr_schedule polynomial, not to {}",
        quote(name)));
  if (schedule.shape == Shape::piecewise && config.init_learning_rate)
    throw ConfigError(fmt::format(
        "--init_learning_rate: --lr_schedule {} begins with its own rate, {}; give one of the two",
        quote(name), schedule.rates.front()));
  if (schedule.shape == Shape::piecewise && !schedule.in_steps && facts.image_size == 0)
    throw ConfigError(
        fmt::format("--lr_schedule {}: an epoch is 1,281,167 images, and {} has sequences; give "
                    "steps, such as \"0.001;1000s;0.0001\"",
                    quote(name), facts.name));
  if (schedule.shape == Shape::vaswani && config.lr_warmup_steps == 0)
    throw ConfigError("--lr_warmup_steps 0: vaswani needs a warm-up; give 1 or more");
  if (schedule.shape == Shape::vaswani && facts.width == 0 && !config.init_learning_rate)
    throw ConfigError(
        fmt::format("--lr_schedule vaswani follows from the width of a sequence model, which {} "
                    "has not; give --init_learning_rate, the rate at the end of the warm-up",
                    facts.name));
  const RunConfig complete = resolved(config);
  if (schedule.shape == Shape::polynomial && *complete.lr_decay_steps <= *complete.lr_warmup_steps)
    throw ConfigError(
        fmt::format("--lr_decay_steps {} must be more than --lr_warmup_steps {}, which it includes",
                    *complete.lr_decay_steps, *complete.lr_warmup_steps));
}

void check_lengths(const RunConfig& config, const ModelFacts& facts) {
  if (config.length_distribution != LengthDistribution::fixed && facts.unit != "tokens/sec")
    throw ConfigError(fmt::format(
        "--length_distribution {}: {} has no sequences of varying length; a Transformer has",
        to_string(config.length_distribution), facts.name));
  if (config.length_distribution != LengthDistribution::lognormal &&
      (config.length_median || config.length_sigma != RunConfig{}.length_sigma))
    throw ConfigError(
        "--length_median and --length_sigma belong to --length_distribution lognormal");
}

/// Strategies for the gradients of embedding tables, without tables or where they can't be.
void check_embedding(const RunConfig& config, const ModelFacts& facts) {
  const bool sparse = config.embedding_gradients == EmbeddingGradients::sparse;
  if (config.tied_gradient == TiedGradient::sparse &&
      config.embedding_gradients == EmbeddingGradients::dense)
    throw ConfigError(
        "--tied_gradient sparse joins sparse gradients; add --embedding_gradients sparse");
  if (config.embedding_gradients == EmbeddingGradients::dense) return;
  const std::string given = "--embedding_gradients " + to_string(config.embedding_gradients);
  if (facts.width == 0)
    throw ConfigError(
        fmt::format("{}: {} has no embedding table; leave it out, or take a sequence model such as "
                    "transformer_base",
                    given, facts.name));
  if (config.forward_only)
    throw ConfigError(given + " has no meaning with --forward_only: there are no gradients");
  if (sparse && config.wire_dtype != WireDtype::fp32)
    throw ConfigError(
        fmt::format("{} sends rows as fp32 only, not as --wire_dtype {}; use --wire_dtype fp32, or "
                    "--embedding_gradients sparse_as_dense",
                    given, to_string(config.wire_dtype)));
}

/// c10d brings its own communicator and knows one way to sum.
void check_reducer(const RunConfig& config) {
  if (config.reducer != Reducer::c10d) return;
  if (config.forward_only)
    throw ConfigError("--reducer c10d has no meaning with --forward_only: there are no gradients");
  if (config.communicator == CommunicatorKind::mpi || config.communicator == CommunicatorKind::none)
    throw ConfigError(
        fmt::format("--reducer c10d brings its own communicator, Gloo on the cpu and NCCL on cuda; "
                    "leave out --communicator {}",
                    to_string(config.communicator)));
  if (config.overlap == Overlap::none)
    throw ConfigError(
        "--reducer c10d communicates during the backward pass; leave out --overlap none");
  if (config.wire_dtype != WireDtype::fp32)
    throw ConfigError(
        fmt::format("--reducer c10d sends gradients as fp32; leave out --wire_dtype {}",
                    to_string(config.wire_dtype)));
  if (config.embedding_gradients != EmbeddingGradients::dense)
    throw ConfigError(fmt::format(
        "--reducer c10d sums dense gradients; leave out --embedding_gradients {}, or take "
        "--reducer scalemark",
        to_string(config.embedding_gradients)));
}

/// A search settles the batch of a rank: nothing else may, and something must be there to try.
void check_largest_batch(const RunConfig& config) {
  if (!config.largest_batch) return;
  const auto refuse = [](const std::string& what) {
    throw ConfigError("--batch_size max finds the batch of a rank: " + what);
  };
  if (config.scaling == Scaling::strong || config.global_batch_size || config.global_batch_tokens)
    refuse(
        "it does not go with a fixed global batch; use weak scaling without "
        "--global_batch_size and --global_batch_tokens");
  if (config.micro_batch_size)
    refuse("micro-batches would fit whatever the batch; leave out --micro_batch_size");
  if (config.base_batch_size)
    refuse("the base of the curve has the same; leave out --base_batch_size");
  if (config.dry_run) refuse("--dry_run starts nothing that could be tried; give a number");
  if (config.mode == InferenceMode::single_stream)
    refuse("a single stream asks one query at a time; give a number, or --mode batch");
}

/// Checkpoints hold what training has changed.
void check_checkpoints(const RunConfig& config) {
  if (config.checkpoint_every > 0 && config.forward_only)
    throw ConfigError(
        "--checkpoint_every saves what training has learnt; leave out --forward_only");
  if (config.checkpoint_dir && config.checkpoint_every == 0)
    throw ConfigError(
        "--checkpoint_dir is where checkpoints are written; say how often with "
        "--checkpoint_every N");
}

/// What no single key can tell.
void check_whole(const RunConfig& config) {
  if (config.device == Device::cpu && config.communicator == CommunicatorKind::nccl)
    throw ConfigError("--communicator nccl needs --device cuda; on the cpu it is mpi or none");
  if (config.forward_only && config.overlap == Overlap::backward)
    throw ConfigError(
        "--overlap backward has no meaning with --forward_only: there is no backward pass");
  if (config.scaling == Scaling::strong && !config.global_batch_size && !config.global_batch_tokens)
    throw ConfigError(
        "--scaling strong fixes the batch over all ranks and needs --global_batch_size or "
        "--global_batch_tokens (--batch_size is per rank)");
  const ModelFacts facts = *find_model(config.model);
  if (config.sequence_length && facts.sequence_length == 0)
    throw ConfigError(fmt::format("--sequence_length: {} has images, no sequences", facts.name));
  const std::int64_t length = config.sequence_length.value_or(facts.sequence_length);
  if (facts.sequence_length > 0 && (length < facts.shortest || length > facts.longest))
    throw ConfigError(fmt::format("--sequence_length {}: {} takes {} to {} tokens", length,
                                  facts.name, facts.shortest, facts.longest));
  if (config.image_size && facts.image_size == 0)
    throw ConfigError(fmt::format("--image_size: {} has sequences, no images", facts.name));
  if (config.forward_only && config.micro_batch_size)
    throw ConfigError("--micro_batch_size splits the batch of training; leave out --forward_only");
  check_learning_rate(config, facts);
  check_lengths(config, facts);
  check_reducer(config);
  check_embedding(config, facts);
  check_largest_batch(config);
  check_checkpoints(config);
}

/// A target loss is for training, and best for a task that can be learnt.
void check_target_loss(LoadedConfig& loaded) {
  const RunConfig& config = loaded.config;
  if (!config.target_loss) return;
  if (config.forward_only)
    throw ConfigError(
        "--target_loss has no meaning with --forward_only: without an update the loss stays");
  if (config.data == SyntheticData::noise)
    loaded.warnings.push_back(
        "--target_loss with --data noise: its labels are random, so that a lower loss is one "
        "learnt by heart; --data learnable is a task to learn");
}

/// What only a curve has, or only several curves.
void check_curve(Command command, const RunConfig& config) {
  if (command != Command::scale) {
    if (!config.more_precisions.empty() || !config.more_global_batch_sizes.empty())
      throw ConfigError(fmt::format(
          "--{}: a list makes a curve of each value, which is for scalemark scale; scalemark {} "
          "takes one",
          config.more_precisions.empty() ? "global_batch_size" : "precision", name_of(command)));
    return;
  }
  if (config.resource == Resource::gpu && config.device == Device::cpu)
    throw ConfigError(
        "--resource gpu counts GPUs, and --device cpu uses none: give rank, node or core");
  if (!config.solution_steps && (config.base_solution_steps || config.base_batch_size))
    throw ConfigError(
        "--base_solution_steps and --base_batch_size belong to a time to solution: give "
        "--solution_steps, the steps of the larger points");
  if (config.scaling == Scaling::weak && (config.global_batch_size || config.global_batch_tokens))
    throw ConfigError(
        "--global_batch_size and --global_batch_tokens: a weak-scaling curve fixes the batch per "
        "rank; give --batch_size, or "
        "--scaling strong");
  if (!config.ranks.empty() && !config.largest_batch) check_points(config, config.ranks);
}

void check_batch(const RunConfig& config) {
  if (config.batch_size && config.global_batch_size &&
      *config.global_batch_size % *config.batch_size != 0) {
    const std::int64_t below = *config.global_batch_size / *config.batch_size * *config.batch_size;
    throw ConfigError(
        fmt::format("--global_batch_size {} is no multiple of --batch_size {}: the nearest legal "
                    "values are {}{}",
                    *config.global_batch_size, *config.batch_size,
                    below > 0 ? fmt::format("{} and ", below) : "", below + *config.batch_size));
  }
}

}  // namespace

LoadedConfig load_config(Command command, std::span<const std::string> arguments,
                         std::span<const std::string> environment) {
  const Arguments parsed = parse_arguments(command, arguments);
  const std::vector<Variable> variables = our_variables(environment);
  LoadedConfig loaded;
  loaded.command = command;
  for (const Key& key : all_keys()) loaded.origins[key.name] = Origin::standard;
  apply_file(loaded, parsed, variables);
  apply_variables(loaded, variables);
  for (const auto& [key, text, place] : parsed.settings)
    set(loaded, key, parse_value(*find_key(key), text, place), Origin::command_line);
  if (command == Command::infer) prepare_inference(loaded);
  if (command == Command::preflight) prepare_preflight(loaded);
  check_whole(loaded.config);
  check_target_loss(loaded);
  check_curve(command, loaded.config);
  for (const CurveConfig& curve : curves_of(loaded.config)) check_batch(curve.config);
  return loaded;
}

std::vector<std::string> environment_lines() {
  std::vector<std::string> lines;
  for (char** line = environ; line && *line; ++line) lines.emplace_back(*line);
  return lines;
}

LoadedConfig load_config(Command command, int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  return load_config(command, arguments, environment_lines());
}

}  // namespace scalemark

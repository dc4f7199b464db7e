// Reads the layers of a configuration, merges and checks them, and hands the result to the next
// program.
#include "config/load.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>
#include <utility>

#include "config/curves.hpp"
#include "config/flags.hpp"
#include "config/json_text.hpp"
#include "config/keys.hpp"
#include "config/learning_rate.hpp"
#include "config/names.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"
#include "models/catalog.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const Key& key : all_keys()) names.push_back(key.name);
  return names;
}

}  // namespace

const Key& known_key(const std::string& written, const std::string& place) {
  const std::string name = canonical_name(written);
  if (const Key* key = find_written_key(name)) return *key;
  throw ConfigError(fmt::format("{}: unknown key{}", place, did_you_mean(name, key_names())));
}

Json parse_config_text(std::string_view text, std::string_view name,
                       std::vector<std::string>* warnings) {
  const Json document = parse_json_object(text, name, "configuration");
  Json values = Json::object();
  for (const auto& [member, value] : document.items()) {
    const std::string place = fmt::format("{}: {}", name, pointer_to(member));
    if (member == "$schema" || member == "description") {
      if (!value.is_string()) throw ConfigError(fmt::format("{}: must be a text", place));
      continue;
    }
    const Key& key = known_key(member, place);
    if (values.contains(key.name))
      throw ConfigError(fmt::format("{}: the key {} is there twice", place, key.name));
    const WrittenSetting written = check_written(canonical_name(member), value, place);
    if (warnings && !written.warning.empty()) warnings->push_back(written.warning);
    values[key.name] = written.value;
  }
  return values;
}

Json read_config_file(const std::filesystem::path& path, std::vector<std::string>* warnings) {
  check_text(path.string(), "--config");
  return parse_config_text(read_json_text(path, "configuration"), path.string(), warnings);
}

namespace {

/// Returns the help of a command that is not in the key table.
CommandHelp words_about(Command command) {
  switch (command) {
    case Command::run:
      return {std::string(name_of(command)),
              "One measured training run over the ranks it was launched with.",
              {"[--flag value]..."},
              {},
              {"scalemark run --model resnet50 --batch_size 16 --output run.json",
               "mpirun -n 4 scalemark run --model bert_base --precision bf16",
               "scalemark run --model transformer_base --batch_size max --dry_run"},
              ""};
    case Command::scale:
      return {std::string(name_of(command)),
              "A scaling curve in one launch: points interleaved, repeated, with a baseline.",
              {"[--flag value]..."},
              {},
              {"scalemark scale --model resnet50 --ranks 1,2,4 --output curve.json",
               "scalemark scale --scaling strong --global_batch_size 256 --ranks 1,2",
               "scalemark scale --from results/sweep --output curve.json"},
              ""};
    case Command::infer:
      return {std::string(name_of(command)),
              "Forward passes only: throughput and latency. Ranks are independent replicas.",
              {"[--flag value]..."},
              {},
              {"scalemark infer --model resnet50 --batch_size 32 --output infer.json",
               "scalemark infer --model bert_base --mode single_stream",
               "mpirun -n 4 scalemark infer --model resnet50 --precision bf16"},
              ""};
    case Command::preflight:
      break;
  }
  return {std::string(name_of(command)),
          "Health checks of the nodes that the ranks run on, against rules.",
          {"[--flag value]..."},
          {},
          {"mpirun -n 4 scalemark preflight --output preflight.json",
           "scalemark preflight --make_rules rules.json",
           "srun scalemark preflight --rules rules.json --output preflight.json"},
          ""};
}

/// Returns the subcommands that a flag belongs to, for users who gave it to another one.
std::string_view owners(const Key& key) {
  if (key.commands.contains(Command::run)) return "scalemark run and scalemark scale";
  if (key.commands.contains(Command::scale)) return "scalemark scale";
  return key.commands.contains(Command::infer) ? "scalemark infer" : "scalemark preflight";
}

/// The flag by which scalemark run, scale and infer repeat the command of a record.
constexpr std::string_view kAgain = "again";

std::vector<std::string> flag_names(Command command) {
  std::vector<std::string> names{"config", "set", "help"};
  if (command != Command::preflight) names.emplace_back(kAgain);
  for (const Key& key : all_keys())
    if (key.commands.contains(command)) {
      names.push_back(key.name);
      if (key.kind == Kind::boolean) names.push_back("no" + key.name);
    }
  return names;
}

struct Elsewhere {
  std::string_view flag, instead;
};
/// The flags of tf_cnn_benchmarks that have no equal here, and what takes their place.
constexpr auto kElsewhere = std::to_array<Elsewhere>({
    {"num_gpus", "a rank has one GPU: mpirun -n N scalemark run, or scalemark scale --ranks N"},
    {"num_epochs",
     "the data has no end: give steps with --num_batches, or end by --max_seconds or "
     "--target_loss"},
    {"variable_update",
     "gradients are always summed over all ranks; --communicator says by what, "
     "--reducer how"},
    {"all_reduce_spec",
     "--communicator says what sums the gradients; NCCL_ALGO chooses its "
     "algorithm"},
    {"horovod_device", "--device says where the gradients lie"},
    {"xla", "nothing is compiled here; scalemark infer --kernels scalemark folds and fuses layers"},
    {"xla_compile",
     "nothing is compiled here; scalemark infer --kernels scalemark folds and fuses layers"},
    {"data_dir", "the data is synthetic: --data says which, --input host that it is copied"},
    {"data_name", "the data is synthetic: --data says which, and --image_size how large"},
    {"train_dir", "--checkpoint_dir says where checkpoints are written"},
    {"save_model_steps", "--checkpoint_every N"},
    {"piecewise_learning_rate_schedule", "--lr_schedule takes the same text"},
    {"num_learning_rate_warmup_epochs", "--lr_warmup_steps counts steps"},
    {"benchmark_log_dir", "--output FILE is the record of the run"},
    {"job_name",
     "ranks are started by mpirun or srun; scalemark scale --hostfile FILE names hosts"},
    {"worker_hosts", "mpirun --hostfile FILE, or scalemark scale --hostfile FILE"},
    {"print_training_accuracy", "--display_every N prints the loss"},
});

[[noreturn]] void refuse_flag(Command command, const std::string& name) {
  const auto elsewhere = std::ranges::find(kElsewhere, name, &Elsewhere::flag);
  if (elsewhere != kElsewhere.end())
    throw ConfigError(fmt::format("--{}: not a flag of scalemark: {}", name, elsewhere->instead));
  if (name == "use_fp16")
    throw ConfigError("--use_fp16: a switch without a value, the same as --precision fp16");
  if (const Key* key = find_written_key(name))
    throw ConfigError(fmt::format("--{}: not a flag of scalemark {}, but of {}", name,
                                  name_of(command), owners(*key)));
  throw ConfigError(fmt::format("unknown flag {}{} (scalemark {} --help lists them)",
                                quote("--" + name), did_you_mean(name, flag_names(command), "--"),
                                name_of(command)));
}

/// Returns the boolean that --noNAME and --no_NAME turn off, or null where the name is none.
const Key* negated_key(Command command, const GivenWord& flag) {
  if (!flag.name.starts_with("no") || flag.value) return nullptr;
  const Key* key = find_key(flag.name.substr(flag.name.starts_with("no_") ? 3 : 2));
  return key && key->kind == Kind::boolean && key->commands.contains(command) ? key : nullptr;
}

/// Returns the name of a key, or `config` or `set`, and its text, which is "true" for a boolean
/// without a value.
std::pair<std::string, std::string> name_and_text(Command command, const GivenWord& flag) {
  if (flag.name.empty())
    throw ConfigError(
        fmt::format("unexpected argument {}: flags are written --name value or --name=value",
                    quote(flag.written.front())));
  if (flag.name == "use_fp16" && flag.value.value_or("true") == "true")
    return {"precision", "fp16"};
  if (flag.name == kAgain)
    throw ConfigError(
        "--again: it belongs to scalemark run, scale and infer alone, whose record it repeats");
  const Key* key = find_written_key(flag.name);
  if (flag.name == "config" || flag.name == "set" || (key && key->commands.contains(command))) {
    if (!flag.value && key_takes_value(flag.name))
      throw ConfigError(fmt::format("--{}: the value is missing", flag.name));
    return {flag.name, flag.value.value_or("true")};
  }
  if (const Key* boolean = negated_key(command, flag)) return {boolean->name, "false"};
  refuse_flag(command, flag.name);
}

Arguments::Setting read_set(Command command, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos)
    throw ConfigError(fmt::format("--set: {} is not KEY=VALUE, such as seed=7", quote(text)));
  const std::string name = canonical_name(text.substr(0, equals));
  const Key* key = find_written_key(name);
  if (!key || !key->commands.contains(command)) refuse_flag(command, name);
  return {name, text.substr(equals + 1), "--set " + name};
}

}  // namespace

bool key_takes_value(const std::string& name) {
  if (name == "config" || name == "set" || name == kAgain) return true;
  const Key* key = find_written_key(name);
  return key && key->kind != Kind::boolean;
}

Arguments parse_arguments(Command command, std::span<const std::string> arguments) {
  Arguments parsed;
  for (const GivenWord& flag : read_words(arguments, key_takes_value)) {
    const auto [name, text] = name_and_text(command, flag);
    if (text.find('\0') != text.npos)  // C strings would end there
      throw ConfigError(fmt::format("--{}: control characters are not allowed", name));
    if (name == "config")
      parsed.config_files.push_back(text);
    else if (name == "set")
      parsed.settings.push_back(read_set(command, text));
    else
      parsed.settings.push_back({name, text, "--" + name});
  }
  return parsed;
}

namespace {

FlagHelp flag_of(const Key& key, Command command) {
  const bool other = key.other_words.commands.contains(command);
  return {.name = key.name,
          .value_name = other ? key.other_words.value_name : key.value_name,
          .text = other ? key.other_words.help : key.help,
          .standard = other ? key.other_words.standard : default_text(key),
          .words = key.kind == Kind::choice ? key.choices : std::vector<std::string>{},
          .often_used = key.often_used};
}

/// Returns the exit codes in ascending order: "0 ok, 2 usage, ...".
std::string exit_codes() {
  std::map<int, std::string_view> words;
  for (const ExitCodeWords& known : kExitCodes)
    if (!known.of_gate) words[static_cast<int>(known.code)] = known.words;
  std::string text;
  for (const auto& [code, word] : words)
    text += (text.empty() ? "" : ", ") + std::to_string(code) + " " + std::string(word);
  return text;
}

}  // namespace

CommandHelp key_help(Command command) {
  CommandHelp help = words_about(command);
  for (const Key& key : all_keys()) {
    if (!key.commands.contains(command)) continue;
    if (help.groups.empty() || help.groups.back().heading != key.group)
      help.groups.push_back({key.group, {}});
    help.groups.back().flags.push_back(flag_of(key, command));
  }
  help.groups.push_back(
      {"Where settings come from",
       {{.name = "config",
         .value_name = "FILE",
         .text = "JSON file of keys; also SCALEMARK_CONFIG",
         .often_used = true},
        {.name = "set", .value_name = "KEY=VALUE", .text = "any key", .repeated = true}}});
  if (command != Command::preflight)
    help.groups.back().flags.push_back(
        {.name = std::string(kAgain),
         .value_name = "FILE",
         .text = "record whose settings are measured again; other flags replace some of them; then "
                 "and now are compared"});
  help.notes =
      "In flags - and _ are alike; booleans are --x, --x=true, --x=false, --nox or --no_x.\n"
      "Settings come from the defaults, then --config, then SCALEMARK_<KEY> variables, then the "
      "command line.\n"
      "Exit codes: " +
      exit_codes() + ".\n";
  return help;
}

namespace {

constexpr std::string_view kPrefix = "SCALEMARK_";

struct Variable {
  std::string name;  ///< with the prefix
  std::string key;   ///< canonical key, perhaps unknown
  std::string text;
};

/// Returns the SCALEMARK_* variables that are not empty.
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

/// The settings that the layers so far have given.
struct Layers {
  RunConfig given;
  std::map<std::string, Origin> origins;
  std::vector<std::string> warnings;
};

void set(Layers& layers, const Key& key, const Json& value, Origin origin) {
  key.set(layers.given, value);
  layers.origins[key.name] = origin;
}

/// The settings of one layer, with the meaning of the names under which they were written.
class LayerSettings {
 public:
  LayerSettings(Layers& layers, Origin origin) : layers_(layers), origin_(origin) {}

  /// Adds a setting. A later value replaces an earlier one, but not under the other name of its
  /// key.
  void add(std::string_view name, std::string_view text, const std::string& place) {
    const WrittenSetting written = read_written(name, text, place);
    if (!written.warning.empty()) layers_.warnings.push_back(written.warning);
    const auto [at, is_new] =
        given_.try_emplace(written.key->name, Given{std::string(name), written.value, place});
    if (!is_new && at->second.name != name && at->second.value != written.value)
      throw ConfigError(fmt::format("{} and {} are one key and contradict each other: {} and {}",
                                    at->second.place, place, at->second.value.dump(),
                                    written.value.dump()));
    at->second = {std::string(name), written.value, place};
    set(layers_, *written.key, written.value, origin_);
  }

 private:
  struct Given {
    std::string name;
    Json value;
    std::string place;
  };
  Layers& layers_;
  Origin origin_;
  std::map<std::string, Given> given_;  ///< by key
};

void apply_file(Layers& layers, const Arguments& arguments,
                const std::vector<Variable>& variables) {
  if (arguments.config_files.size() > 1)
    throw ConfigError("--config: given more than once; one file is read");
  std::string path = arguments.config_files.empty() ? "" : arguments.config_files.front();
  if (!arguments.config_files.empty() && path.empty())
    throw ConfigError("--config: the path is empty");
  for (const Variable& variable : variables)
    if (variable.key == "config" && path.empty()) path = variable.text;
  if (path.empty()) return;
  const Json values = read_config_file(path, &layers.warnings);
  for (const auto& [name, value] : values.items())
    set(layers, *find_key(name), value, Origin::file);
}

void apply_variables(Layers& layers, const std::vector<Variable>& variables) {
  std::vector<std::string> names{"SCALEMARK_CONFIG"};
  for (const Key& key : all_keys()) {
    names.emplace_back(kPrefix);
    for (const char c : key.name)
      names.back() += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  LayerSettings settings(layers, Origin::environment);
  for (const Variable& variable : variables) {
    // SCALEMARK_PYTHON is read by scalemark report, SCALEMARK_MPI where pip installed scalemark.
    if (variable.key == "config" || variable.key == "python" || variable.key == "mpi") continue;
    if (find_written_key(variable.key))
      settings.add(variable.key, variable.text, variable.name);
    else
      layers.warnings.push_back(fmt::format("ignoring the unknown variable {}{}", variable.name,
                                            did_you_mean(variable.name, names)));
  }
}

/// Removes keys of other commands, which a file or variables may hold.
void forget_other_keys(Layers& layers, Command command) {
  const RunConfig defaults;
  for (const Key& key : all_keys())
    if (!recorded(key, command) ||
        (command != Command::scale && key.traits.contains(Trait::typed) &&
         layers.origins[key.name] != Origin::command_line))
      set(layers, key, key.get(defaults), Origin::standard);
}

/// Holds what check() of a group sees, and refuses configurations for it.
struct WholeConfig {
  const RunConfig& given;  ///< unset is what nobody has given
  const ResolvedConfig& resolved;
  const ModelFacts& facts;
  Command command;
  std::vector<std::string>& warnings;
  const std::map<std::string, Origin>& origins;

  /// Returns whether somebody has set the key, be it to its default.
  bool is_given(const std::string& key) const { return origins.at(key) != Origin::standard; }
  template <typename... T>
  [[noreturn]] void refuse(fmt::format_string<T...> text, T&&... values) const {
    throw ConfigError(fmt::format(text, std::forward<T>(values)...));
  }
  void warn(std::string text) const { warnings.push_back(std::move(text)); }
};

void check_groups(const WholeConfig& whole) {
  RunConfig::for_each_group([&]<typename Group>() {
    if constexpr (requires { Group::check(whole); }) Group::check(whole);
  });
}

/// Checks the other values of lists of models, reducers and shards. The warnings of the first one
/// have been kept.
void check_others(const Layers& layers, const ResolvedConfig& resolved, Command command) {
  if (resolved.more_models.empty() && resolved.more_reducers.empty() &&
      resolved.more_shards.empty())
    return;
  std::vector<std::string> told;
  for (const CurveConfig& curve : curves_of(resolved)) {
    RunConfig given = layers.given;
    given.model = curve.config.model;
    given.reducer = curve.config.reducer;
    given.shard = curve.config.shard;
    given.shard_ranks = curve.config.shard_ranks;
    given.more_models.clear();
    given.more_reducers.clear();
    given.more_shards.clear();
    check_groups(
        {given, ResolvedConfig(given), *find_model(given.model), command, told, layers.origins});
  }
}

/// The variable that names the descriptor of an unnamed file with handed_json().
constexpr const char* kHandedVariable = "SMK_INTERNAL_CONFIG";

Json handed_json(const LoadedConfig& loaded) {
  Json json = {{"command", std::string(name_of(loaded.command))}, {"warnings", loaded.warnings}};
  for (const Key& key : all_keys()) json["given"][key.name] = key.get(loaded.given);
  for (const auto& [name, origin] : loaded.origins) json["origins"][name] = to_string(origin);
  return json;
}

/// Returns the configuration that was handed over. Its values have been checked and are not checked
/// again.
std::optional<LoadedConfig> loaded_of(const Json& json, Command command) {
  if (json.at("command").get<std::string>() != name_of(command)) return std::nullopt;
  LoadedConfig loaded;
  loaded.command = command;
  json.at("warnings").get_to(loaded.warnings);
  for (const auto& [name, value] : json.at("given").items())
    find_key(name)->set(loaded.given, value);
  for (const auto& [name, origin] : json.at("origins").items())
    loaded.origins[name] = from_string<Origin>(origin.get_ref<const std::string&>()).value();
  loaded.config = ResolvedConfig(loaded.given);
  return loaded;
}

std::string whole_file(int descriptor) {
  std::string text;
  std::array<char, 4096> chunk;
  lseek(descriptor, 0, SEEK_SET);
  while (true) {
    const ssize_t size = read(descriptor, chunk.data(), chunk.size());
    if (size <= 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(size));
  }
}

}  // namespace

LoadedConfig load_config(Command command, std::span<const std::string> arguments,
                         std::span<const std::string> environment) {
  const Arguments parsed = parse_arguments(command, arguments);
  const std::vector<Variable> variables = our_variables(environment);
  Layers layers;
  for (const Key& key : all_keys()) layers.origins[key.name] = Origin::standard;
  apply_file(layers, parsed, variables);
  apply_variables(layers, variables);
  LayerSettings settings(layers, Origin::command_line);
  for (const auto& [name, text, place] : parsed.settings) settings.add(name, text, place);
  forget_other_keys(layers, command);
  RunConfig::for_each_group([&]<typename Group>() {
    if constexpr (requires { Group::read_files(layers.given); }) Group::read_files(layers.given);
  });
  const ResolvedConfig resolved(layers.given);
  check_groups({layers.given, resolved, *find_model(resolved.model), command, layers.warnings,
                layers.origins});
  check_others(layers, resolved, command);
  return {resolved, command, std::move(layers.origins), std::move(layers.warnings),
          std::move(layers.given)};
}

std::vector<std::string> environment_lines() {
  std::vector<std::string> lines;
  for (char** line = environ; line && *line; ++line) lines.emplace_back(*line);
  return lines;
}

void hand_over_config(const LoadedConfig& loaded) noexcept {
  try {
    const std::string text = handed_json(loaded).dump();
    const int file = memfd_create("scalemark configuration", 0);
    if (file < 0) return;
    if (write_whole(file, text) == 0)
      setenv(kHandedVariable, std::to_string(file).c_str(), 1);
    else
      close(file);
  } catch (const std::exception&) {  // a text that is not UTF-8
  }
}

std::optional<LoadedConfig> handed_config(Command command) noexcept {
  try {
    const char* text = std::getenv(kHandedVariable);
    const auto number = text ? parse_integer(text) : std::nullopt;
    unsetenv(kHandedVariable);
    if (!number || *number <= STDERR_FILENO) return std::nullopt;
    const int file = static_cast<int>(*number);
    const std::string handed = whole_file(file);
    close(file);
    return loaded_of(Json::parse(handed), command);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace scalemark

// See arguments.hpp. Names are checked here, so that refusals can name the nearest flag.
#include "config/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "config/flags.hpp"
#include "config/keys.hpp"
#include "config/text.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

/// What is not in the key table.
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

/// The subcommands that a flag belongs to, for whoever gave it to another one.
std::string_view owners(const Key& key) {
  if (key.commands.contains(Command::run)) return "scalemark run and scalemark scale";
  if (key.commands.contains(Command::scale)) return "scalemark scale";
  return key.commands.contains(Command::infer) ? "scalemark infer" : "scalemark preflight";
}

std::vector<std::string> flag_names(Command command) {
  std::vector<std::string> names{"config", "set", "help"};
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
/// Flags of tf_cnn_benchmarks that have no like here, and what takes their place.
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

/// The boolean that --noNAME and --no_NAME turn off; null where the name is none.
const Key* negated_key(Command command, const GivenWord& flag) {
  if (!flag.name.starts_with("no") || flag.value) return nullptr;
  const Key* key = find_key(flag.name.substr(flag.name.starts_with("no_") ? 3 : 2));
  return key && key->kind == Kind::boolean && key->commands.contains(command) ? key : nullptr;
}

/// The name of a key, or `config` or `set`, and its text: "true" of a boolean alone.
std::pair<std::string, std::string> name_and_text(Command command, const GivenWord& flag) {
  if (flag.name.empty())
    throw ConfigError(
        fmt::format("unexpected argument {}: flags are written --name value or --name=value",
                    quote(flag.written.front())));
  if (flag.name == "use_fp16" && flag.value.value_or("true") == "true")
    return {"precision", "fp16"};
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
  if (name == "config" || name == "set") return true;
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

/// "0 ok, 2 usage, ...", ascending.
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
  help.notes =
      "In flags - and _ are alike; booleans are --x, --x=true, --x=false, --nox or --no_x.\n"
      "Settings come from the defaults, then --config, then SCALEMARK_<KEY> variables, then the "
      "command line.\n"
      "Exit codes: " +
      exit_codes() + ".\n";
  return help;
}

}  // namespace scalemark

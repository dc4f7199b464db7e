// See arguments.hpp. Names are brought into canonical form and checked here, so that refusals can
// name the nearest flag; cxxopts takes the values and prints the help.
#include "config/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config/flags.hpp"
#include "config/keys.hpp"
#include "config/text.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

constexpr const char* kSourcesGroup = "Where settings come from";

std::string_view about(Command command) {
  switch (command) {
    case Command::run:
      return "One measured training run over the ranks it was launched with.\n";
    case Command::scale:
      return "A scaling curve in one launch: points interleaved, repeated, with a baseline.\n";
    case Command::infer:
      return "Forward passes only: throughput and latency. Ranks are independent replicas.\n";
    case Command::preflight:
      break;
  }
  return "Health checks of the nodes that the ranks run on, against rules.\n";
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

[[noreturn]] void refuse_flag(Command command, const std::string& name) {
  const auto& planned = planned_flags();
  if (name == "use_fp16")
    throw ConfigError("--use_fp16: a switch without a value, the same as --precision fp16");
  if (std::find(planned.begin(), planned.end(), name) != planned.end())
    throw ConfigError(fmt::format("--{}: not available in this version", name));
  if (const Key* key = find_key(name))
    throw ConfigError(fmt::format("--{}: not a flag of scalemark {}, but of {}", name,
                                  name_of(command), owners(*key)));
  throw ConfigError(fmt::format("unknown flag {}{} (scalemark {} --help lists them)",
                                quote("--" + name), did_you_mean(name, flag_names(command), "--"),
                                name_of(command)));
}

struct Flag {
  std::string name;         ///< canonical, without dashes
  std::string value;        ///< after `=`; "true" for a boolean alone, "false" for --nox and --no_x
  bool takes_next = false;  ///< the value is the next word
};

Flag read_flag(Command command, const std::string& word) {
  if (word.size() < 3 || !word.starts_with("--"))
    throw ConfigError(fmt::format(
        "unexpected argument {}: flags are written --name value or --name=value", quote(word)));
  const std::size_t equals = word.find('=');
  const bool has_value = equals != word.npos;
  const std::string name = canonical_name(word.substr(2, has_value ? equals - 2 : word.npos));
  const std::string value = has_value ? word.substr(equals + 1) : "";
  if (name == "config" || name == "set") return {name, value, !has_value};
  if (name == "use_fp16" && (!has_value || value == "true")) return {"precision", "fp16", false};
  if (const Key* key = find_key(name); key && key->commands.contains(command)) {
    if (key->kind == Kind::boolean) return {name, has_value ? value : "true", false};
    return {name, value, !has_value};
  }
  if (name.starts_with("no") && !has_value) {
    const std::string positive = name.substr(name.starts_with("no_") ? 3 : 2);
    const Key* key = find_key(positive);
    if (key && key->kind == Kind::boolean && key->commands.contains(command))
      return {positive, "false", false};
  }
  refuse_flag(command, name);
}

/// Every flag as two words, `--name` and its value: cxxopts then never matches a regular expression
/// against a value.
std::vector<std::string> canonical_words(Command command, std::span<const std::string> arguments) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Flag flag = read_flag(command, arguments[i]);
    words.push_back("--" + flag.name);
    if (flag.takes_next && ++i == arguments.size())
      throw ConfigError(fmt::format("--{}: the value is missing", flag.name));
    words.push_back(flag.takes_next ? arguments[i] : flag.value);
    if (words.back().find('\0') != std::string::npos)  // C strings would end there
      throw ConfigError(fmt::format("--{}: control characters are not allowed", flag.name));
  }
  return words;
}

std::string help_of(const Key& key) {
  std::string text = key.help;
  if (key.kind == Kind::choice && !key.traits.contains(Trait::catalog))
    text += ": " + legal_values(key);
  return text + fmt::format(" (default: {})", default_text(key));
}

/// For parsing every value is text; for the help booleans show no value.
cxxopts::Options make_options(Command command, bool for_help) {
  cxxopts::Options options(fmt::format("scalemark {}", name_of(command)),
                           std::string(about(command)));
  options.custom_help("[--flag value]...");
  for (const Key& key : all_keys()) {
    if (!key.commands.contains(command)) continue;
    const bool bare = for_help && key.kind == Kind::boolean;
    const std::shared_ptr<cxxopts::Value> value =
        bare ? cxxopts::value<bool>() : cxxopts::value<std::string>();
    options.add_options(key.group)(key.name, help_of(key), value, key.value_name);
  }
  options.add_options(kSourcesGroup)("config", "JSON file of keys; also SCALEMARK_CONFIG",
                                     cxxopts::value<std::string>(), "FILE")(
      "set", "any key; may be repeated", cxxopts::value<std::string>(), "KEY=VALUE")("h,help",
                                                                                     "this text");
  return options;
}

Arguments::Setting read_set(Command command, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos)
    throw ConfigError(fmt::format("--set: {} is not KEY=VALUE, such as seed=7", quote(text)));
  const std::string name = canonical_name(text.substr(0, equals));
  const Key* key = find_key(name);
  if (!key || !key->commands.contains(command)) refuse_flag(command, name);
  return {name, text.substr(equals + 1), "--set " + name};
}

}  // namespace

std::vector<std::string> canonical_flags(std::span<const std::string> arguments) {
  std::vector<std::string> words;
  for (const std::string& word : arguments) {
    const std::size_t end = word.find('=');
    words.push_back(word.starts_with("--")
                        ? "--" + canonical_name(word.substr(2, end == word.npos ? end : end - 2)) +
                              (end == word.npos ? "" : word.substr(end))
                        : word);
  }
  return words;
}

bool wants_help(std::span<const std::string> arguments) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const std::string& word) { return word == "--help" || word == "-h"; });
}

Arguments parse_arguments(Command command, std::span<const std::string> arguments) {
  const auto result =
      parse_flags(make_options(command, false), canonical_words(command, arguments));
  Arguments parsed;
  for (const auto& argument : result.arguments()) {
    if (argument.key() == "config")
      parsed.config_files.push_back(argument.value());
    else if (argument.key() == "set")
      parsed.settings.push_back(read_set(command, argument.value()));
    else
      parsed.settings.push_back({argument.key(), argument.value(), "--" + argument.key()});
  }
  return parsed;
}

namespace {

/// In the table's order; cxxopts would sort them by name.
std::vector<std::string> groups_of(Command command) {
  std::vector<std::string> groups;
  for (const Key& key : all_keys())
    if (key.commands.contains(command) && (groups.empty() || groups.back() != key.group))
      groups.push_back(key.group);
  groups.emplace_back(kSourcesGroup);
  return groups;
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

std::string grouped_flags(Command command) {
  const auto groups = groups_of(command);
  const std::string text = make_options(command, true).help(groups);
  return text.substr(std::min(text.size(), text.find(" " + groups.front() + " options:")));
}

std::string help_text(Command command) {
  std::string text = make_options(command, true).help(groups_of(command));
  text +=
      "\nIn flags - and _ are alike; booleans are --x, --x=true, --x=false, --nox or --no_x.\n"
      "Settings come from the defaults, then --config, then SCALEMARK_<KEY> variables, then the "
      "command line.\n"
      "Exit codes: ";
  return text + exit_codes() + ".\n";
}

}  // namespace scalemark

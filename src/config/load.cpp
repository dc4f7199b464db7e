// See load.hpp.
#include "config/load.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "config/arguments.hpp"
#include "config/curves.hpp"
#include "config/file_layer.hpp"
#include "config/keys.hpp"
#include "config/learning_rate.hpp"
#include "config/names.hpp"
#include "config/numbers.hpp"
#include "config/text.hpp"
#include "config/values.hpp"
#include "error.hpp"
#include "json.hpp"
#include "models/catalog.hpp"
#include "streams.hpp"

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

/// What the layers so far have given.
struct Layers {
  RunConfig given;
  std::map<std::string, Origin> origins;
  std::vector<std::string> warnings;
};

void set(Layers& layers, const Key& key, const Json& value, Origin origin) {
  key.set(layers.given, value);
  layers.origins[key.name] = origin;
}

/// Settings of one layer, and what the names that they were written under mean.
class LayerSettings {
 public:
  LayerSettings(Layers& layers, Origin origin) : layers_(layers), origin_(origin) {}

  /// A later value replaces an earlier one, but not under the other name of its key.
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
    // SCALEMARK_PYTHON is read by scalemark report.
    if (variable.key == "config" || variable.key == "python") continue;
    if (find_written_key(variable.key))
      settings.add(variable.key, variable.text, variable.name);
    else
      layers.warnings.push_back(fmt::format("ignoring the unknown variable {}{}", variable.name,
                                            did_you_mean(variable.name, names)));
  }
}

/// A file or variables may hold keys of other commands.
void forget_other_keys(Layers& layers, Command command) {
  const RunConfig defaults;
  for (const Key& key : all_keys())
    if (!recorded(key, command) ||
        (command != Command::scale && key.traits.contains(Trait::typed) &&
         layers.origins[key.name] != Origin::command_line))
      set(layers, key, key.get(defaults), Origin::standard);
}

/// What check() of a group sees, and how it refuses.
struct WholeConfig {
  const RunConfig& given;  ///< unset is what nobody has given
  const ResolvedConfig& resolved;
  const ModelFacts& facts;
  Command command;
  std::vector<std::string>& warnings;

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

/// Of lists of models and reducers; what the first of them warns of has been kept.
void check_others(const Layers& layers, const ResolvedConfig& resolved, Command command) {
  if (resolved.more_models.empty() && resolved.more_reducers.empty()) return;
  std::vector<std::string> told;
  for (const CurveConfig& curve : curves_of(resolved)) {
    RunConfig given = layers.given;
    given.model = curve.config.model;
    given.reducer = curve.config.reducer;
    given.more_models.clear();
    given.more_reducers.clear();
    check_groups({given, ResolvedConfig(given), *find_model(given.model), command, told});
  }
}

/// Names the descriptor of a file without a name that holds handed_json().
constexpr const char* kHandedVariable = "SMK_INTERNAL_CONFIG";

Json handed_json(const LoadedConfig& loaded) {
  Json json = {{"command", std::string(name_of(loaded.command))}, {"warnings", loaded.warnings}};
  for (const Key& key : all_keys()) json["given"][key.name] = key.get(loaded.given);
  for (const auto& [name, origin] : loaded.origins) json["origins"][name] = to_string(origin);
  return json;
}

/// Values that have been checked are not checked again.
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
  check_groups({layers.given, resolved, *find_model(resolved.model), command, layers.warnings});
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

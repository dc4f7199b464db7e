// See list.hpp.
#include "commands/list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "commands/subcommands.hpp"
#include "config/arguments.hpp"
#include "config/json_file.hpp"
#include "config/text.hpp"
#include "launch/build_of.hpp"
#include "launch/engine_start.hpp"
#include "models/catalog.hpp"
#include "result/records.hpp"
#include "streams.hpp"

namespace scalemark {

std::string models_table() {
  std::string text = fmt::format("{:<12} {:<14} {:>6} {:>13} {:>9}  {}\n", "model", "unit", "batch",
                                 "parameters", "GFLOPs", "");
  for (const ModelFacts& facts : kModels)
    text += fmt::format("{:<12} {:<14} {:>6} {:>13} {:>9.3f}  {}\n", facts.name, facts.unit,
                        facts.default_batch_size, facts.parameters,
                        facts.forward_flops_per_sample / 1e9, facts.description);
  return text +
         "batch: default samples per rank; GFLOPs: one forward pass of one sample, training is 3 "
         "x\n";
}

std::vector<std::filesystem::path> shipped_configs(const std::filesystem::path& program) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder = program.parent_path().parent_path() / "share" / "scalemark" / "configs";
  for (fs::path up = program.parent_path();
       !fs::is_directory(folder, error) && up != up.parent_path();)
    folder = (up = up.parent_path()) / "configs";
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error))
    if (entry.path().extension() == ".json") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

std::string configs_table(const std::vector<std::filesystem::path>& configs) {
  std::string settings, plans, curves;
  for (const auto& path : configs) {
    const Json json = parse_json_object(read_json_text(path, "file"), path.string(), "file");
    const auto member = [&](const char* name) {
      const Json text = json.value(name, Json());
      return text.is_string() ? text.get<std::string>() : std::string();
    };
    (member("$schema").ends_with("sweep.schema.json") ? plans
     : member("kind") == "published_curve"            ? curves
                                                      : settings) +=
        fmt::format("{}\n    {}\n", path.string(), member("description"));
  }
  return "config (give its path to --config)\n" + settings +
         "\nplan (give its path to scalemark sweep or gate)\n" + plans +
         "\npublished curve (give its path to scalemark project)\n" + curves;
}

std::string version_text() {
  const Json facts = build_info();
  std::string text = "scalemark " + facts.value("version", "") + "\n";
  for (const auto& [name, value] : facts.items())
    if (name != "version")
      text += fmt::format("  {:<14} {}\n", name,
                          value.is_string() ? value.get<std::string>() : value.dump());
  return text + fmt::format("  {:<14} {}\n", "gate", kTakesTurns);
}

ExitCode commands::list(const CommandLine& line) {
  const std::vector<std::string>& words = line.arguments;
  if (wants_help(words)) return print_help("Usage: scalemark list [models|configs]\n");
  const std::string what = words.empty() ? "" : words.front();
  if (words.size() > 1 || (!what.empty() && what != "models" && what != "configs"))
    throw ConfigError(fmt::format("scalemark list: {} is no list{}; legal: models, configs",
                                  quote(words.back()),
                                  did_you_mean(words.back(), {"models", "configs"})));
  if (what != "configs") put(models_table());
  if (what.empty()) put("\n");
  if (what != "models") put(configs_table(shipped_configs(own_path())));
  return ExitCode::ok;
}

}  // namespace scalemark

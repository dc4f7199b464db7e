// See list.hpp.
#include "commands/list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "commands/subcommands.hpp"
#include "config/arguments.hpp"
#include "config/command_help.hpp"
#include "config/flags.hpp"
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

Json models_json() {
  Json models = Json::array();
  for (const ModelFacts& facts : kModels)
    models.push_back({{"name", facts.name},
                      {"unit", facts.unit},
                      {"default_batch_size", facts.default_batch_size},
                      {"parameters", facts.parameters},
                      {"forward_flops_per_sample", facts.forward_flops_per_sample},
                      {"description", facts.description}});
  return models;
}

std::filesystem::path installed_share(const std::filesystem::path& program) {
  return program.parent_path().parent_path() / "share" / "scalemark";
}

std::string with_installed_paths(std::string text, const std::filesystem::path& share) {
  std::error_code error;
  if (!std::filesystem::is_directory(share, error)) return text;
  const std::string before = share.string() + "/";
  for (const std::string folder : {"docs/", "configs/"})
    for (std::size_t at = 0; (at = text.find(folder, at)) != text.npos; at += folder.size())
      if (at == 0 || std::string_view(" \n(").find(text[at - 1]) != text.npos) {
        text.insert(at, before);
        at += before.size();
      }
  return text;
}

std::vector<std::filesystem::path> shipped_configs(const std::filesystem::path& program) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder = installed_share(program) / "configs";
  for (fs::path up = program.parent_path();
       !fs::is_directory(folder, error) && up != up.parent_path();)
    folder = (up = up.parent_path()) / "configs";
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error))
    if (entry.path().extension() == ".json") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

Json configs_json(const std::vector<std::filesystem::path>& configs) {
  Json list = Json::array();
  for (const auto& path : configs) {
    const Json json = parse_json_object(read_json_text(path, "file"), path.string(), "file");
    const auto member = [&](const char* name) {
      const Json text = json.value(name, Json());
      return text.is_string() ? text.get<std::string>() : std::string();
    };
    list.push_back({{"path", path.string()},
                    {"kind", member("$schema").ends_with("sweep.schema.json") ? "plan"
                             : member("kind") == "published_curve"            ? "published_curve"
                                                                              : "config"},
                    {"description", member("description")}});
  }
  return list;
}

std::string configs_table(const std::vector<std::filesystem::path>& configs) {
  const Json list = configs_json(configs);
  std::string text;
  for (const auto& [kind, title] :
       {std::pair{"config", "config (give its path to --config)\n"},
        {"plan", "\nplan (give its path to scalemark sweep or gate)\n"},
        {"published_curve", "\npublished curve (give its path to scalemark project)\n"}}) {
    text += title;
    for (const Json& config : list)
      if (config["kind"] == kind)
        text += fmt::format("{}\n    {}\n", config["path"].get<std::string>(),
                            config["description"].get<std::string>());
  }
  return text;
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

CommandHelp commands::list_help(const CommandLine&) {
  return {"list",
          "The models, and the configurations, plans and published curves that come with it.",
          {"[models|configs] [--json]"},
          {{"List", {{.name = "json", .text = "as JSON on stdout", .often_used = true}}}},
          {"scalemark list", "scalemark list models", "scalemark list configs --json"},
          "Exit codes: 0 ok, 2 usage.\n"};
}

ExitCode commands::list(const CommandLine& line) {
  const FlagReader flags(parse_words(list_help(line), "list", canonical_flags(line.arguments)));
  const std::vector<std::string> words = flags.positionals("list");
  const std::string what = words.empty() ? "" : words.front();
  if (words.size() > 1 || (!what.empty() && std::ranges::find(kLists, what) == kLists.end()))
    throw ConfigError(fmt::format("scalemark list: {} is no list{}; legal: {}", quote(words.back()),
                                  did_you_mean(words.back(), kLists), join(kLists, ", ")));
  if (flags.has("json")) {
    Json lists = Json::object();
    if (what != "configs") lists["models"] = models_json();
    if (what != "models") lists["configs"] = configs_json(shipped_configs(own_path()));
    put(record_text(lists));
    return ExitCode::ok;
  }
  if (what != "configs") put(models_table());
  if (what.empty()) put("\n");
  if (what != "models") put(configs_table(shipped_configs(own_path())));
  return ExitCode::ok;
}

}  // namespace scalemark

// Prints catalogs as tables and as JSON, and the facts about this build.
#include "commands/list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/json_text.hpp"
#include "config/run_config.hpp"
#include "config/text.hpp"
#include "launch/engine_start.hpp"
#include "launch/gate_builds.hpp"
#include "launch/wheel.hpp"
#include "models/catalog.hpp"
#include "platform/platform.hpp"
#include "record/write.hpp"
#include "report/tables.hpp"
#include "result/records.hpp"
#include "streams.hpp"

namespace scalemark {

namespace {

/// Returns rows in columns as wide as their content, two spaces apart. The marked columns are
/// aligned to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows,
                    const std::vector<bool>& to_the_right) {
  std::vector<std::size_t> widths(to_the_right.size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += to_the_right[i] ? fmt::format("{:>{}}  ", row[i], widths[i])
                              : fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string models_table(std::span<const ModelFacts> models) {
  std::vector<std::vector<std::string>> rows{
      {"model", "unit", "batch", "parameters", "GFLOPs", ""}};
  for (const ModelFacts& facts : models)
    rows.push_back({std::string(facts.name), std::string(facts.unit),
                    std::to_string(facts.default_batch_size), std::to_string(facts.parameters),
                    fmt::format("{:.3f}", facts.forward_flops_per_sample / 1e9),
                    std::string(facts.description)});
  return aligned(rows, {false, false, true, true, true, false}) +
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
  std::vector<fs::path> found;
  for (const auto& entry :
       fs::recursive_directory_iterator(find_shipped(program, "configs"), error))
    if (entry.path().extension() == ".json") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

namespace {
bool is_study(const std::filesystem::path& config) {
  return config.parent_path().filename() == "studies";
}
}  // namespace

std::vector<std::filesystem::path> shipped_study_files(const std::filesystem::path& program) {
  auto files = shipped_configs(program);
  std::erase_if(files, [](const auto& path) { return !is_study(path); });
  return files;
}

void ShippedConfig::describe(Fields& fields) {
  fields.add("path", &ShippedConfig::path);
  fields.add("kind", &ShippedConfig::kind);
  fields.add("description", &ShippedConfig::description);
}

std::vector<ShippedConfig> read_configs(const std::vector<std::filesystem::path>& configs) {
  std::vector<ShippedConfig> list;
  for (const auto& path : configs) {
    const Json json = read_json_object(path, "file");
    const auto member = [&](const char* name) {
      const Json text = json.value(name, Json());
      return text.is_string() ? text.get<std::string>() : std::string();
    };
    list.push_back({path.string(),
                    member("$schema").ends_with("sweep.schema.json") ? "plan"
                    : is_study(path)                                 ? "study"
                    : path.parent_path().filename() == "rules"       ? "rules"
                    : member("kind") == "published_curve"            ? "published_curve"
                                                                     : "config",
                    member(is_study(path) ? "title" : "description")});
  }
  return list;
}

std::string configs_table(const std::vector<ShippedConfig>& configs) {
  std::string text;
  for (const auto& [kind, title] :
       {std::pair{"config", "config (give its path to --config)\n"},
        {"plan", "\nplan (give its path to scalemark sweep or gate)\n"},
        {"published_curve", "\npublished curve (give its path to scalemark project)\n"},
        {"rules", "\nrules (give its path to scalemark preflight --rules)\n"},
        {"study", "\nstudy (scalemark list studies)\n"}}) {
    text += title;
    for (const ShippedConfig& config : configs)
      if (config.kind == kind) text += fmt::format("{}\n    {}\n", config.path, config.description);
  }
  return text;
}

namespace {
struct ConfigList {
  std::vector<ShippedConfig> configs;
  static void describe(Fields& fields) { fields.add("configs", &ConfigList::configs); }
};
}  // namespace

std::string version_text() {
  const record::Build build = build_info();
  std::string text = "scalemark " + build.version + "\n";
  const Json facts = part_json(build);
  for (const auto& [name, value] : facts.items())
    if (name != key_of(&record::Build::version))
      text += fmt::format("  {:<14} {}\n", name,
                          value.is_string() ? value.get<std::string>() : value.dump());
  text += fmt::format("  {:<14} {}torch{}\n", "kernels", has_own_kernels() ? "scalemark, " : "",
                      has_triton_kernels() ? ", triton" : "");
  text += fmt::format("  {:<14} {}\n", "gate", kInterleavedWord);
  if (const auto wheel = wheel_of(own_path()))
    for (const auto& [name, value] : wheel_facts(*wheel, process_environment()))
      text += fmt::format("  {:<14} {}\n", name, value);
  return text;
}

CommandHelp commands::list_help(const CommandLine&) {
  return {"list",
          "The models, and the configurations, plans, published curves and studies that come with "
          "it.",
          {"[models|configs|studies] [--json]"},
          {{"List", {{.name = "json", .text = "as JSON on stdout", .often_used = true}}}},
          {"scalemark list", "scalemark list models", "scalemark list studies"},
          "Exit codes: 0 ok, 2 usage.\n"};
}

ExitCode commands::list(const CommandLine& line) {
  const FlagReader flags(list_help(line), "list", line.arguments);
  const std::vector<std::string> words = flags.positionals("list");
  const std::string what = words.empty() ? "" : words.front();
  if (words.size() > 1 || (!what.empty() && std::ranges::find(kLists, what) == kLists.end()))
    throw ConfigError(fmt::format("scalemark list: {} is no list{}; legal: {}", quote(words.back()),
                                  did_you_mean(words.back(), kLists), join(kLists, ", ")));
  const auto wanted = [&](const char* list) { return what.empty() || what == list; };
  Json lists = Json::object();
  std::vector<std::string> tables;
  if (wanted("models")) {
    lists.emplace("models", models_json());
    tables.push_back(models_table());
  }
  if (wanted("configs")) {
    const ConfigList configs{read_configs(shipped_configs(own_path()))};
    lists.update(part_json(configs));
    tables.push_back(configs_table(configs.configs));
  }
  if (what == "studies" || flags.has("json")) {
    std::vector<Study> studies;
    for (const auto& path : shipped_study_files(own_path())) studies.push_back(read_study(path));
    if (wanted("studies")) lists.emplace("studies", studies_json(studies));
    if (what == "studies") tables.push_back(studies_table(studies));
  }
  print_data(flags.has("json") ? record_text(lists) : join(tables, "\n"));
  return ExitCode::ok;
}

}  // namespace scalemark

// Defines what `scalemark list` and `scalemark --version` print.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "analysis/study/study_plan.hpp"
#include "json.hpp"
#include "models/catalog.hpp"

namespace scalemark {

/// The lists that can be printed.
inline const std::vector<std::string> kLists{"models", "configs", "studies"};

/// Returns the catalog, with an element for each model.
Json models_json();
/// Returns the catalog as a table: name, unit, default batch, parameters, forward GFLOPs per
/// sample, description. Columns are as wide as what is in them.
std::string models_table(std::span<const ModelFacts> models = kModels);

/// Returns the text with docs/ and configs/ as paths of that folder, where it is there.
std::string with_installed_paths(std::string text, const std::filesystem::path& share);

/// Returns the *.json of the configs folder that belongs to `program`, sorted by path.
std::vector<std::filesystem::path> shipped_configs(const std::filesystem::path& program);
/// Returns those of its folder studies/.
std::vector<std::filesystem::path> shipped_study_files(const std::filesystem::path& program);
struct ShippedConfig {
  std::string path, kind;  ///< "config", "plan", "published_curve", "rules" or "study"
  std::string description;
  static void describe(Fields& fields);
};
std::vector<ShippedConfig> read_configs(const std::vector<std::filesystem::path>& configs);
std::string configs_table(const std::vector<ShippedConfig>& configs);

/// Returns "scalemark 0.1.0" and what it was built with, one fact on each line.
std::string version_text();

}  // namespace scalemark

// What `scalemark list` and `scalemark --version` print.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "analysis/study/study_plan.hpp"
#include "json.hpp"
#include "models/catalog.hpp"

namespace scalemark {

/// What can be listed.
inline const std::vector<std::string> kLists{"models", "configs", "studies"};

/// The catalog, a model an element.
Json models_json();
/// The same as a table: name, unit, default batch, parameters, forward GFLOPs per sample,
/// description. Columns are as wide as what is in them.
std::string models_table(std::span<const ModelFacts> models = kModels);

/// The text with docs/ and configs/ as paths of that folder, where it is there.
std::string with_installed_paths(std::string text, const std::filesystem::path& share);

/// The *.json of the configs folder that belongs to `program`, sorted by path.
std::vector<std::filesystem::path> shipped_configs(const std::filesystem::path& program);
/// Those of its folder studies/.
std::vector<std::filesystem::path> shipped_study_files(const std::filesystem::path& program);
/// Of each its path, kind ("config", "plan", "published_curve", "rules" or "study") and
/// description.
Json configs_json(const std::vector<std::filesystem::path>& configs);
std::string configs_table(const std::vector<std::filesystem::path>& configs);

/// "scalemark 0.1.0" and what it was built with, one fact a line.
std::string version_text();

}  // namespace scalemark

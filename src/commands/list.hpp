// What `scalemark list` and `scalemark --version` print.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace scalemark {

/// The catalog as a table: name, unit, default batch, parameters, forward GFLOPs per sample,
/// description.
std::string models_table();

/// The *.json of the configs folder that belongs to `program`: <prefix>/share/scalemark/configs, or
/// the configs/ of the source tree that it was built in; sorted by path.
std::vector<std::filesystem::path> shipped_configs(const std::filesystem::path& program);
std::string configs_table(const std::vector<std::filesystem::path>& configs);

/// "scalemark 0.1.0" and what it was built with, one fact a line.
std::string version_text();

}  // namespace scalemark

// The files that come with the program: of an installed tree, or of the source tree that it was
// built in.
#pragma once

#include <filesystem>

namespace scalemark {

/// <prefix>/share/scalemark of an installed <prefix>/bin/scalemark.
std::filesystem::path installed_share(const std::filesystem::path& program);

/// `within` ("scripts/report", "configs") of installed_share(), or of the nearest folder above the
/// program that has it. EnvironmentError where none has.
std::filesystem::path find_companion(const std::filesystem::path& program,
                                     const std::filesystem::path& within);

}  // namespace scalemark

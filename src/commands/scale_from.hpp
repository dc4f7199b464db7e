// Curves whose repeats are fresh launches: `scalemark scale --from DIR` from the records of a
// sweep, and `--repeat_unit launch`, which launches that sweep.
#pragma once

#include "config/run_config.hpp"
#include "error.hpp"

namespace scalemark {

/// Writes and prints the curves of the sweep in --from. Throws ConfigError where the folder has no
/// journal or makes no curve, or where flags were given that belong to a measurement.
ExitCode scale_from(const LoadedConfig& asked);

/// Launches every point and repeat, goes on where the same command was ended, and ends as
/// scale_from(). The journal lies in FILE.sweep/ beside --output FILE.json, without that nowhere.
ExitCode scale_by_launches(const LoadedConfig& asked);

}  // namespace scalemark

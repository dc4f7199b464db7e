// What in a record is worth a warning: the sentences that stand in its `warnings`, which the
// console says.
#pragma once

#include <string>
#include <vector>

#include "json.hpp"

namespace scalemark {

/// Of a run or inference record: ranks that are slower than the others, a loss that diverged, its
/// preflight, and what disturbed it (see noise_summary.hpp).
std::vector<std::string> run_warnings(const Json& record);

/// Where `loss.diverged` of a run record with status ok is true; else empty.
std::string divergence_warning(const Json& run_record);

/// Where the preflight that a record names warned, failed, did not end, or did not run on all
/// hosts; else empty.
std::string preflight_warning(const Json& record);

/// To those that the record has; empty ones are none.
void add_warnings(Json& record, const std::vector<std::string>& warnings);

}  // namespace scalemark

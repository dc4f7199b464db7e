// What in a record is worth a warning: the sentences that stand in its `warnings`, which the
// console says.
#pragma once

#include <string>
#include <vector>

#include "json.hpp"
#include "record/inference.hpp"
#include "record/run.hpp"

namespace scalemark {

/// Ranks that are slower than the others, a loss that diverged, the preflight, and what disturbed
/// the measurement (see noise_summary.hpp).
std::vector<std::string> run_warnings(const RunResult& run);
std::vector<std::string> run_warnings(const InferenceResult& inference);

/// Where the loss of a run with status ok diverged; else empty.
std::string divergence_warning(const RunResult& run);

/// Where the preflight that a record names warned, failed, did not end, or did not run on all
/// hosts; else empty.
std::string preflight_warning(const Known<record::PreflightReference>& preflight);

/// To those that there are; empty ones are none.
void add_warnings(std::vector<std::string>& all, const std::vector<std::string>& warnings);
/// To those of a record.
void add_warnings(Json& record, const std::vector<std::string>& warnings);

}  // namespace scalemark

// The evidence of a record, for each kind of record in a file of its own: what is not there, or is
// of another type than its schema says, is unknown.
#pragma once

#include <map>
#include <string>

#include "analysis/compare/match_sets.hpp"
#include "analysis/diagnosis/evidence.hpp"
#include "json.hpp"

namespace scalemark::diagnosis {

/// What a sweep set for a launch, by the names of its keys.
using Settings = std::map<std::string, std::string>;

/// Of a run or an inference. `settings`: told in its name, where they are not there anyway.
RunEvidence run_evidence(const Json& record, const Settings& settings = {});
/// "resnet50 fp32, 4 ranks x 8".
std::string run_name(const Json& record, const Settings& settings = {});

/// `runs`: run records, among them those that the curve was made of; others are passed by.
CurveEvidence curve_evidence(const Json& record, const std::vector<RunEvidence>& runs = {});
/// "resnet50 fp32 weak".
std::string curve_name(const Json& record);

InferenceEvidence inference_evidence(const Json& record, const Settings& settings = {});
InstancesEvidence instances_evidence(const Json& record);
ComparisonEvidence comparison_evidence(const Json& record);
GateEvidence gate_evidence(const Json& record);
HistoryEvidence history_evidence(const Json& record);
ProjectionEvidence projection_evidence(const Json& record);
PreflightEvidence preflight_evidence(const Json& record);
StudyEvidence study_evidence(const Json& record);

/// Of every set but the first, which is the base, at each point that both have.
std::vector<SidesEvidence> sides_evidence(const std::vector<ResultSet>& sets,
                                          const Matching& matching);

}  // namespace scalemark::diagnosis

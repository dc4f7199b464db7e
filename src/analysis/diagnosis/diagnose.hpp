// Findings of a record, and how they stand in it: docs/records.md, "Findings".
#pragma once

#include "analysis/diagnosis/record_evidence.hpp"

namespace scalemark::diagnosis {

/// By its kind; none of a kind that has no rule. `runs`: of a curve, those that it was made of.
/// `settings`: of the sweep that it is a launch of.
Findings diagnose(const Json& record, const std::vector<RunEvidence>& runs = {},
                  const Settings& settings = {});

/// A list, as `findings` of a record.
Json findings_json(const Findings& findings);

/// Sets record["findings"].
void add_findings(Json& record, const std::vector<RunEvidence>& runs = {});
/// The same of a comparison or a gate, whose sides may have changed in what a step is spent on.
void add_findings(Json& record, const std::vector<ResultSet>& sets, const Matching& matching);

}  // namespace scalemark::diagnosis

// The rules: each looks at one thing and gives the findings that it triggers. They read evidence
// and nothing else; docs/report.md has them as a table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analysis/diagnosis/evidence.hpp"

namespace scalemark::diagnosis {

inline constexpr double kGoodEfficiency = 0.90;  ///< of the largest point: "scales"
inline constexpr double kWorthAWord = 0.05;      ///< a share of a step, or a loss of efficiency
inline constexpr double kWide = 0.10;            ///< half an interval / its centre
inline constexpr double kChange = 0.01;  ///< a share that all launches agree to have changed
inline constexpr double kTail = 3;       ///< p99 / p50 of a latency

/// A rule as docs/report.md has it. `label`: for a table with a line for each curve.
struct Rule {
  std::string_view name, label, says, when, tries;
};
std::span<const Rule> all_rules();

/// Does the curve scale, and why not?
Findings curve_findings(const CurveEvidence& curve);

/// Returns the findings of one run: its straggler, input, checkpoints, drift and loss.
Findings run_findings(const RunEvidence& run);
/// Returns the findings of several runs: a straggler of all is named once, and so is what takes
/// time in many.
Findings straggler_findings(const std::vector<RunEvidence>& runs, const std::string& about = "");
Findings runs_findings(const std::vector<RunEvidence>& runs);

Findings inference_findings(const InferenceEvidence& inference);
Findings instances_findings(const InstancesEvidence& instances);
Findings comparison_findings(const ComparisonEvidence& comparison);
Findings gate_findings(const GateEvidence& gate);
Findings history_findings(const HistoryEvidence& history);
Findings projection_findings(const ProjectionEvidence& projection);
Findings preflight_findings(const PreflightEvidence& preflight);
Findings study_findings(const StudyEvidence& study);

/// What changed between two sets at the points that both have: of each set and rule the point where
/// it changed most.
Findings change_findings(const std::vector<SidesEvidence>& points);

}  // namespace scalemark::diagnosis

// What `scalemark gate` was asked for: two result sets, two builds that it launches side by side, a
// baseline, or many sets in a row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/gate/verdict_record.hpp"
#include "commands/gate_reports.hpp"
#include "launch/gate_builds.hpp"

namespace scalemark {

struct GateRequest {
  enum class Kind { sets, builds, save_baseline, history } kind = Kind::sets;
  std::vector<std::string> sets;  ///< PATH or LABEL=PATH: base and new; one to save; many in a row
  GateDesign design;
  GateReports reports;
  std::optional<std::string> output;  ///< the file of the record

  std::vector<std::string> varied;  ///< keys that differ on purpose
  bool paired = false, other_machine = false;
  std::size_t allowed_to_fail = 0;  ///< launches of either set that need not be ok

  GatedBuilds builds;
  bool dry_run = false;

  // Of a baseline.
  std::string baseline;                ///< the file
  std::optional<std::string> because;  ///< why it replaces the one that is there
};

/// Judges two sets, or writes a baseline, or looks for changes in a row of sets. Exit codes: 0
/// pass, 1 regressed, 3 inconclusive; a history and a baseline end with 0.
ExitCode gate_sets(const GateRequest& request);

}  // namespace scalemark

// `scalemark gate`: is the new build slower than the base? Two result sets, two builds that it
// launches side by side, a baseline, or many sets in a row.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/verdict_record.hpp"
#include "config/sweep_plan.hpp"

namespace scalemark {

/// Where a verdict goes beside stdout.
struct GateReports {
  bool json = false;         ///< the record on stdout, nothing else
  bool annotations = false;  ///< a line on stderr in the form that GitHub shows beside a commit
  std::optional<std::string> junit, summary;  ///< paths: JUnit XML; Markdown, appended
};

/// What the two builds of a pair alternate in.
enum class Alternate { automatic, steps, launches };

struct GateRequest {
  enum class Kind { sets, builds, save_baseline, history } kind = Kind::sets;
  std::vector<std::string> sets;  ///< PATH or LABEL=PATH: base and new; one to save; many in a row
  GateDesign design;
  GateReports reports;
  std::optional<std::string> output;  ///< of builds the folder, else the file of the record

  std::vector<std::string> varied;  ///< keys that differ on purpose

  // Of sets.
  bool paired = false, other_machine = false;

  // Of builds.
  SweepPlan plan, new_plan;           ///< the same points; the new build's with --new_set
  std::string base, fresh;            ///< folder or program of a build, or a commit
  std::optional<double> max_seconds;  ///< no pair begins that would end later
  Alternate alternate = Alternate::automatic;
  bool dry_run = false;

  // Of a baseline.
  std::string baseline;                ///< the file
  std::optional<std::string> because;  ///< why it replaces the one that is there
};

/// The words after `gate`. ConfigError where they are wrong.
GateRequest read_gate_request(std::span<const std::string> arguments);

std::string gate_help();

/// Exit codes: 0 pass, 1 regressed, 3 inconclusive; 4 to 7 where a launch failed; a history and a
/// baseline end with 0.
ExitCode run_gate(const GateRequest& request);

/// Prints and writes a verdict as asked for.
void report_verdict(const Json& record, const GateReports& reports);

}  // namespace scalemark

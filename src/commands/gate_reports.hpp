// Where the word of a gate goes beside its exit code, whatever becomes of the gate: an older pass
// must not stay where a CI server would read it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/flags.hpp"
#include "error.hpp"
#include "result/records.hpp"

namespace scalemark {

struct GateReports {
  bool json = false;         ///< the record on stdout, nothing else
  bool annotations = false;  ///< a line on stderr in the form that GitHub shows beside a commit
  std::optional<std::string> junit, summary;  ///< paths: JUnit XML; Markdown, appended
  std::optional<std::string> record;          ///< of two sets: the file of the record
};

/// What the words of a command line ask for, read before they are known to be right. nullopt where
/// no verdict is asked for: a dry run, a baseline, a history.
std::optional<GateReports> wanted_reports(const std::vector<GivenWord>& words);

/// Until there is a verdict the JUnit file says that there is none, and so does a verdict that an
/// earlier gate left at the record's path. ResultError where they can't be written.
void begin_reports(const GateReports& reports);

/// Prints and writes a verdict as asked for; the record is written elsewhere.
void report_verdict(const Json& record, const GateReports& reports);

/// Writes that there is no verdict, and why; the error itself is said elsewhere.
void report_no_verdict(const std::exception& error, const GateReports& reports);

/// Throws ResultError where that fails.
void append_text(const std::string& path, const std::string& text);

}  // namespace scalemark

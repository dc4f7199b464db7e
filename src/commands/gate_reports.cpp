// See gate_reports.hpp.
#include "commands/gate_reports.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>

#include "analysis/gate/verdict_record.hpp"
#include "config/input_file.hpp"
#include "config/json_text.hpp"
#include "platform/posix_file.hpp"
#include "report/verdict_report.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// A pipe with a reader is as good as a file; one without would hang us.
void refuse_unread_pipe(const std::string& path) {
  const FileDescriptor probe{open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)};
  if (probe.fd < 0 && errno == ENXIO)
    throw ResultError(fmt::format(
        "{}: a pipe that nobody reads; choose a file, or start its reader first", path));
}

void write_text(const std::string& path, const std::string& text, std::ios::openmode mode) {
  refuse_unread_pipe(path);
  std::ofstream file(path, mode);
  file << text;
  file.close();
  if (!file) throw ResultError(fmt::format("{}: can't be written; choose another path", path));
}

void write_junit(const Json& record, const GateReports& reports) {
  if (reports.junit) write_text(*reports.junit, verdict_junit(record), std::ios::trunc);
}

bool is_older_verdict(const std::string& path) {
  try {
    const Json record = parse_json_text(read_input_file(path, kLargestRecord), kDeepestRecord);
    return record.is_object() && record.value("kind", Json()) == "verdict";
  } catch (const std::runtime_error&) {
    return false;  // nothing there, or nothing of ours
  }
}

/// Everywhere but stdout.
void write_reports(const Json& record, const GateReports& reports) {
  if (reports.annotations) std::fputs(verdict_annotation(record).c_str(), stderr);
  write_junit(record, reports);
  if (reports.summary) append_text(*reports.summary, verdict_markdown(record));
}

void replace_older_verdict(const Json& record, const GateReports& reports) {
  if (reports.record && is_older_verdict(*reports.record))
    ResultFile(*reports.record).write(record);
}

}  // namespace

std::optional<GateReports> wanted_reports(const std::vector<GivenWord>& words) {
  GateReports reports;
  bool builds = false;
  for (const auto& [name, value, written] : words) {
    if (name == "dry_run" || name == "save_baseline" || name == "history") return std::nullopt;
    if (name == "json") reports.json = true;
    if (name == "annotations") reports.annotations = true;
    if (name == "junit") reports.junit = value;
    if (name == "summary") reports.summary = value;
    if (name == "output") reports.record = value;
    builds = builds || name == "base" || name == "new" || name == "new_set";
  }
  if (builds) reports.record.reset();
  return reports;
}

void begin_reports(const GateReports& reports) {
  const Json record = make_failed_verdict({Status::interrupted, "the gate has not ended"});
  write_junit(record, reports);
  replace_older_verdict(record, reports);
}

void report_verdict(const Json& record, const GateReports& reports) {
  write_reports(record, reports);
  if (reports.json)
    put(record_text(record));
  else
    show(verdict_table(record));  // the exit code is the verdict
}

void report_no_verdict(const std::exception& error, const GateReports& reports) {
  const Json record = make_failed_verdict({Status::failed, error.what()});
  write_reports(record, reports);
  if (reports.record) ResultFile(*reports.record).write(record);
}

void append_text(const std::string& path, const std::string& text) {
  write_text(path, text, std::ios::app);
}

}  // namespace scalemark

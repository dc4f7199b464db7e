// --trace: a pass of its own after a measurement, whose file and summary join the record of that
// measurement, and whose failure costs nothing of it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "result/trace_file.hpp"
#include "session/session.hpp"
#include "train/trace/step_trace.hpp"

namespace scalemark {

/// The record of a measurement that is over while its trace pass goes on: what is left where a rank
/// dies there.
class MeasuredRecord {
 public:
  /// `output` may be null.
  MeasuredRecord(const Session& session, ResultFile* output) : session_(session), output_(output) {}

  /// Rank 0, before the pass: the record is in its place already. ResultError.
  void keep(const Json& record);
  bool is_kept() const;
  /// Last words: what the record says of the pass.
  void leave(const std::string& message) const;

 private:
  const Session& session_;
  ResultFile* output_;
  mutable std::mutex mutex_;  ///< last words come from a thread of their own
  Json record_;
};

/// The trace of one measurement; does nothing without --trace.
class TracePass {
 public:
  /// Runs so many steps and hands them to the trace.
  using Steps = std::function<Samples(std::int64_t steps, StepTrace& trace)>;

  /// All ranks of the session make it; rank 0 decides, and probes `path` (unset: no trace).
  /// AgreedError where nothing can be written there.
  TracePass(Session& session, const std::optional<std::string>& path);

  bool wanted() const { return steps_ > 0; }

  /// Traces, writes the file and fills trace and operators of `record`, which is at rank 0 of
  /// `ranks`; all of them call it. The same exit code on all: where it is not ok, nothing was
  /// traced, and the record says why.
  ExitCode add_to(Json& record, RankGroup& ranks, const Steps& steps);
  /// The same, while `kept` keeps the record.
  ExitCode add_to(Json& record, MeasuredRecord& kept, RankGroup& ranks, const Steps& steps);

 private:
  void trace(Json& record, RankGroup& ranks, const Steps& steps);
  void write(RankGroup& ranks, const std::string& events, Json& record, const Json& about);

  Session& session_;
  std::int64_t steps_ = 0;
  std::unique_ptr<TraceFile> file_;  ///< at rank 0
};

}  // namespace scalemark

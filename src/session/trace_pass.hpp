// Implements --trace: a separate pass after a measurement, whose file and summary are added to the
// record of that measurement. Where it fails, the measurement loses nothing.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "record/write.hpp"
#include "result/trace_file.hpp"
#include "result/trace_record.hpp"
#include "session/session.hpp"
#include "train/trace/step_trace.hpp"

namespace scalemark {

/// Keeps the record of a finished measurement while its trace pass goes on, for the case that a
/// rank dies there.
class MeasuredRecord {
 public:
  /// `output` may be null.
  MeasuredRecord(const Session& session, ResultFile* output) : session_(session), output_(output) {}

  /// Puts the record in its place before the pass, at rank 0. Throws ResultError.
  template <typename Run>
  void keep(const Run& run) {
    keep_untraced([run](const std::string& why) {
      Run untraced = run;
      fill_no_trace(untraced, why);
      return measured_json(untraced);
    });
  }
  bool is_kept() const;
  /// Writes the record with the reason why the pass failed. A dying process calls it as its last
  /// act.
  void leave(const std::string& message) const;

 private:
  /// Returns the record without a trace, with the reason why there is none.
  using Untraced = std::function<Json(const std::string& why)>;
  void keep_untraced(Untraced record);

  const Session& session_;
  ResultFile* output_;
  mutable std::mutex mutex_;  ///< the last words come from a thread of their own
  Untraced record_;
};

/// Traces one measurement. It does nothing without --trace.
class TracePass {
 public:
  /// Runs `steps` steps and passes them to the trace.
  using Steps = std::function<Samples(std::int64_t steps, StepTrace& trace)>;

  /// All ranks of the session make it. Rank 0 decides, and checks that `path` can be written; an
  /// unset path means no trace. Throws AgreedError where it cannot.
  TracePass(Session& session, const std::optional<std::string>& path);

  bool wanted() const { return steps_ > 0; }

  /// Traces, writes the file, and fills in trace and operators of `run`, which is at rank 0 of
  /// `ranks`. All of them call it and return the same exit code. Where that is not ok, nothing was
  /// traced, and the run says why.
  template <typename Run>
  ExitCode add_to(std::optional<Run>& run, RankGroup& ranks, const Steps& steps) {
    return add_to(run ? Traced{&*run, measured_step(*run)} : Traced{}, ranks, steps);
  }
  /// Traces likewise, while `kept` keeps the record.
  template <typename Run>
  ExitCode add_to(std::optional<Run>& run, MeasuredRecord& kept, RankGroup& ranks,
                  const Steps& steps) {
    return add_to(run, ranks, [&](std::int64_t count, StepTrace& trace) {
      ranks.agree_on([&] {
        if (run) kept.keep(*run);
      });
      return steps(count, trace);
    });
  }

 private:
  /// Holds the measurement that the trace belongs to, which is null except at rank 0.
  struct Traced {
    record::Measured* run = nullptr;
    std::optional<double> step_seconds = {};
  };
  ExitCode add_to(const Traced& traced, RankGroup& ranks, const Steps& steps);
  void trace(const Traced& traced, RankGroup& ranks, const Steps& steps);
  void write(RankGroup& ranks, const std::string& events, const Json& about);

  Session& session_;
  std::int64_t steps_ = 0;
  std::unique_ptr<TraceFile> file_;  ///< at rank 0
};

}  // namespace scalemark

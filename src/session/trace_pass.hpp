// --trace: a pass of its own after a measurement, whose file and summary join the record of that
// measurement, and whose failure costs nothing of it.
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

/// The record of a measurement that is over while its trace pass goes on: what is left where a rank
/// dies there.
class MeasuredRecord {
 public:
  /// `output` may be null.
  MeasuredRecord(const Session& session, ResultFile* output) : session_(session), output_(output) {}

  /// Rank 0, before the pass: the record is in its place already. ResultError.
  template <typename Run>
  void keep(const Run& run) {
    keep_untraced([run](const std::string& why) {
      Run untraced = run;
      fill_no_trace(untraced, why);
      return measured_json(untraced);
    });
  }
  bool is_kept() const;
  /// Last words: what the record says of the pass.
  void leave(const std::string& message) const;

 private:
  /// The record without a trace, for this reason.
  using Untraced = std::function<Json(const std::string& why)>;
  void keep_untraced(Untraced record);

  const Session& session_;
  ResultFile* output_;
  mutable std::mutex mutex_;  ///< last words come from a thread of their own
  Untraced record_;
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

  /// Traces, writes the file and fills trace and operators of `run`, which is at rank 0 of `ranks`;
  /// all of them call it. The same exit code on all: where it is not ok, nothing was traced, and
  /// the run says why.
  template <typename Run>
  ExitCode add_to(std::optional<Run>& run, RankGroup& ranks, const Steps& steps) {
    return add_to(run ? Traced{&*run, measured_step(*run)} : Traced{}, ranks, steps);
  }
  /// The same, while `kept` keeps the record.
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
  /// The measurement that the trace belongs to; null elsewhere than at rank 0.
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

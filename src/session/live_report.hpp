// Tells programs of a run while it goes on, by events on stderr (--progress jsonl) and by the file
// of --openmetrics, once per second at most.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "record/measured.hpp"
#include "result/monitoring.hpp"
#include "session/session.hpp"
#include "streams.hpp"

namespace scalemark {

/// Returns the state of a run that has not begun.
LiveState idle_state(const Session& session, int ranks);

/// Reports a run from rank 0.
class LiveReport {
 public:
  LiveReport(Session& session, int ranks, double units_per_step);
  ~LiveReport();  ///< says that nothing runs any more
  LiveReport(const LiveReport&) = delete;
  LiveReport& operator=(const LiveReport&) = delete;

  /// Reports a step, as StepObserver does. The cost does not grow with the number of steps.
  void step(long step, double loss, const std::vector<double>& step_seconds);
  /// Reports a run that has come to its end and has a throughput.
  void end(const record::Measured& run, std::int64_t steps);

 private:
  void report(long step, double loss, const std::vector<double>& step_seconds);
  void write_file();
  double seconds_left() const;

  Session& session_;
  double units_per_step_;
  LiveState state_;
  std::size_t told_steps_ = 0;  ///< steps that the last state told
  double last_ = 0;             ///< steady_seconds() of the last state
  std::atomic<bool> file_failed_ = false;
  std::string file_error_;  ///< of the first failure; read it where file_failed_
  Aside file_writer_;       ///< the last member: its tasks use the others
};

}  // namespace scalemark

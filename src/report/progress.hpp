// Progress of `scale` on stderr: the plan with an estimate of its time, a line per finished run,
// the time left.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"

namespace scalemark {

/// One measured run of a plan.
struct PlannedSegment {
  std::string title;            ///< "round 1/3, 2 ranks"
  double expected_seconds = 0;  ///< warm-up and measured loop
};

/// Where progress goes; the default is the process's stderr.
struct ProgressOutput {
  std::function<void(const std::string&)>
      write;                        ///< text with its own newlines and carriage returns
  std::function<double()> seconds;  ///< a steady clock
  bool updating = false;            ///< one line that is written over instead of a line per run
  /// Set: what is said is an event, and no text.
  std::function<void(std::string_view event, const Json& fields)> event = {};

  /// Updating where stderr is a terminal and stdout is not: step lines on the same terminal would
  /// tear the line.
  static ProgressOutput standard();
};

class PlanProgress {
 public:
  /// Says the plan: the number of runs, the titles in order, and how long they will take
  /// together.
  explicit PlanProgress(std::vector<PlannedSegment> plan,
                        ProgressOutput output = ProgressOutput::standard());

  /// A run begins.
  void start();
  /// The run that began last has ended with this rate, e.g. (139.6, "images/sec"). The time left is
  /// the expected time of the other runs, corrected by how long the finished ones took against what
  /// was expected of them.
  void finish(double rate, const std::string& unit);

 private:
  double seconds_left() const;
  void show(const std::string& line, bool last);

  std::vector<PlannedSegment> plan_;
  ProgressOutput output_;
  std::size_t finished_ = 0;
  double began_ = -1;  ///< when the first run began; -1 before
};

}  // namespace scalemark

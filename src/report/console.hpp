// What `run` and `scale` say on the console: the progress of a plan and tf_cnn_benchmarks' running
// columns; all else says what the records say.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/scaling/scaling.hpp"
#include "json.hpp"
#include "record/inference.hpp"
#include "record/run.hpp"
#include "result/records.hpp"

namespace scalemark {

/// tf_cnn_benchmarks' lines: header, `Step\tImg/sec\ttotal_loss` (or another last column), one line
/// per display, 64 dashes, total. Means are cumulative since the warm-up, from rank 0's local times
/// scaled by the world size.
class StepLines {
 public:
  /// `sink` gets whole lines without newline. `unit` "images/sec" gives "Img/sec" in the header,
  /// "tokens/sec" "Tokens/sec". `units_per_step`: of all ranks.
  StepLines(std::string unit, double units_per_step, std::function<void(const std::string&)> sink,
            std::string last_column = "total_loss");
  void header();
  /// `step` counts from 1; `step_seconds`: all measured steps so far. `images/sec: MEAN +/- ERROR
  /// (jitter = JITTER)`: MEAN = units / mean(t), ERROR = sd(v) / sqrt(n) and JITTER = 1.4826 median
  /// |v - median(v)| of v = units / t, sd with divisor n (numpy.std), all as in tf_cnn_benchmarks.
  void step(long step, double last, const std::vector<double>& step_seconds);
  /// The closing lines; `throughput_mean` of the record.
  void total(double throughput_mean);

 private:
  std::string unit_;
  double units_per_step_;
  std::function<void(const std::string&)> sink_;
  std::string last_column_;
};

/// The curve as aligned columns: ranks, throughput with 95 % interval, speedup, efficiency, exposed
/// communication, where asked for time to solution with the batch of a rank, and steps and seconds
/// to a target loss; below what the intervals are of, the warnings (see warning_lines()), and why
/// the curve falls short (see finding_lines()). Ends with a newline. A curve without status ok
/// gives one line with its status and reason.
std::string scaling_table(const ScalingCurve& curve, std::size_t told = 0);

/// Several curves by name, those of each unit side by side: throughput of each, its ratio to the
/// first one's, and what each took to a target loss. All have status ok; empty where no two share a
/// unit.
std::string family_table(const std::vector<std::string>& names,
                         const std::vector<ScalingCurve>& curves);

/// "45 s", "2 min 30 s", "1 h 05 min"; rounded to the second, "less than 1 s" below.
std::string format_duration(double seconds);

/// "about 45 s", "less than 1 s".
std::string about_duration(double seconds);

/// "warning: ..." of each of a record's `warnings`, a line each, made safe to show. `told`: so many
/// of the first ones the user has seen already, at the start.
std::string warning_lines(const std::vector<std::string>& warnings, std::size_t told = 0);

/// What --trace gave, in a few lines: the file, its cost, where a step goes by groups of operators.
/// Empty where nothing was traced.
std::string trace_summary(const record::Measured& run);

/// One run in a few lines for the end of `run`: throughput, interval (of this launch only), step
/// percentiles, communication, warnings (see warning_lines()), findings (see finding_lines()).
/// Lines without a last newline. A run without status ok gives its status and reason, and the
/// partial throughput where there is one.
std::string run_summary(const RunResult& run, std::size_t told = 0);

/// The same of an inference, with the quantiles of latency.
std::string inference_summary(const InferenceResult& inference, std::size_t told = 0);

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

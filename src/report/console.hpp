// Prints what `run` and `scale` say on the console: the progress of a plan, tf_cnn_benchmarks'
// running columns, and the texts of their records.
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

/// Prints tf_cnn_benchmarks' lines: a header, `Step\tImg/sec\ttotal_loss` (or another last
/// column), one line per display, 64 dashes, and the total. Means are cumulative since the warm-up,
/// computed from rank 0's local times and scaled by the world size.
class StepLines {
 public:
  /// `sink` gets whole lines without a newline. `unit` "images/sec" gives "Img/sec" in the header,
  /// and "tokens/sec" gives "Tokens/sec". `units_per_step` counts the units of all ranks.
  StepLines(std::string unit, double units_per_step, std::function<void(const std::string&)> sink,
            std::string last_column = "total_loss");
  void header();
  /// Prints the line of a step. `step` counts from 1, and `step_seconds` has the times of all
  /// measured steps so far. The line is `images/sec: MEAN +/- ERROR (jitter = JITTER)` with MEAN =
  /// units / mean(t), ERROR = sd(v) / sqrt(n) and JITTER = 1.4826 median |v - median(v)| of v =
  /// units / t, where sd has the divisor n (numpy.std), all as in tf_cnn_benchmarks.
  void step(long step, double last, const std::vector<double>& step_seconds);
  /// Prints the closing lines with `throughput_mean` of the record.
  void total(double throughput_mean);

 private:
  std::string unit_;
  double units_per_step_;
  std::function<void(const std::string&)> sink_;
  std::string last_column_;
};

/// Returns the curve as aligned columns: ranks, throughput with 95 % interval, speedup, efficiency
/// and exposed communication; where asked for also time to solution with the batch of a rank, and
/// steps and seconds to a target loss. Lines below say what the intervals are of, then come the
/// warnings (see warning_lines()) and why the curve falls short (see finding_lines()). Ends with a
/// newline. For a curve without status ok it returns one line with its status and reason.
std::string scaling_table(const ScalingCurve& curve, std::size_t told = 0);

/// Compares several curves by name, those of each unit side by side: the throughput of each, its
/// ratio to that of the first, and what each took to a target loss. All must have status ok.
/// Returns an empty text where no two share a unit.
std::string family_table(const std::vector<std::string>& names,
                         const std::vector<ScalingCurve>& curves);

/// Returns text like "45 s", "2 min 30 s" or "1 h 05 min", rounded to the second, and "less than 1
/// s" below that.
std::string format_duration(double seconds);

/// Returns text like "about 45 s", or "less than 1 s".
std::string about_duration(double seconds);

/// Returns a line "warning: ..." for each of a record's `warnings`, made safe to show. The first
/// `told` of them are left out, because the user has seen them at the start.
std::string warning_lines(const std::vector<std::string>& warnings, std::size_t told = 0);

/// Says in a few lines what --trace measured: the file, its cost, and the time of a step by groups
/// of operators. Returns an empty text where nothing was traced.
std::string trace_summary(const record::Measured& run);

/// Summarises one run in a few lines for the end of `run`: throughput, its interval (of this launch
/// only), step percentiles, communication, warnings (see warning_lines()) and findings (see
/// finding_lines()). There is no newline at the end. For a run without status ok it gives the
/// status and reason, and the partial throughput where there is one.
std::string run_summary(const RunResult& run, std::size_t told = 0);

/// Summarises an inference as run_summary() does a run, with the quantiles of latency.
std::string inference_summary(const InferenceResult& inference, std::size_t told = 0);

/// Describes one measured run of a plan.
struct PlannedSegment {
  std::string title;            ///< "round 1/3, 2 ranks"
  double expected_seconds = 0;  ///< warm-up and measured loop
};

/// Says where progress goes; the default is the process's stderr.
struct ProgressOutput {
  std::function<void(const std::string&)>
      write;                        ///< text with its own newlines and carriage returns
  std::function<double()> seconds;  ///< a steady clock
  bool updating = false;            ///< one line that is written over instead of a line per run
  /// Where it is set, progress is reported as events and not as text.
  std::function<void(std::string_view event, const Json& fields)> event = {};

  /// Updates one line where stderr is a terminal and stdout is not: step lines on the same terminal
  /// would tear the line.
  static ProgressOutput standard();
};

class PlanProgress {
 public:
  /// Prints the plan: the number of runs, the titles in order, and how long they will take
  /// together.
  explicit PlanProgress(std::vector<PlannedSegment> plan,
                        ProgressOutput output = ProgressOutput::standard());

  /// Reports that a run begins.
  void start();
  /// Reports that the run that began last has ended with this rate, e.g. (139.6, "images/sec"). The
  /// time left is the expected time of the other runs, corrected by the ratio of the measured to
  /// the expected time of the finished ones.
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

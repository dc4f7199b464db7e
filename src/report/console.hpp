// Console output: formats what the records say and computes nothing but tf_cnn_benchmarks' running columns.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "analysis/scaling.hpp"
#include "result/records.hpp"

namespace scalemark {

/// tf_cnn_benchmarks' lines: header, `Step\tImg/sec\ttotal_loss`, one line per display, 64 dashes, total.
/// Means are cumulative since the warm-up, from rank 0's local times scaled by the world size.
class StepLines {
 public:
  /// `sink` gets whole lines without newline. `unit` "images/sec" gives "Img/sec" in the header.
  StepLines(std::string unit, double units_per_step, std::function<void(const std::string&)> sink);
  void header();
  void step(long step, double loss, const std::vector<double>& step_seconds);
  void total(double throughput_mean);

 private:
  std::string unit_;
  double units_per_step_;
  std::function<void(const std::string&)> sink_;
};

/// A table: ranks, throughput with 95 % interval, speedup, efficiency, exposed communication.
std::string scaling_table(const Json& scaling_record);

/// "about 2 min 30 s", "45 s".
std::string format_duration(double seconds);

/// One run in a few lines for the end of `run`: throughput, interval (of this launch only), step percentiles,
/// communication, noise warnings.
std::string run_summary(const Json& run_record);

}  // namespace scalemark

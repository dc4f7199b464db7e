// Prints a sweep on the terminal: a line per launch while it runs, and a table of its points at the
// end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/sweep.hpp"
#include "record/describe.hpp"

namespace scalemark {

/// Prints lines on stderr: which launch runs, how it ended, and the time left.
class SweepProgress : public LaunchProgress {
 public:
  void expect(std::size_t launches) override { launches_ = launches; }
  void start(const std::string& title, std::int64_t repeat) override;
  void finish(double seconds, const std::string& outcome) override;

 private:
  std::size_t launches_ = 0, finished_ = 0;
  double seconds_ = 0;  ///< of the finished launches
};

/// Of all launches of a point, in its unit.
struct SweepRates {
  double mean, smallest, largest;
  static void describe(Fields& fields);
};

struct SweptPoint {
  std::string point;
  std::size_t launches = 0;
  int failed = 0;
  std::optional<std::string> unit;
  std::optional<SweepRates> throughput;
  std::vector<std::string> records;    ///< within the sweep's folder
  std::optional<double> over_default;  ///< throughput over that of the standard point
  static void describe(Fields& fields);
};

struct FastestPoint {
  std::string point, over;
  double factor = 0;
  bool shown = false;  ///< by the launches
  double p = 1;
  std::size_t as_fast = 0;                     ///< other points that may be as fast
  std::optional<std::int64_t> repeats_needed;  ///< unset: there are enough launches
  static void describe(Fields& fields);
};

struct SweepSummary {
  std::vector<SweptPoint> points;
  std::optional<FastestPoint> fastest;
  bool has_standard = false;
  static void describe(Fields& fields);
};

/// Sums up each point of a sweep, and which one is fastest, where the launches show it. Rates of
/// different units are not compared.
SweepSummary summary_of(const std::vector<SweepResult>& results,
                        std::optional<std::size_t> standard);

/// Returns a table for a terminal, with a line per point.
std::string sweep_table(const SweepSummary& sweep);

}  // namespace scalemark

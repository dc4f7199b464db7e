// What a sweep says on the terminal: a line a launch while it runs, a table of its points at the
// end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "result/journal.hpp"

namespace scalemark {

/// What a launch came to: its rate, or why it has none. `record`: null where it left none.
std::string outcome_of(const JournalEntry& entry, const Json& record);

/// Lines on stderr: which launch runs, how it ended, the time left.
class SweepProgress {
 public:
  explicit SweepProgress(std::size_t launches) : launches_(launches) {}
  void start(const std::string& title, std::int64_t repeat);
  /// `record`: null where the launch left none.
  void finish(const JournalEntry& entry, const Json& record);
  /// `outcome`: what to say of a launch of so many seconds.
  void finish(double seconds, const std::string& outcome);

 private:
  std::size_t launches_, finished_ = 0;
  double seconds_ = 0;  ///< of the finished launches
};

/// The launches of one point.
struct SweepResult {
  std::string title;
  std::string unit;                 ///< "images/sec"; empty where none has succeeded
  std::vector<double> throughputs;  ///< of each that has
  int failed = 0;
};

/// A line a point: launches, mean, smallest and largest throughput; with a `standard` point the
/// factor over it, and a last line that names the fastest point. Rates of different units are not
/// compared.
std::string sweep_table(const std::vector<SweepResult>& results,
                        std::optional<std::size_t> standard);

}  // namespace scalemark

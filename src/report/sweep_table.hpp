// What a sweep says on the terminal: a line a launch while it runs, a table of its points at the
// end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/sweep.hpp"

namespace scalemark {

/// Lines on stderr: which launch runs, how it ended, the time left.
class SweepProgress : public LaunchProgress {
 public:
  void expect(std::size_t launches) override { launches_ = launches; }
  void start(const std::string& title, std::int64_t repeat) override;
  void finish(double seconds, const std::string& outcome) override;

 private:
  std::size_t launches_ = 0, finished_ = 0;
  double seconds_ = 0;  ///< of the finished launches
};

/// A line a point: launches, mean, smallest and largest throughput; with a `standard` point the
/// factor over it, and a last line that names the fastest point. Rates of different units are not
/// compared.
std::string sweep_table(const std::vector<SweepResult>& results,
                        std::optional<std::size_t> standard);

}  // namespace scalemark

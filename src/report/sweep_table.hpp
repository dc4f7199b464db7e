// What a sweep says on the terminal: a line a launch while it runs, a table of its points at the
// end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json.hpp"
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

/// Of each point: launches, how many failed, mean, smallest and largest throughput, its records
/// within the sweep's folder; with a `standard` point the factor over it, and which point is
/// fastest, if the launches show it. Rates of different units are not compared.
Json sweep_json(const std::vector<SweepResult>& results, std::optional<std::size_t> standard);

/// The same for a terminal, a line a point.
std::string sweep_table(const Json& sweep);

}  // namespace scalemark

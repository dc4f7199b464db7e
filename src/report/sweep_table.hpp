// Prints a sweep on the terminal: a line per launch while it runs, and a table of its points at the
// end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json.hpp"
#include "launch/sweep.hpp"

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

/// Returns, for each point, the number of launches and of failed ones, the mean, smallest and
/// largest throughput, and its records within the sweep's folder. With a `standard` point it also
/// has the factor over that point, and which point is fastest, if the launches show it. Rates of
/// different units are not compared.
Json sweep_json(const std::vector<SweepResult>& results, std::optional<std::size_t> standard);

/// Returns the result of sweep_json() as a table for a terminal, with a line per point.
std::string sweep_table(const Json& sweep);

}  // namespace scalemark

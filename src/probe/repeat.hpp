// How long a probe goes on: for so many seconds, and often enough to say something.
#pragma once

#include <cstddef>
#include <vector>

namespace scalemark {

/// Seconds of each call of `timed`, which returns them: at least `fewest` calls, and more until
/// they add up to `seconds`.
template <typename F>
std::vector<double> repeat_for(double seconds, std::size_t fewest, F timed) {
  std::vector<double> times;
  double spent = 0;
  while (times.size() < fewest || spent < seconds) {
    times.push_back(timed());
    spent += times.back();
  }
  return times;
}

}  // namespace scalemark

#include "analysis/intervals.hpp"

#include <cmath>

namespace scalemark {

std::optional<Interval> log_interval(const std::vector<double>& values) {
  std::vector<double> logs;
  for (const double value : values) logs.push_back(std::log(value));
  const auto interval = student_interval(logs);
  if (!interval) return std::nullopt;
  return Interval{std::exp(interval->lo), std::exp(interval->hi)};
}

}  // namespace scalemark

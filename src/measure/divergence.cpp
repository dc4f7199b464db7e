// See divergence.hpp.
#include "measure/divergence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// 1.4826 makes a median absolute value the standard deviation of normal noise; the difference of
/// two values has sqrt(2) times that of one.
double noise_of_differences(std::span<const double> x) {
  std::vector<double> steps;
  steps.reserve(x.size());
  for (std::size_t i = 1; i < x.size(); ++i) steps.push_back(std::abs(x[i] - x[i - 1]));
  return 1.4826 * median(steps) / std::numbers::sqrt2;
}

}  // namespace

double divergence_score(std::span<const double> loss) {
  if (!std::all_of(loss.begin(), loss.end(), [](double x) { return std::isfinite(x); }))
    return std::numeric_limits<double>::infinity();
  if (loss.size() < 2 * kLevelWindow) return 0;
  const double first = median(loss.first(kLevelWindow)), last = median(loss.last(kLevelWindow));
  double best = first;
  std::span<const double> best_window = loss.first(kLevelWindow);
  for (std::size_t begin = kLevelWindow / 2; begin + 2 * kLevelWindow <= loss.size();
       begin += kLevelWindow / 2) {
    const auto window = loss.subspan(begin, kLevelWindow);
    const double level = median(window);
    if (level < best) {
      best = level;
      best_window = window;
    }
  }
  if (last <= best) return 0;
  const double noise =
      std::max({median_absolute_deviation_scaled(best_window), noise_of_differences(loss),
                kLeastNoiseFraction * std::abs(first)});
  return (last - best) / noise;
}

bool diverged(std::span<const double> loss) { return divergence_score(loss) > kDivergenceScore; }

}  // namespace scalemark

// See fixed_work.hpp.
#include "probe/fixed_work.hpp"

#include <algorithm>

#include "measure/clock.hpp"
#include "measure/statistics.hpp"
#include "probe/repeat.hpp"

namespace scalemark {
namespace {

/// A chain in which every step needs the one before: neither wider units nor more of them help.
double quantum(std::int64_t steps) {
  const double start = steady_seconds();
  std::uint64_t x = 1;
  for (std::int64_t i = 0; i < steps; ++i) x = x * 6364136223846793005ULL + 1442695040888963407ULL;
  [[maybe_unused]] volatile std::uint64_t kept = x;
  return steady_seconds() - start;
}

/// The fastest of some: undisturbed.
double fastest(std::int64_t steps) {
  double seconds = quantum(steps);
  for (int i = 0; i < 4; ++i) seconds = std::min(seconds, quantum(steps));
  return seconds;
}

}  // namespace

std::int64_t calibrate_quantum(double seconds) {
  std::int64_t steps = 1000;
  double took = fastest(steps);
  while (took < seconds / 4) {
    steps *= 2;
    took = fastest(steps);
  }
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(steps) * seconds / took));
}

std::vector<double> repeat_quantum(std::int64_t steps, double seconds) {
  return repeat_for(seconds, 10, [&] { return quantum(steps); });
}

QuantumStatistics quantum_statistics(const std::vector<std::vector<double>>& blocks) {
  std::vector<double> all;
  double best = mean(blocks.front());
  for (const auto& block : blocks) {
    best = std::min(best, mean(block));
    all.insert(all.end(), block.begin(), block.end());
  }
  const auto [least, most] = std::ranges::minmax(all);
  return {all.size(), median(all), mean(all), best, quantile(all, 0.99), most / least};
}

}  // namespace scalemark

// Computes cuts, and exact tests of how many values lie beyond them.
#include "measure/slow_launches.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/hypergeometric.hpp>
#include <cmath>

#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// Of a normal distribution: standard deviation / median distance from the median.
constexpr double kNormalScale = 1.4826;

std::vector<std::size_t> below(std::span<const double> x, double limit) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] < limit) found.push_back(i);
  return found;
}

double cut_of(const std::vector<double>& distances, double least) {
  return std::max(least, kSlowDeviations * kNormalScale * median(distances));
}

void add_distances(std::span<const double> x, std::vector<double>& distances) {
  const double centre = median(x);
  for (const double value : x) distances.push_back(std::abs(value - centre));
}

/// Returns the chance of at least `successes` heads in `trials` throws of a coin.
double sign_test_p(std::size_t successes, std::size_t trials) {
  if (successes == 0) return 1;
  const boost::math::binomial coin(static_cast<double>(trials), 0.5);
  return boost::math::cdf(boost::math::complement(coin, static_cast<double>(successes) - 1));
}

}  // namespace

double fisher_p(std::size_t base, std::size_t base_all, std::size_t fresh, std::size_t fresh_all) {
  const std::size_t slow = base + fresh, all = base_all + fresh_all;
  const std::size_t least = slow > base_all ? slow - base_all : 0;
  if (fresh <= least) return 1;
  // Boost's order: the number of slow ones, the number drawn, the number of all.
  const boost::math::hypergeometric drawn(
      static_cast<unsigned>(slow), static_cast<unsigned>(fresh_all), static_cast<unsigned>(all));
  return boost::math::cdf(boost::math::complement(drawn, static_cast<unsigned>(fresh - 1)));
}

SlowLaunches slow_launches(std::span<const double> base, std::span<const double> fresh,
                           double least) {
  std::vector<double> distances;
  add_distances(base, distances);
  add_distances(fresh, distances);
  SlowLaunches slow;
  slow.cut = cut_of(distances, least);
  slow.base = below(base, median(base) - slow.cut);
  slow.fresh = below(fresh, median(fresh) - slow.cut);
  slow.p = fisher_p(slow.base.size(), base.size(), slow.fresh.size(), fresh.size());
  return slow;
}

SlowLaunches slow_pairs(std::span<const double> log_ratios, double least) {
  std::vector<double> distances;
  add_distances(log_ratios, distances);
  SlowLaunches slow;
  slow.cut = cut_of(distances, least);
  const double centre = median(log_ratios);
  slow.fresh = below(log_ratios, centre - slow.cut);
  std::vector<double> turned = minus(log_ratios, centre);
  for (double& ratio : turned) ratio = -ratio;
  slow.base = below(turned, -slow.cut);
  slow.p = sign_test_p(slow.fresh.size(), slow.fresh.size() + slow.base.size());
  return slow;
}

}  // namespace scalemark

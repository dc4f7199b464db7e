// Computes the intervals of Clopper and Pearson.
#include "lab/simulation/clopper_pearson.hpp"

#include <boost/math/distributions/beta.hpp>

namespace scalemark {

Interval clopper_pearson(std::int64_t successes, std::int64_t trials, double confidence) {
  const double tail = (1 - confidence) / 2;
  const auto x = static_cast<double>(successes), n = static_cast<double>(trials);
  using boost::math::beta_distribution;
  using boost::math::quantile;
  return {successes == 0 ? 0 : quantile(beta_distribution<>(x, n - x + 1), tail),
          successes == trials ? 1 : quantile(beta_distribution<>(x + 1, n - x), 1 - tail)};
}

}  // namespace scalemark

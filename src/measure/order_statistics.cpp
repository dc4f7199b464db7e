// See order_statistics.hpp.
#include "measure/order_statistics.hpp"

#include <boost/math/constants/constants.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <stdexcept>

namespace scalemark {

double expected_maximum_of_normals(double n) {
  if (!(n >= 1)) throw std::domain_error("the maximum of fewer than one value");
  if (n == 1) return 0;
  // The density n phi(x) Phi(x)^(n - 1); the power by its logarithm, which keeps the upper tail.
  const auto first_moment = [n](double x) {
    const double above = std::erfc(x / boost::math::constants::root_two<double>()) / 2;
    if (above >= 1) return 0.;
    const double log_density =
        std::log(n) - x * x / 2 - std::log(boost::math::constants::root_two_pi<double>());
    return x * std::exp(log_density + (n - 1) * std::log1p(-above));
  };
  // All but 1e-16 of the largest value lies around the quantile 1 - 1 / n.
  const double centre =
      n > 2 ? boost::math::quantile(boost::math::complement(boost::math::normal(), 1 / n)) : 0;
  using Rule = boost::math::quadrature::gauss_kronrod<double, 61>;
  return Rule::integrate(first_moment, centre - 9, centre, 10, 1e-12) +
         Rule::integrate(first_moment, centre, centre + 9, 10, 1e-12);
}

}  // namespace scalemark

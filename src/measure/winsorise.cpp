// See winsorise.hpp.
#include "measure/winsorise.hpp"

#include <algorithm>
#include <cmath>

#include "measure/statistics.hpp"

namespace scalemark {
namespace {

std::vector<double> winsorised_around(double centre, std::vector<double> x) {
  std::vector<double> distances;
  for (const double value : x) distances.push_back(std::abs(value - centre));
  const double limit = x.empty() ? 0 : kWinsorLimit * median(distances);
  if (limit > 0)
    for (double& value : x) value = std::clamp(value, centre - limit, centre + limit);
  return x;
}

}  // namespace

std::vector<double> winsorised_magnitudes(std::vector<double> x) {
  return winsorised_around(0, std::move(x));
}

std::vector<double> winsorised_deviations(std::vector<double> x) {
  const double centre = median(x);
  return winsorised_around(centre, std::move(x));
}

}  // namespace scalemark

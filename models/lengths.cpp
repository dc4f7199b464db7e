#include "models/lengths.hpp"

#include <algorithm>
#include <cmath>

namespace scalemark {

std::int64_t Lengths::draw(std::int64_t longest, at::Generator generator) const {
  if (!vary()) return longest;
  if (distribution == LengthDistribution::uniform)
    return at::randint(1, longest + 1, {}, generator, at::kLong).item<std::int64_t>();
  const double z = at::randn({}, generator, at::kDouble).item<double>();
  return std::clamp<std::int64_t>(std::llround(median * std::exp(sigma * z)), 1, longest);
}

}  // namespace scalemark

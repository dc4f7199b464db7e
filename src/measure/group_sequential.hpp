// Sign-flip tests that may look at the data several times while they come.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "measure/joint_permutation.hpp"

namespace scalemark {

/// A look after `pairs` differences, by which at most a share `spent` of false refusals may have
/// happened (this look and all before it: alpha spending, Lan and DeMets 1983).
struct SequentialLook {
  std::size_t pairs;
  double spent;
};

/// Pairs that the last look may have: 2^pairs assignments of signs are listed.
inline constexpr std::size_t kMostSequentialPairs = 22;

/// The first look (index) at which "symmetric around 0 in every series" is refused in favour of
/// smaller values; nullopt where none of those that the differences are enough for does. Given the
/// magnitudes, all 2^n assignments of signs, one for all series of a pair, are alike under the null
/// hypothesis. They are followed through the looks together: at each, the first of joint_places()
/// among those not refused before are refused, as many as the level allows, ties left out. So the
/// chance of a false refusal at any look is at most the last `spent`, exactly, where the
/// differences are symmetric, and assignments that an early look refuses are not paid for again
/// later. Magnitudes are winsorised at each look. Throws std::invalid_argument where looks do not
/// ascend or go beyond kMostSequentialPairs, or series are unlike in length.
std::optional<std::size_t> first_refusal(const Series& differences,
                                         const std::vector<SequentialLook>& looks);

}  // namespace scalemark

// Names the distributions of the lengths of synthetic sequences. Configuration uses it without
// LibTorch; models/lengths.hpp draws the lengths.
#pragma once

namespace scalemark {

enum class LengthDistribution { fixed, uniform, lognormal };

}  // namespace scalemark

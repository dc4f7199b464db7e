// How the lengths of synthetic sequences are distributed: what draws them has LibTorch
// (models/lengths.hpp), what configures them has not.
#pragma once

namespace scalemark {

enum class LengthDistribution { fixed, uniform, lognormal };

}  // namespace scalemark

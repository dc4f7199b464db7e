// Counts the FLOPs of a network for which none are stated.
#pragma once

#include "models/model.hpp"

namespace scalemark {

/// Returns 2 FLOPs for each multiply-add of the convolutions and matrix products (including
/// attention) that a forward pass of this batch calls, from the shapes of their operands. Other
/// operators are not counted. The pass runs without gradients.
std::int64_t count_forward_flops(Model& model, const Batch& batch);

}  // namespace scalemark

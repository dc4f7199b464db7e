// FLOPs of a network, counted where nobody has stated them.
#pragma once

#include "models/model.hpp"

namespace scalemark {

/// 2 per multiply-add of the convolutions and matrix products (attention's among them) that a
/// forward pass of this batch really calls, from the shapes of their operands; all else is not
/// counted. Without gradients.
std::int64_t count_forward_flops(Model& model, const Batch& batch);

}  // namespace scalemark

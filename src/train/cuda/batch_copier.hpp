// Declares the batch copier of a GPU.
#pragma once

#include <memory>

#include "train/batch_copier.hpp"

namespace scalemark {
/// Makes a copier with a second stream. Its times come from events.
std::unique_ptr<BatchCopier> make_cuda_batch_copier();
}  // namespace scalemark

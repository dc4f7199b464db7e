// Implements --batch_size max: it finds the largest batch of a rank that fits in memory by trying.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>

#include "comm/rank_group.hpp"
#include "measure/batch_search.hpp"
#include "train/device_backend.hpp"

namespace scalemark {

/// Returns true for the errors of a failed allocation in LibTorch's allocators, C++ and oneDNN.
bool is_out_of_memory(const std::exception& error);

/// Tries batches on all ranks of `group` at once; one fits where it fits on every rank. `step`
/// makes a batch of this many samples for each rank, runs a few steps with it without communication
/// and returns the seconds of one. After an exception it must have released the batch. On the CPU
/// it runs under a limit: 70 % of the memory that is left when the search begins, shared by the
/// ranks of the host; a GPU refuses by itself. Throws AgreedError for an error other than a lack of
/// memory, and where not even one sample fits.
BatchSearch find_largest_batch(DeviceBackend& device, RankGroup& group,
                               const std::function<double(std::int64_t)>& step);

}  // namespace scalemark

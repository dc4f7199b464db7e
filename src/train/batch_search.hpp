// --batch_size max: the largest batch of a rank that fits in memory, tried out.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>

#include "comm/rank_group.hpp"
#include "measure/batch_search.hpp"
#include "train/device_backend.hpp"

namespace scalemark {

/// True for the errors that a failed allocation ends in: of LibTorch's allocators, of C++, of
/// oneDNN.
bool is_out_of_memory(const std::exception& error);

/// Tries batches on all ranks of `group` at once; one fits where it fits on every rank. `step`
/// makes a batch of this many samples a rank, runs a few steps with it without any communication
/// and returns the seconds of one; after an exception it has let go of the batch. On the CPU it
/// runs under a limit: 70 % of the memory that is left when the search begins, shared by the ranks
/// of the host; a GPU refuses by itself. Throws AgreedError for an error other than a lack
/// of memory, and where not even one sample fits.
BatchSearch find_largest_batch(DeviceBackend& device, RankGroup& group,
                               const std::function<double(std::int64_t)>& step);

}  // namespace scalemark

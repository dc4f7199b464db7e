// Declares an allgather of host memory whose blocks may differ in length, as stages of an
// operation. It is internal to comm/.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/operations.hpp"
#include "comm/wire_sum.hpp"

namespace scalemark {

/// Returns the stages of Communicator::start_allgather. Throws CommError where counts and buffers
/// do not fit together, or where a block or a displacement exceeds MPI's counts.
std::vector<Operation::Post> allgather_stages(const Peers& peers, const Buffer& mine,
                                              const Buffer& all,
                                              const std::vector<std::size_t>& counts);

}  // namespace scalemark

// How fast data gets to GPUs, from them and between them. Defined in probe/cuda/ and probe/no_cuda/
// (which throws EnvironmentError); the link picks one.
#pragma once

#include <vector>

#include "platform/gpu_health.hpp"

namespace scalemark {

/// What CUDA says of a visible GPU.
GpuTraits gpu_traits(int device);

/// Pinned memory of every NUMA node of the host to a GPU and back, 64 MiB at a time, `seconds` for
/// each direction. Nodes that give no memory are left out. What comes back is compared: RunError
/// where it differs. Throws CommError.
std::vector<GpuCopy> measure_gpu_copies(int device, double seconds);

/// Every visible GPU to every other, 64 MiB at a time, `seconds` for each ordered pair, one after
/// the other; what arrives is compared. Throws RunError, CommError.
std::vector<PeerLink> measure_peer_links(double seconds);

}  // namespace scalemark

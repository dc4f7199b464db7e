// Measures how fast data is copied to GPUs, from them and between them. It is defined in
// probe/cuda/ and probe/no_cuda/ (which throws EnvironmentError); the link selects one.
#pragma once

#include <vector>

#include "platform/gpu_health.hpp"

namespace scalemark {

/// Returns what CUDA reports about a visible GPU.
GpuTraits gpu_traits(int device);

/// Measures copies from pinned memory of every NUMA node of the host to a GPU and back, 64 MiB at a
/// time, for `seconds` in each direction. Nodes that provide no memory are left out. What comes
/// back is compared. Throws RunError where it differs, and CommError.
std::vector<GpuCopy> measure_gpu_copies(int device, double seconds);

/// Measures copies from every visible GPU to every other, 64 MiB at a time, for `seconds` for each
/// ordered pair, one pair after the other. What arrives is compared. Throws RunError where it
/// differs, and CommError.
std::vector<PeerLink> measure_peer_links(double seconds);

}  // namespace scalemark

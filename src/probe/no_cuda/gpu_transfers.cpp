// Implements the measurements for a build without CUDA by refusing them.
#include "probe/gpu_transfers.hpp"

#include "error.hpp"

namespace scalemark {
namespace {
[[noreturn]] void refuse() {
  throw EnvironmentError(
      "this build has no CUDA; use --device cpu, or build against a LibTorch with CUDA "
      "(scripts/setup)");
}
}  // namespace

GpuTraits gpu_traits(int) { refuse(); }
std::vector<GpuCopy> measure_gpu_copies(int, double) { refuse(); }
std::vector<PeerLink> measure_peer_links(double) { refuse(); }

}  // namespace scalemark

// Implements the functions for a build without CUDA by refusing what needs a GPU.
#include "comm/nccl_factory.hpp"

#include "error.hpp"

namespace scalemark {

std::unique_ptr<Communicator> make_nccl_communicator(RankGroup&, int) {
  throw EnvironmentError(
      "this build has no NCCL; use --communicator mpi, or build with SCALEMARK_CUDA=ON and a "
      "LibTorch with CUDA");
}

std::unique_ptr<Communicator> make_host_staged_communicator(
    std::unique_ptr<AsynchronousCommunicator>, int) {
  throw EnvironmentError(
      "this build has no CUDA; use --device cpu, or build with SCALEMARK_CUDA=ON and a LibTorch "
      "with CUDA");
}

std::unique_ptr<CollectiveCarrier> make_nccl_carrier(RankGroup&, int, std::int64_t, bool) {
  throw EnvironmentError("this build has no NCCL: its collectives cannot be timed");
}

std::string nccl_version() { return {}; }

}  // namespace scalemark

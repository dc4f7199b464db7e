// --reducer c10d: the C++ Reducer of PyTorch's DistributedDataParallel
// (torch/csrc/distributed/c10d) over its Gloo or NCCL process group, in place of scalemark's own,
// to compare with. Defined in train/c10d/, and in train/no_c10d/ where CMake found no headers of
// Gloo; the build picks one.
#pragma once

#include <memory>

#include "comm/communicator.hpp"
#include "train/step_reducer.hpp"
#include "train/trainer_impl.hpp"

namespace scalemark {

/// False: the functions below throw EnvironmentError.
bool has_c10d();

/// A c10d process group of these ranks as a communicator: "gloo" in host memory (`cuda_device` <
/// 0), else "nccl". One rank is a group too. Collective. Gloo connects over the interfaces that
/// GLOO_SOCKET_IFNAME names, as in PyTorch; without it over the loopback where all ranks are on one
/// host, else over the address that this host's name resolves to or that of its first interface.
/// Throws EnvironmentError where the ranks cannot connect.
std::unique_ptr<Communicator> make_c10d_communicator(RankGroup& group, int cuda_device);

/// While it lives, the gradients of the trainer's model are left to autograd: every leaf is fp32,
/// is cast in the graph where the model computes in another type (as under autocast), and has its
/// gradient in a bucket of c10d's. Its buckets() are one a parameter. `communicator` is one of
/// make_c10d_communicator() and must outlive it; std::logic_error else.
std::unique_ptr<StepReducer> make_c10d_reducer(Trainer::Impl& trainer, Communicator& communicator);

}  // namespace scalemark

// Implements --reducer c10d: the C++ Reducer of PyTorch's DistributedDataParallel
// (torch/csrc/distributed/c10d) over its Gloo or NCCL process group, as a comparison with
// scalemark's own. It is defined in train/c10d/, and in train/no_c10d/ where CMake found no headers
// of Gloo; the build selects one.
#pragma once

#include <memory>

#include "comm/communicator.hpp"
#include "train/step_reducer.hpp"
#include "train/trainer_impl.hpp"

namespace scalemark {

/// Returns false where the functions below throw EnvironmentError.
bool has_c10d();

/// Makes a c10d process group of these ranks as a communicator: "gloo" in host memory
/// (`cuda_device` < 0), else "nccl". A single rank is a group too. The call is collective. Gloo
/// connects over the interfaces that GLOO_SOCKET_IFNAME names, as in PyTorch; without it over the
/// loopback where all ranks are on one host, else over the address to which this host's name
/// resolves or that of its first interface. Throws EnvironmentError where the ranks cannot connect.
std::unique_ptr<Communicator> make_c10d_communicator(RankGroup& group, int cuda_device);

/// Leaves the gradients of the trainer's model to autograd during its lifetime: every leaf is fp32,
/// is cast in the graph where the model computes in another type (as under autocast), and has its
/// gradient in a bucket of c10d. Its buckets() are one for each parameter. `communicator` must come
/// from make_c10d_communicator() and outlive the reducer; else std::logic_error is thrown.
std::unique_ptr<StepReducer> make_c10d_reducer(Trainer::Impl& trainer, Communicator& communicator);

}  // namespace scalemark

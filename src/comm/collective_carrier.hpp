// Defines how the data of a timed collective is moved: by MPI's own call in a bare loop, by
// scalemark's allreduce, or by NCCL on GPU memory. LibTorch-free.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "comm/rank_group.hpp"
#include "measure/bus_bandwidth.hpp"

namespace scalemark {

enum class Carrier { mpi, scalemark, nccl, nccl_in_place };
inline constexpr std::array kHostCarriers{Carrier::mpi, Carrier::scalemark};
inline constexpr std::array kDeviceCarriers{Carrier::nccl, Carrier::nccl_in_place};
std::string_view to_string(Carrier carrier);

/// Runs collectives for CollectiveProbe on its own buffers.
class CollectiveCarrier {
 public:
  virtual ~CollectiveCarrier() = default;
  virtual bool carries(Collective) const { return true; }
  /// Returns whether a rank's input is stored where it receives; for an allgather, in its own
  /// block.
  virtual bool in_place(Collective collective) const = 0;
  /// Sets elements from `first` on of what this rank sends (not in place) or receives.
  virtual void put_sent(std::size_t first, std::span<const float> values) = 0;
  virtual void put_received(std::size_t first, std::span<const float> values) = 0;
  virtual void get_received(std::size_t first, std::span<float> values) = 0;
  /// Runs `repetitions` collectives over `elements` (collective_bytes() / 4) one after the other,
  /// and returns the seconds of each on this rank. NCCL's messages below 64 KiB are timed 20 at a
  /// time, and their mean is returned. The call is collective. Throws CommError.
  virtual std::vector<double> run(Collective collective, std::size_t elements, int repetitions) = 0;
};

/// Makes a carrier with buffers of `largest` bytes. `cuda_device` is the device of kDeviceCarriers.
/// The call is collective over `group`. Throws EnvironmentError where this build or machine has no
/// such carrier.
std::unique_ptr<CollectiveCarrier> make_carrier(Carrier carrier, RankGroup& group,
                                                std::int64_t largest, int cuda_device = -1);

}  // namespace scalemark

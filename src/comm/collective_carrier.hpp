// Who moves the data of a collective that is timed: MPI's own call in a bare loop, scalemark's
// allreduce, or NCCL on GPU memory. LibTorch-free.
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

class CollectiveCarrier {
 public:
  virtual ~CollectiveCarrier() = default;
  virtual bool carries(Collective) const { return true; }
  /// Whether what a rank sends lies where it receives: of an allgather in its own block.
  virtual bool in_place(Collective collective) const = 0;
  /// Elements from `first` on of what this rank sends (not in place), or receives.
  virtual void put_sent(std::size_t first, std::span<const float> values) = 0;
  virtual void put_received(std::size_t first, std::span<const float> values) = 0;
  virtual void get_received(std::size_t first, std::span<float> values) = 0;
  /// `repetitions` over `elements` (collective_bytes() / 4), one behind the other, each timed on
  /// this rank, in seconds: of NCCL's shorter than 64 KiB, 20 at a time by their mean. Collective.
  /// Throws CommError.
  virtual std::vector<double> run(Collective collective, std::size_t elements, int repetitions) = 0;
};

/// With buffers of `largest` bytes. `cuda_device`: of kDeviceCarriers. Collective over `group`.
/// Throws EnvironmentError where this build or machine has no such carrier.
std::unique_ptr<CollectiveCarrier> make_carrier(Carrier carrier, RankGroup& group,
                                                std::int64_t largest, int cuda_device = -1);

}  // namespace scalemark

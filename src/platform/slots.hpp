// Parts of machines that have nothing in common: where jobs run side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "platform/platform.hpp"
#include "platform/slot_share.hpp"

namespace scalemark {

/// Where one job runs: places, each of as many of its ranks.
struct Slot {
  std::vector<SlotPlace> places;

  bool is_here() const;  ///< on this machine alone
  /// Fewer CPUs than ranks in one of its places: these share them.
  bool is_crowded(std::int64_t ranks) const;
  std::vector<std::string> hosts() const;  ///< each once, "" for this one, in their order
  /// "CPUs 0-3", "GPU-1234... with CPUs 0-3", "n0: CPUs 0-3 and n1: CPUs 0-3".
  std::string title() const;
};

/// What slots are cut from.
struct SlotSource {
  std::vector<std::vector<int>> cores;  ///< allowed_cores()
  int usable_cores = 1;                 ///< of these, what the CPU quota pays for
  GpuList gpus;
};
SlotSource slot_source(Device device);

/// What is asked of the slots.
struct SlotRequest {
  /// Items between semicolons: a list of logical CPUs ("0-3,8"), the UUID of a GPU or MIG slice, or
  /// one of the words gpu and mig for all that are visible, as many in a slot as a job has ranks. A
  /// UUID may be followed by "@" and its CPUs; the others share the cores near their GPU evenly.
  /// Places of one slot are joined by "+", and one on another host begins with its name and ":".
  std::optional<std::string> layout = {};
  std::optional<std::int64_t> count = {};  ///< of slots: the first ones
  Device device = Device::automatic;
  std::int64_t ranks = 1;  ///< of a job
};

/// Without a layout all GPUs and slices where the device is not cpu and there are any, else equal
/// shares of the cores (without a count: a core a rank). Throws ConfigError: malformed, CPUs
/// outside the mask or in two slots, a UUID twice, fewer slots or cores than asked for, a kind that
/// does not go with the device, ranks that do not fit; EnvironmentError: a GPU or slice that is not
/// there, or a GPU in MIG mode. What other hosts have is not known here.
std::vector<Slot> make_slots(const SlotRequest& request, const SlotSource& source);

/// Fills in the NUMA nodes of this machine.
void find_numa(std::vector<Slot>& slots);

}  // namespace scalemark

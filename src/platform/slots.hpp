// Parts of this machine that have nothing in common: where jobs run side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "platform/platform.hpp"

namespace scalemark {

/// Where one job runs: on CPUs alone, or on a GPU or MIG slice with CPUs for its host side.
struct Slot {
  enum class Kind { cpu, gpu, mig };
  Kind kind = Kind::cpu;
  std::vector<int> cpus = {};    ///< logical, ascending
  std::vector<int> numa = {};    ///< nodes of these; empty where unknown
  std::string uuid = {};         ///< of the GPU or slice; empty on CPUs
  std::string device_name = {};  ///< the same

  /// "CPUs 0-3", "GPU-1234... with CPUs 0-3".
  std::string title() const;
};

std::string to_string(Slot::Kind kind);  ///< "cpu", "gpu", "mig"

/// What slots are cut from.
struct SlotSource {
  std::vector<std::vector<int>> cores;  ///< allowed_cores()
  int usable_cores = 1;                 ///< of these, what the CPU quota pays for
  GpuList gpus;
};
SlotSource slot_source(Device device);

/// The slots of `layout`, items between semicolons: a list of logical CPUs ("0-3,8"), the UUID of a
/// GPU or MIG slice, or one of the words gpu and mig for all that are visible. A UUID may be
/// followed by "@" and its CPUs; the others share the cores near their GPU evenly. Without a layout
/// all GPUs and slices where `device` is not cpu and there are any, else `count` equal shares of
/// the cores (nullopt: a share a core). With a count the first `count` slots. Throws ConfigError:
/// malformed, CPUs outside the mask or in two slots, a UUID twice, fewer slots or cores than asked
/// for, a kind that does not go with `device`; EnvironmentError: a GPU or slice that is not there,
/// or a GPU in MIG mode.
std::vector<Slot> make_slots(const std::optional<std::string>& layout,
                             std::optional<std::int64_t> count, Device device,
                             const SlotSource& source);

/// Fills in the NUMA nodes of this machine.
void find_numa(std::vector<Slot>& slots);

/// "0-3,8" as numbers, in their order; nullopt for anything else. At most 65536 of them.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

}  // namespace scalemark

// Parts of machines that have nothing in common: where jobs run side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "platform/platform.hpp"

namespace scalemark {

// What a rank gets of its job's slot: it finds that out itself, on its own host, so that every
// launcher and every numbering of cores does.

/// A part of a host that ranks of one job run on: CPUs, perhaps with a GPU or MIG slice.
struct SlotPlace {
  enum class Kind { cpu, gpu, mig };
  Kind kind = Kind::cpu;
  std::vector<int> cpus = {};    ///< logical, ascending
  std::vector<int> numa = {};    ///< nodes of these; empty where unknown
  std::string uuid = {};         ///< of the GPU or slice; empty on CPUs
  std::string device_name = {};  ///< the same
  std::string host = {};         ///< as it was given; empty: this one
  bool here = true;              ///< on this machine

  std::string title() const;  ///< "CPUs 0-3", "n1: GPU-1234... with CPUs 0-3"
  std::string text() const;   ///< as --slots takes it: "0-3", "n1:GPU-1234...@0-3"
};

std::string to_string(SlotPlace::Kind kind);  ///< "cpu", "gpu", "mig"

/// "n1:GPU-1234...@0-3": what there is of host, UUID and CPUs, unchecked.
struct PlaceWords {
  std::string host, uuid;
  std::optional<std::string> cpus;
};
PlaceWords place_words(std::string_view text);

/// "0-3,8" as numbers, in their order; nullopt for anything else. At most 65536 of them.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

/// `parts` (cores, or CPUs where there are fewer cores) shared out evenly in their order, the
/// remainder idle; empty where there are fewer CPUs than shares.
std::vector<std::vector<int>> equal_shares(std::vector<std::vector<int>> parts, std::size_t count);

/// Whether both name one host, with or without their domain.
bool is_same_host(std::string_view a, std::string_view b);
/// By a name that launchers take.
bool is_this_host(const std::string& name);

/// Tells ranks their slot: slot_words().
inline constexpr const char* kSlotVariable = "SMK_INTERNAL_SLOT";
std::string slot_words(const std::vector<SlotPlace>& places, std::size_t ranks_per_place);

/// A rank's part of its slot.
struct SlotShare {
  std::vector<int> cpus;
  std::string devices;         ///< for CUDA_VISIBLE_DEVICES; empty: none
  bool on_named_host = false;  ///< the slot names hosts
};

/// Of the rank `local_rank` on `host`, from slot_words(). Ranks of one place share its cores out
/// evenly, or all have all of its CPUs where there are fewer of these than ranks. A GPU rank sees
/// the GPUs of its job on this host, and takes the one of its number; one of a MIG slice sees this
/// alone. EnvironmentError where there is no such place.
SlotShare share_of_slot(const std::string& words, const std::string& host, int local_rank);

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

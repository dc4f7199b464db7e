// Divides machines into parts without shared resources, in which jobs run side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/names.hpp"
#include "config/run_config.hpp"
#include "platform/platform.hpp"

namespace scalemark {

// Determines which part of its job's slot a rank gets. Each rank does so on its own host, which
// works with every launcher and every numbering of cores.

/// A part of a host on which ranks of one job run: CPUs, perhaps with a GPU or MIG slice.
struct SlotPlace {
  enum class Kind { cpu, gpu, mig };
  Kind kind = Kind::cpu;
  std::vector<int> cpus = {};    ///< logical, ascending
  std::vector<int> numa = {};    ///< nodes of these; empty where unknown
  std::string uuid = {};         ///< UUID of the GPU or slice; empty on CPUs
  std::string device_name = {};  ///< name of the GPU or slice; empty on CPUs
  std::string host = {};         ///< host name as given; empty: this host
  bool here = true;              ///< on this machine

  std::string title() const;  ///< "CPUs 0-3", "n1: GPU-1234... with CPUs 0-3"
  std::string text() const;   ///< text in the form of --slots: "0-3", "n1:GPU-1234...@0-3"
};

constexpr auto names_of(SlotPlace::Kind) { return Names{"cpu", "gpu", "mig"}; }

/// The parts of "n1:GPU-1234...@0-3" that are present: host, UUID and CPUs, unchecked.
struct PlaceWords {
  std::string host, uuid;
  std::optional<std::string> cpus;
};
PlaceWords place_words(std::string_view text);

/// Parses "0-3,8" into numbers in their order. Returns nullopt for any other text and for more than
/// 65536 numbers.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

/// Divides `parts` (cores, or CPUs where there are fewer cores) evenly in their order; a remainder
/// stays unused. Returns an empty list where there are fewer CPUs than shares.
std::vector<std::vector<int>> equal_shares(std::vector<std::vector<int>> parts, std::size_t count);

/// Returns whether both names mean one host, with or without its domain.
bool is_same_host(std::string_view a, std::string_view b);
/// Returns whether `name` means this host. Launchers accept several names for a host.
bool is_this_host(const std::string& name);

/// This variable tells ranks their slot; its value is slot_words().
inline constexpr const char* kSlotVariable = "SMK_INTERNAL_SLOT";
std::string slot_words(const std::vector<SlotPlace>& places, std::size_t ranks_per_place);

/// A rank's part of its slot.
struct SlotShare {
  std::vector<int> cpus;
  std::string devices;         ///< value for CUDA_VISIBLE_DEVICES; empty: none
  bool on_named_host = false;  ///< the slot names hosts
};

/// Returns the part of rank `local_rank` on `host`, read from slot_words(). Ranks of one place
/// divide its cores evenly, or share all of its CPUs where there are fewer of these than ranks. A
/// rank on a GPU sees the GPUs of its job on this host and takes the one with its number. A rank on
/// a MIG slice sees only that slice. Throws EnvironmentError where there is no such place.
SlotShare share_of_slot(const std::string& words, const std::string& host, int local_rank);

/// The places of one job. Each place has the same number of its ranks.
struct Slot {
  std::vector<SlotPlace> places;

  bool is_here() const;  ///< on this machine alone
  /// Returns whether one of the places has fewer CPUs than ranks, which then share them.
  bool is_crowded(std::int64_t ranks) const;
  std::vector<std::string> hosts() const;  ///< each once, "" for this one, in their order
  /// Returns a title such as "CPUs 0-3", "GPU-1234... with CPUs 0-3" or "n0: CPUs 0-3 and n1: CPUs
  /// 0-3".
  std::string title() const;
};

/// The resources that slots are made from.
struct SlotSource {
  std::vector<std::vector<int>> cores;  ///< allowed_cores()
  int usable_cores = 1;                 ///< number of cores that the CPU quota allows
  GpuList gpus;
};
SlotSource slot_source(Device device);

/// The request for slots.
struct SlotRequest {
  /// The layout has items separated by semicolons. An item is a list of logical CPUs ("0-3,8"), the
  /// UUID of a GPU or MIG slice, or one of the words gpu and mig for all visible ones, of which
  /// each slot gets as many as a job has ranks. A UUID may be followed by "@" and its CPUs; the
  /// other devices get even shares of the cores near them. Places of one slot are joined by "+",
  /// and one on another host begins with its name and ":".
  std::optional<std::string> layout = {};
  std::optional<std::int64_t> count = {};  ///< number of slots; the first ones are used
  Device device = Device::automatic;
  std::int64_t ranks = 1;  ///< ranks of a job
};

/// Makes the slots. Without a layout these are all GPUs and slices if the device is not cpu and
/// there are any, else equal shares of the cores (without a count: one core for each rank). Throws
/// ConfigError for a malformed layout, CPUs outside the mask or in two slots, a UUID that occurs
/// twice, fewer slots or cores than requested, a kind that contradicts the device, and ranks that
/// do not fit. Throws EnvironmentError for a GPU or slice that does not exist and for a GPU in MIG
/// mode. The resources of other hosts are not checked here.
std::vector<Slot> make_slots(const SlotRequest& request, const SlotSource& source);

/// Sets the NUMA nodes of the places on this machine.
void find_numa(std::vector<Slot>& slots);

}  // namespace scalemark

// State of a GPU that decides its speed: clocks and what holds them down, memory, ECC and XID
// errors, NVLink (through NVML), and the ways to its memory. LibTorch- and CUDA-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "platform/periodic.hpp"
#include "platform/platform.hpp"

namespace scalemark {

/// One look at a GPU. `reasons`: NVML's bits of what holds the clocks down.
struct GpuSample {
  std::optional<int> sm_mhz, memory_mhz;
  std::optional<std::uint64_t> reasons;
};

/// What many looks say of the time in which the GPU worked.
struct GpuLoad {
  std::optional<int> sm_mhz, memory_mhz;  ///< medians
  /// What held the clocks down for a fault, of the power supply or of cooling: "hw_slowdown",
  /// "sw_thermal", "hw_thermal", "hw_power_brake"; nullopt: not told.
  std::optional<std::vector<std::string>> slowdowns;
  std::optional<bool> power_capped;  ///< at its own power limit, which is usual under full load
};
/// Looks in which the GPU was idle do not count.
GpuLoad summarise(const std::vector<GpuSample>& samples);

/// ECC errors of all of a GPU's memories since its driver was loaded.
struct EccErrors {
  std::uint64_t corrected = 0, uncorrected = 0;
};

struct GpuHealth {
  std::string reason;  ///< why nothing is known; empty where NVML answered
  std::optional<std::int64_t> memory_free_bytes, memory_bytes;  ///< at the begin
  std::optional<int> sm_max_mhz, memory_max_mhz;
  GpuLoad load;
  std::optional<bool> ecc_enabled;
  std::optional<EccErrors> ecc_before, ecc_after;
  std::optional<std::vector<int>> xids;      ///< that NVML reported since the watch began
  std::optional<std::vector<int>> xids_log;  ///< in the kernel's log, of this GPU, since its begin
  std::optional<int> nvlinks_active, nvlinks_inactive;  ///< nullopt: it has none, or does not tell
};

/// Counts a GPU's errors from its construction on, and looks at its clocks every 20 ms while it
/// works. Of a MIG slice: clocks and errors of its GPU, its own memory.
class GpuWatch {
 public:
  explicit GpuWatch(const std::string& uuid);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  void begin_load();
  void end_load();
  GpuHealth health() const;  ///< up to now

 private:
  struct Device;

  std::unique_ptr<Device> device_;
  GpuHealth health_;
  std::vector<GpuSample> samples_;
  std::optional<Periodic> thread_;  ///< under load
};

/// (PCI bus id, XID) of every "NVRM: Xid (PCI:0000:3b:00): 79, ..." in a kernel log; the bus id
/// without its function, lower case.
std::vector<std::pair<std::string, int>> parse_xids(std::string_view log);
/// The kernel's log as far as its buffer goes back; nullopt where this process may not read it.
std::optional<std::string> kernel_log();

/// Whether a module with which network adapters reach GPU memory is loaded (nvidia_peermem, or
/// nv_peer_mem before it).
bool has_peermem(const std::filesystem::path& root = "/");

/// NUMA node of a PCI device; nullopt where the firmware does not tell.
std::optional<int> numa_node_of_pci(const std::string& pci_bus_id,
                                    const std::filesystem::path& root = "/");

/// What CUDA says of a GPU's ways to memory.
struct GpuTraits {
  std::optional<bool> dmabuf;  ///< its memory can be given to other drivers as a DMA buffer
  std::optional<bool> ats;     ///< it uses the host's page tables (address translation services)
};

/// Copies between pinned memory of a NUMA node and a GPU.
struct GpuCopy {
  int numa = 0;
  double to_device = 0, from_device = 0;  ///< bytes/s
};

/// Copies from one visible GPU to another.
struct PeerLink {
  int from = 0, to = 0;
  bool can_access = false;      ///< one reaches the other's memory without the host
  double bytes_per_second = 0;  ///< through the host where it cannot
};

// Why a machine with NVIDIA GPUs computes on its CPU.

/// What keeps this process from the GPUs that are on the PCI bus below `root` or that the driver
/// shows, with the remedy; empty where there is none, or CUDA_VISIBLE_DEVICES hides all of them on
/// purpose (empty, or -1). `list`: what NVML says; `cuda`: why CUDA offers none.
std::string why_gpus_are_unused(const GpuList& list,
                                const std::optional<std::string>& cuda_visible_devices,
                                const std::string& cuda, const std::filesystem::path& root = "/");

}  // namespace scalemark

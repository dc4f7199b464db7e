// Describes the state of a GPU that determines its speed: clocks and their limits, memory, ECC and
// XID errors, NVLink (through NVML), and the paths to its memory. LibTorch- and CUDA-free.
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

/// One sample of a GPU. `reasons` holds NVML's bits of what limits the clocks.
struct GpuSample {
  std::optional<int> sm_mhz, memory_mhz;
  std::optional<std::uint64_t> reasons;
};

/// Summarises the samples of the time in which the GPU worked.
struct GpuLoad {
  std::optional<int> sm_mhz, memory_mhz;  ///< medians
  /// The reasons that reduced the clocks because of a fault of the power supply or of cooling:
  /// "hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake". nullopt where they are not
  /// reported.
  std::optional<std::vector<std::string>> slowdowns;
  std::optional<bool> power_capped;  ///< at its own power limit, which is usual under full load
};
/// Summarises samples. Those in which the GPU was idle do not count.
GpuLoad summarise(const std::vector<GpuSample>& samples);

/// ECC errors of all memories of a GPU since its driver was loaded.
struct EccErrors {
  std::uint64_t corrected = 0, uncorrected = 0;
};

/// The state of a GPU as NVML and the kernel report it.
struct GpuHealth {
  std::string reason;  ///< why nothing is known; empty where NVML answered
  std::optional<std::int64_t> memory_free_bytes, memory_bytes;  ///< at the begin
  std::optional<int> sm_max_mhz, memory_max_mhz;
  GpuLoad load;
  std::optional<bool> ecc_enabled;
  std::optional<EccErrors> ecc_before, ecc_after;
  std::optional<std::vector<int>> xids;  ///< reported by NVML since the watch began
  std::optional<std::vector<int>>
      xids_log;  ///< for this GPU in the kernel log since the watch began
  std::optional<int> nvlinks_active, nvlinks_inactive;  ///< nullopt: it has none, or does not tell
};

/// Counts the errors of a GPU from construction on, and samples its clocks every 20 ms while it
/// works. For a MIG slice, clocks and errors are those of its GPU, and memory is its own.
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

/// Returns (PCI bus id, XID) of every "NVRM: Xid (PCI:0000:3b:00): 79, ..." in a kernel log. The
/// bus id has no function and is in lower case.
std::vector<std::pair<std::string, int>> parse_xids(std::string_view log);
/// Returns the kernel log as far as its buffer goes back, or nullopt where this process may not
/// read it.
std::optional<std::string> kernel_log();

/// Returns whether a kernel module is loaded that gives network adapters access to GPU memory
/// (nvidia_peermem, or nv_peer_mem before it).
bool has_peermem(const std::filesystem::path& root = "/");

/// Returns the NUMA node of a PCI device, or nullopt where the firmware does not state it.
std::optional<int> numa_node_of_pci(const std::string& pci_bus_id,
                                    const std::filesystem::path& root = "/");

/// Properties of a GPU's paths to memory that CUDA reports.
struct GpuTraits {
  std::optional<bool> dmabuf;  ///< its memory can be shared with other drivers as a DMA buffer
  std::optional<bool> ats;     ///< it uses the host's page tables (address translation services)
};

/// Rates of copies between pinned memory of a NUMA node and a GPU.
struct GpuCopy {
  int numa = 0;
  double to_device = 0, from_device = 0;  ///< bytes/s
};

/// Rate of copies from one visible GPU to another.
struct PeerLink {
  int from = 0, to = 0;
  bool can_access = false;      ///< one reaches the other's memory without the host
  double bytes_per_second = 0;  ///< through the host where it cannot
};

// Explains why a machine with NVIDIA GPUs computes on its CPU.

/// Returns what keeps this process from the GPUs that are on the PCI bus below `root` or that the
/// driver shows, with the remedy. Returns an empty text where there is none, or where
/// CUDA_VISIBLE_DEVICES hides all of them on purpose (empty, or -1). `list` is the result of NVML;
/// `cuda` is why CUDA offers none.
std::string why_gpus_are_unused(const GpuList& list,
                                const std::optional<std::string>& cuda_visible_devices,
                                const std::string& cuda, const std::filesystem::path& root = "/");

}  // namespace scalemark

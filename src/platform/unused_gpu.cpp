// See unused_gpu.hpp.
#include "platform/unused_gpu.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "platform/sources.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// NVIDIA's among the display controllers (class 0x03....).
int gpus_on_the_bus(const fs::path& root) {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator it(root / "sys/bus/pci/devices", error), end; !error && it != end;
       it.increment(error))
    if (read_text(it->path() / "vendor") == "0x10de" &&
        read_text(it->path() / "class").value_or("").starts_with("0x03"))
      ++count;
  return count;
}

/// A device file that is there and that this user may not open; empty: none.
std::string forbidden_device(const fs::path& root) {
  for (const char* name : {"dev/nvidiactl", "dev/nvidia0", "dev/nvidia-uvm"})
    if (fs::exists(root / name) && access((root / name).c_str(), R_OK | W_OK) != 0)
      return (root / name).string();
  return "";
}

std::string reason_of(const GpuList& list, const std::optional<std::string>& visible,
                      const std::string& cuda, const fs::path& root) {
  if (const std::string file = forbidden_device(root); !file.empty())
    return fmt::format("no permission for {}: join the group that owns it (ls -l {})", file, file);
  if (!fs::exists(root / "dev/nvidiactl"))
    return "the driver's device files are not there: load the driver (nvidia-smi), or give the "
           "container or the job its GPUs (docker run --gpus all, apptainer --nv, Slurm "
           "--gres=gpu)";
  if (list.of_machine.empty())
    return list.reason + ": load the driver (nvidia-smi), or ask Slurm for GPUs (--gres=gpu)";
  if (list.gpus.empty() && std::ranges::count(list.of_machine, list.reason, &GpuInfo::reason) > 0)
    return list.reason + ": ask its administrator; the kernel's log (dmesg) says more";
  if (visible && list.gpus.empty()) return list.reason + ": correct it or unset it";
  const auto without_slice = [](const GpuInfo& gpu) { return gpu.mig && gpu.slices.empty(); };
  if (std::ranges::all_of(list.gpus, without_slice))
    return "MIG mode is on without a slice: make one (nvidia-smi mig -cgi 0 -C), or switch MIG off";
  return cuda;
}

}  // namespace

std::string why_gpus_are_unused(const GpuList& list, const std::optional<std::string>& visible,
                                const std::string& cuda, const fs::path& root) {
  const int count = std::max(gpus_on_the_bus(root), static_cast<int>(list.of_machine.size()));
  const bool hidden = visible && (visible->empty() || *visible == "-1");
  if (count == 0 || hidden) return "";
  return fmt::format("{} NVIDIA GPU{} of this machine {} not used: {}", count,
                     count == 1 ? "" : "s", count == 1 ? "is" : "are",
                     reason_of(list, visible, cuda, root));
}

}  // namespace scalemark

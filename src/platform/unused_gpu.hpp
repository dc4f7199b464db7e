// Why a machine with NVIDIA GPUs computes on its CPU.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "platform/platform.hpp"

namespace scalemark {

/// What keeps this process from the GPUs that are on the PCI bus below `root` or that the driver
/// shows, with the remedy; empty where there is none, or CUDA_VISIBLE_DEVICES hides all of them on
/// purpose (empty, or -1). `list`: what NVML says; `cuda`: why CUDA offers none.
std::string why_gpus_are_unused(const GpuList& list,
                                const std::optional<std::string>& cuda_visible_devices,
                                const std::string& cuda, const std::filesystem::path& root = "/");

}  // namespace scalemark

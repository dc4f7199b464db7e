// The functions of NVML that scalemark calls, as a table: tests fill it with machines that are not
// there. Prototypes: NVML API reference, versions that every driver since CUDA 11 exports.
#pragma once

#include <optional>
#include <string>

#include "platform/platform.hpp"

namespace scalemark {

namespace nvml {

using Device = struct nvmlDevice_st*;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

struct MemoryInfo {
  unsigned long long total, free, used;
};

/// Each returns 0 for success.
struct Api {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*pci)(Device, PciInfo*) = nullptr;
  int (*memory)(Device, MemoryInfo*) = nullptr;
  int (*handle_of_uuid)(const char*, Device*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;
  // MIG; null in drivers that know none.
  int (*mig_mode)(Device, unsigned* current, unsigned* pending) = nullptr;
  int (*most_slices)(Device, unsigned*) = nullptr;
  int (*slice)(Device, unsigned index, Device*) = nullptr;

  bool knows_mig() const {
    return mig_mode != nullptr && most_slices != nullptr && slice != nullptr;
  }
};

}  // namespace nvml

/// The GPUs that a started NVML shows, their MIG slices included, cut down by CUDA_VISIBLE_DEVICES
/// (nullopt: not set); empty with a reason where there is none.
GpuList list_gpus(const nvml::Api& nvml, const std::optional<std::string>& cuda_visible_devices);

}  // namespace scalemark

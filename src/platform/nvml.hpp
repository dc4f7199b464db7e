// Declares NVML, which comes with the driver and is therefore loaded at run time. It is internal to
// platform/. Prototypes, structures and numbers are those of the NVML API reference.
#pragma once

#include <optional>
#include <string>

#include "platform/gpu_health.hpp"
#include "platform/platform.hpp"

namespace scalemark {

inline constexpr int kNvmlSm = 1, kNvmlMemory = 2;              // nvmlClockType_t
inline constexpr int kNvmlCorrected = 0, kNvmlUncorrected = 1;  // nvmlMemoryErrorType_t
inline constexpr int kNvmlVolatile = 0;                         // nvmlEccCounterType_t
inline constexpr int kNvmlGpuSensor = 0;                        // nvmlTemperatureSensors_t
inline constexpr int kNvmlTimeout = 10;                         // nvmlReturn_t

using NvmlDevice = struct nvmlDevice_st*;
using NvmlEventSet = struct nvmlEventSet_st*;
struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlEvent {
  NvmlDevice device;
  unsigned long long type, data;  ///< data: of an XID event the number of the XID
  unsigned gpu_instance, compute_instance;
};

/// The functions that scalemark calls, as a table, which tests fill to imitate other machines. The
/// functions return 0 for success.
struct NvmlApi {
  // Every driver since CUDA 11 exports these functions.
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, NvmlDevice*) = nullptr;
  int (*handle_of_uuid)(const char*, NvmlDevice*) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  int (*pci)(NvmlDevice, NvmlPciInfo*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*energy)(NvmlDevice, unsigned long long*) = nullptr;

  // These functions are null where the driver lacks them.
  int (*mig_mode)(NvmlDevice, unsigned* current, unsigned* pending) = nullptr;
  int (*most_slices)(NvmlDevice, unsigned*) = nullptr;
  int (*slice)(NvmlDevice, unsigned index, NvmlDevice*) = nullptr;
  int (*gpu_of_slice)(NvmlDevice, NvmlDevice*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;      ///< present clock of a type, MHz
  int (*max_clock)(NvmlDevice, int, unsigned*) = nullptr;  ///< largest clock of a type, MHz
  int (*temperature)(NvmlDevice, int,
                     unsigned*) = nullptr;        ///< temperature of a sensor, degrees Celsius
  int (*power)(NvmlDevice, unsigned*) = nullptr;  ///< milliwatts
  int (*clock_reasons)(NvmlDevice, unsigned long long*) = nullptr;
  int (*ecc_mode)(NvmlDevice, int*, int*) = nullptr;  ///< now, after a reboot
  int (*ecc_errors)(NvmlDevice, int, int, unsigned long long*) = nullptr;
  int (*nvlink_state)(NvmlDevice, unsigned, int*) = nullptr;
  int (*event_set)(NvmlEventSet*) = nullptr;
  int (*register_events)(NvmlDevice, unsigned long long, NvmlEventSet) = nullptr;
  int (*wait_event)(NvmlEventSet, NvmlEvent*, unsigned) = nullptr;  ///< milliseconds
  int (*free_event_set)(NvmlEventSet) = nullptr;

  bool knows_mig() const {
    return mig_mode != nullptr && most_slices != nullptr && slice != nullptr;
  }
};

/// NVML, loaded and started; or not, with the reason.
struct Nvml : NvmlApi {
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string reason;  ///< why it can't be used; empty: it can

 private:
  bool find_all();
  void find_optional();

  void* library_ = nullptr;
  bool started_ = false;
};

/// The device that a UUID names: a GPU, or a MIG slice and the GPU that contains it.
struct NvmlPlace {
  NvmlDevice device = nullptr;  ///< itself: its memory
  NvmlDevice gpu = nullptr;     ///< whose clocks, temperature and errors are the slice's too
};
/// Fills `place` with the device of `uuid`. Returns why a started NVML does not find it, or an
/// empty text where it does.
std::string find_place(const NvmlApi& nvml, const std::string& uuid, NvmlPlace& place);

/// Reads the ECC errors from a started NVML. Returns nullopt without ECC, or where NVML reports
/// only a part of the counts, which would be mistaken for the whole.
std::optional<EccErrors> read_ecc_errors(const NvmlApi& nvml, NvmlDevice gpu);

/// Returns the GPUs that a started NVML shows, with their MIG slices, restricted by
/// CUDA_VISIBLE_DEVICES (nullopt: not set). The list is empty with a reason where there are none.
GpuList list_gpus(const NvmlApi& nvml, const std::optional<std::string>& cuda_visible_devices);

/// Converts a bus id of NVML to the form of the kernel and hwloc: four digits of domain, lower
/// case.
std::string kernel_bus_id(const std::string& id);

}  // namespace scalemark

// Loads NVML at run time and reads GPUs, slices and errors through it.
#include "platform/nvml.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>

namespace scalemark {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";

template <typename F>
bool find(void* library, F& function, const char* symbol) {
  function = reinterpret_cast<F>(dlsym(library, symbol));
  return function != nullptr;
}

/// Returns why NVML is not loaded. A library that exists but cannot be loaded does not mean that
/// there is no driver.
std::string why_not_loaded() {
  const char* words = dlerror();
  const std::string said = words == nullptr ? "" : words;
  if (said.starts_with(kLibrary) && said.ends_with("No such file or directory"))
    return std::string("no NVIDIA driver: ") + kLibrary + " is not there";
  return "the NVIDIA driver's library does not load: " + said;
}

}  // namespace

Nvml::Nvml() : library_(dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) {
    reason = why_not_loaded();
  } else if (!find_all()) {
    reason = "the NVIDIA driver is too old: its libnvidia-ml.so.1 lacks functions of CUDA 11";
  } else if (const int error = init(); error != 0) {
    reason = std::string("NVML does not start: ") + error_string(error);
  } else {
    started_ = true;
    find_optional();
  }
}

Nvml::~Nvml() {
  if (started_) shutdown();
  if (library_ != nullptr) dlclose(library_);
}

bool Nvml::find_all() {
  return find(library_, init, "nvmlInit_v2") && find(library_, shutdown, "nvmlShutdown") &&
         find(library_, error_string, "nvmlErrorString") &&
         find(library_, driver_version, "nvmlSystemGetDriverVersion") &&
         find(library_, count, "nvmlDeviceGetCount_v2") &&
         find(library_, handle, "nvmlDeviceGetHandleByIndex_v2") &&
         find(library_, handle_of_uuid, "nvmlDeviceGetHandleByUUID") &&
         find(library_, name, "nvmlDeviceGetName") && find(library_, uuid, "nvmlDeviceGetUUID") &&
         find(library_, pci, "nvmlDeviceGetPciInfo_v3") &&
         find(library_, memory, "nvmlDeviceGetMemoryInfo") &&
         find(library_, energy, "nvmlDeviceGetTotalEnergyConsumption");
}

void Nvml::find_optional() {
  find(library_, mig_mode, "nvmlDeviceGetMigMode");
  find(library_, most_slices, "nvmlDeviceGetMaxMigDeviceCount");
  find(library_, slice, "nvmlDeviceGetMigDeviceHandleByIndex");
  find(library_, gpu_of_slice, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
  find(library_, clock, "nvmlDeviceGetClockInfo");
  find(library_, max_clock, "nvmlDeviceGetMaxClockInfo");
  find(library_, temperature, "nvmlDeviceGetTemperature");
  find(library_, power, "nvmlDeviceGetPowerUsage");
  if (!find(library_, clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons"))
    find(library_, clock_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");  // the older name
  find(library_, ecc_mode, "nvmlDeviceGetEccMode");
  find(library_, ecc_errors, "nvmlDeviceGetTotalEccErrors");
  find(library_, nvlink_state, "nvmlDeviceGetNvLinkState");
  find(library_, event_set, "nvmlEventSetCreate");
  find(library_, register_events, "nvmlDeviceRegisterEvents");
  find(library_, wait_event, "nvmlEventSetWait_v2");
  find(library_, free_event_set, "nvmlEventSetFree");
}

std::optional<EccErrors> read_ecc_errors(const NvmlApi& nvml, NvmlDevice gpu) {
  unsigned long long corrected = 0, uncorrected = 0;
  if (nvml.ecc_errors == nullptr ||
      nvml.ecc_errors(gpu, kNvmlCorrected, kNvmlVolatile, &corrected) != 0 ||
      nvml.ecc_errors(gpu, kNvmlUncorrected, kNvmlVolatile, &uncorrected) != 0)
    return std::nullopt;
  return EccErrors{corrected, uncorrected};
}

std::string find_place(const NvmlApi& nvml, const std::string& uuid, NvmlPlace& place) {
  const auto failed = [&](int error) {
    return "NVML does not find " + uuid + ": " + nvml.error_string(error);
  };
  if (const int error = nvml.handle_of_uuid(uuid.c_str(), &place.device); error != 0)
    return failed(error);
  place.gpu = place.device;
  if (!is_slice(uuid) || nvml.gpu_of_slice == nullptr) return "";
  const int error = nvml.gpu_of_slice(place.device, &place.gpu);
  return error == 0 ? "" : failed(error);
}

std::string kernel_bus_id(const std::string& id) {
  std::string kernel = id.size() == 16 && id.starts_with("0000") ? id.substr(4) : id;
  std::ranges::transform(kernel, kernel.begin(), [](unsigned char c) { return std::tolower(c); });
  return kernel;
}

}  // namespace scalemark

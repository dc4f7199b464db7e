// What differs between CPU and CUDA in the training loop, behind one interface chosen in one factory.
// Defined in train/no_cuda/ (CPU only) and train/cuda/ (both); the link picks one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "comm/communicator.hpp"

namespace scalemark {

/// Step times without a synchronisation in the loop: marks are resolved after it.
class StepClock {
 public:
  virtual ~StepClock() = default;
  virtual void mark() = 0;                          ///< the boundary between two steps
  virtual std::vector<double> seconds() = 0;        ///< between consecutive marks
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual at::Device device() const = 0;
  virtual std::string name() const = 0;             ///< "cpu", or the GPU's name
  virtual std::string uuid() const = 0;             ///< empty on the CPU
  virtual Stream stream() const = 0;                ///< current stream
  virtual void synchronize() = 0;
  virtual std::unique_ptr<StepClock> make_step_clock() = 0;
  virtual std::optional<std::int64_t> peak_memory_bytes() const = 0;
  virtual void reset_peak_memory() = 0;
  /// "fp32", "bf16" natively executed.
  virtual bool native(Precision precision) const = 0;
};

/// `local_rank` picks the GPU among the visible ones. automatic: cuda where there is a usable GPU, else cpu.
/// Throws EnvironmentError for --device cuda without a usable GPU (with both driver and runtime versions).
std::unique_ptr<DeviceBackend> make_device_backend(Device device, int local_rank);

}  // namespace scalemark

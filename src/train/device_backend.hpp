// What differs between CPU and CUDA in the training loop, behind one interface chosen in one
// factory. Defined in train/no_cuda/ (CPU only) and train/cuda/ (both); the link picks one.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "measure/samples.hpp"
#include "train/batch_copier.hpp"

namespace scalemark {

/// Step times without a synchronisation in the loop.
class StepClock {
 public:
  virtual ~StepClock() = default;
  virtual void mark() = 0;  ///< the boundary between two steps
  /// What lies between the marks before and after is no step. Only after
  /// DeviceBackend::synchronize().
  virtual void pause() = 0;
  /// Between consecutive marks: those known without waiting; all of them after
  /// DeviceBackend::synchronize().
  virtual const std::vector<double>& seconds() = 0;
};

/// Where the time of steps goes, without a synchronisation: two clock readings a phase, or, on
/// CUDA, two events in the stream (a phase then holds what the stream waited for too), and an NVTX
/// range.
class PhaseClock {
 public:
  virtual ~PhaseClock() = default;
  /// The phase so far, if any, ends, and this one begins.
  virtual void enter(StepPhase phase) = 0;
  /// The phase so far ends, and none begins. Waits for the device.
  virtual void pause() = 0;
  /// Of the phases that ended; all of them after pause().
  virtual const PhaseSeconds& seconds() const = 0;
};

/// Reads one number a step from the device without stalling it: on the CPU at once, on CUDA a step
/// late.
class ScalarReader {
 public:
  virtual ~ScalarReader() = default;
  /// Takes this step's scalar; returns the latest that has not been returned yet, if it has
  /// arrived.
  virtual std::optional<double> exchange(const at::Tensor& scalar) = 0;
  /// The one still on its way, if any; waits for it.
  virtual std::optional<double> finish() = 0;
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual at::Device device() const = 0;
  virtual std::string name() const = 0;  ///< "cpu", or the GPU's name
  virtual std::string uuid() const = 0;  ///< empty on the CPU
  virtual Stream stream() const = 0;     ///< current stream
  virtual void synchronize() = 0;
  /// Whether the host only queues work, so that its clock tells nothing of the device's steps.
  virtual bool works_behind_host() const { return false; }
  virtual std::unique_ptr<StepClock> make_step_clock() = 0;
  virtual std::unique_ptr<PhaseClock> make_phase_clock() = 0;
  virtual std::unique_ptr<ScalarReader> make_scalar_reader() = 0;
  virtual std::optional<std::int64_t> peak_memory_bytes() const = 0;
  virtual void reset_peak_memory() = 0;
  /// Gives memory that nobody uses back to the device, and to the host.
  virtual void release_free_memory() = 0;
  /// Bytes of the device's memory that this rank may take more than it has; the host's is shared
  /// fairly by `ranks_on_host` ranks that ask at the same time. nullopt where that is unknown.
  virtual std::optional<std::int64_t> memory_left(int ranks_on_host) const = 0;
  /// Host memory that the device can copy from while it computes.
  virtual at::Tensor pinned(const at::Tensor& host) const = 0;
  virtual std::unique_ptr<BatchCopier> make_batch_copier() = 0;
  /// Whether a library that has several kernels for an operator tries all of them out where it
  /// meets a shape (cuDNN's benchmark), which is as it starts, or takes its first guess.
  virtual void try_kernels(bool /*all*/) {}
  /// Whether the device has instructions for arithmetic in this precision.
  virtual bool native(Precision precision) const = 0;
  /// Makes fp32 products exact or rounded to tf32. Throws EnvironmentError naming the remedy for a
  /// precision that the device does not offer.
  virtual void set_precision(Precision precision) = 0;
};

/// `local_rank` picks the GPU among the visible ones; one that is alone is the task's own.
/// automatic: cuda where there is a usable GPU, else cpu. Throws EnvironmentError where there are
/// fewer GPUs than ranks, and for --device cuda without a usable one (with both driver and runtime
/// versions).
std::unique_ptr<DeviceBackend> make_device_backend(Device device, int local_rank);

/// Why CUDA offers no GPU, with the remedy; empty where it does.
std::string why_no_cuda();

}  // namespace scalemark

// Provides one interface for the differences between CPU and CUDA in the training loop, chosen in
// one factory. It is defined in train/no_cuda/ (CPU only) and train/cuda/ (both); the link selects
// one.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "measure/samples.hpp"
#include "models/operator_set.hpp"

namespace scalemark {

/// A pair of tensors of equal shape, strides and type, which use all of their memory.
struct TensorCopy {
  at::Tensor from;  ///< in (pinned) host memory
  at::Tensor to;    ///< on the device
};

/// Seconds, summed over copies.
struct CopyTimes {
  double copy_seconds = 0;  ///< from the start of a copy to its end
  double wait_seconds = 0;  ///< time in which the device only waited for a copy
};

/// Copies batches to the device while it computes, one copy at a time, with a helper thread on the
/// CPU and a second stream on CUDA.
class BatchCopier {
 public:
  virtual ~BatchCopier() = default;
  /// Starts a copy after all work that the device was given so far, without waiting. Only one copy
  /// runs at a time: call wait() before the next.
  virtual void start(std::vector<TensorCopy> tensors) = 0;
  /// Orders all work that the device is given from now on after the copy.
  virtual void wait() = 0;
  /// Returns the times of the copies waited for since restart(). Waits for the device.
  virtual CopyTimes times() = 0;
  virtual void restart() = 0;
};

/// Makes a copier with a separate thread and memcpy, which is as fast as one core.
std::unique_ptr<BatchCopier> make_cpu_batch_copier();

/// Measures step times without a synchronisation in the loop.
class StepClock {
 public:
  virtual ~StepClock() = default;
  virtual void mark() = 0;  ///< the boundary between two steps
  /// Excludes the time between the marks before and after from the steps. Call it only after
  /// DeviceBackend::synchronize().
  virtual void pause() = 0;
  /// Returns the seconds between consecutive marks: those known without waiting, and all of them
  /// after DeviceBackend::synchronize().
  virtual const std::vector<double>& seconds() = 0;
};

/// Measures the phases of steps without a synchronisation: two clock readings for each phase or, on
/// CUDA, two events in the stream (a phase then includes what the stream waited for), and an NVTX
/// range.
class PhaseClock {
 public:
  virtual ~PhaseClock() = default;
  /// Ends the current phase, if any, and begins this one.
  virtual void enter(StepPhase phase) = 0;
  /// Ends the current phase and begins none. Waits for the device.
  virtual void pause() = 0;
  /// Returns the seconds of the phases that have ended; after pause(), of all of them.
  virtual const PhaseSeconds& seconds() const = 0;
};

/// Reads one number in each step from the device without stalling it: at once on the CPU, one step
/// late on CUDA.
class ScalarReader {
 public:
  virtual ~ScalarReader() = default;
  /// Takes the scalar of this step. Returns the latest that has not been returned yet, if it has
  /// arrived.
  virtual std::optional<double> exchange(const at::Tensor& scalar) = 0;
  /// Returns the scalar that is still outstanding, if any. Waits for it.
  virtual std::optional<double> finish() = 0;
};

/// Work that is recorded once, and then given to the device as a whole, again and again: a CUDA
/// graph each. Whatever a recording computes is at the same place after every repetition.
class WorkRecorder {
 public:
  virtual ~WorkRecorder() = default;
  /// Adds a recording of what `work` gives the device, which does nothing of it yet. Nothing in it
  /// may wait for the device. Throws what `work` throws, and c10::Error.
  virtual void record(const std::function<void()>& work) = 0;
  /// Gives the device the work of a recording; they are counted from 0. They share memory: what one
  /// has computed for later is lost, but for tensors that are still held.
  virtual void repeat(std::size_t recording) = 0;
};

/// A device on which a rank computes.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual at::Device device() const = 0;
  virtual std::string name() const = 0;  ///< "cpu", or the GPU's name
  virtual std::string uuid() const = 0;  ///< empty on the CPU
  virtual Stream stream() const = 0;     ///< current stream
  virtual void synchronize() = 0;
  /// Returns whether the host only queues work, so that its clock does not show the times of steps
  /// on the device.
  virtual bool works_behind_host() const { return false; }
  virtual std::unique_ptr<StepClock> make_step_clock() = 0;
  virtual std::unique_ptr<PhaseClock> make_phase_clock() = 0;
  virtual std::unique_ptr<ScalarReader> make_scalar_reader() = 0;
  virtual std::optional<std::int64_t> peak_memory_bytes() const = 0;
  virtual void reset_peak_memory() = 0;
  /// Returns unused memory to the device and to the host.
  virtual void release_free_memory() = 0;
  /// Returns the bytes of the device's memory that this rank may take in addition; the host's
  /// memory is divided evenly among `ranks_on_host` ranks that ask at the same time. Returns
  /// nullopt where that is unknown.
  virtual std::optional<std::int64_t> memory_left(int ranks_on_host) const = 0;
  /// Copies a tensor to host memory from which the device can copy while it computes.
  virtual at::Tensor pinned(const at::Tensor& host) const = 0;
  virtual std::unique_ptr<BatchCopier> make_batch_copier() = 0;
  /// Returns null where the device has no such thing.
  virtual std::unique_ptr<WorkRecorder> make_work_recorder() { return nullptr; }
  /// Sets whether a library that has several kernels for an operator tries all of them where it
  /// meets a new shape (cuDNN's benchmark), which is the initial state, or uses its first guess.
  virtual void try_kernels(bool /*all*/) {}
  /// Returns whether the device has instructions for arithmetic in this precision.
  virtual bool native(Precision precision) const = 0;
  /// Makes fp32 products exact or rounded to tf32. Throws EnvironmentError naming the remedy for a
  /// precision that the device does not offer.
  virtual void set_precision(Precision precision) = 0;
};

/// Makes the backend of a device. `local_rank` selects the GPU among the visible ones; a single
/// visible GPU is the task's own. With Device::automatic this is cuda where there is a usable GPU,
/// else cpu. Throws EnvironmentError where there are fewer GPUs than ranks, and for --device cuda
/// without a usable one (with both driver and runtime versions).
std::unique_ptr<DeviceBackend> make_device_backend(Device device, int local_rank);

/// Returns the operators of --kernels triton for the current GPU, which there must be. Throws
/// EnvironmentError where this build has none for it.
const OperatorSet& gpu_operators();

/// Returns why CUDA offers no GPU, with the remedy, or an empty text where it does.
std::string why_no_cuda();

/// Makes the backend of the CPU, for the factories of the builds with and without CUDA.
std::unique_ptr<DeviceBackend> make_cpu_backend();

}  // namespace scalemark

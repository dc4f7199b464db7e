// Implements the CPU as a device. It executes at once: times are clock readings, and a scalar can
// be read as soon as it is computed. Batches need no copy there, but the mechanism of copying is
// the same as on a GPU.
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "config/names.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "models/int8.hpp"
#include "platform/memory_limit.hpp"
#include "platform/platform.hpp"
#include "streams.hpp"
#include "train/device_backend.hpp"

namespace scalemark {

namespace {

class CpuClock : public StepClock {
 public:
  void mark() override {
    const auto now = Clock::now();
    if (started_) seconds_.push_back(std::chrono::duration<double>(now - last_).count());
    started_ = true;
    last_ = now;
  }
  void pause() override { started_ = false; }
  const std::vector<double>& seconds() override { return seconds_; }

 private:
  bool started_ = false;
  Clock::time_point last_;
  std::vector<double> seconds_;
};

class CpuPhases : public PhaseClock {
 public:
  void enter(StepPhase phase) override {
    const auto now = Clock::now();
    end(now);
    phase_ = phase;
    begin_ = now;
  }
  void pause() override {
    end(Clock::now());
    phase_.reset();
  }
  const PhaseSeconds& seconds() const override { return seconds_; }

 private:
  void end(Clock::time_point now) {
    if (phase_)
      seconds_[static_cast<std::size_t>(*phase_)] +=
          std::chrono::duration<double>(now - begin_).count();
  }
  std::optional<StepPhase> phase_;
  Clock::time_point begin_;
  PhaseSeconds seconds_{};
};

class CpuReader : public ScalarReader {
 public:
  std::optional<double> exchange(const at::Tensor& scalar) override {
    return scalar.item<double>();
  }
  std::optional<double> finish() override { return std::nullopt; }
};

class CpuBackend : public DeviceBackend {
 public:
  at::Device device() const override { return at::kCPU; }
  std::string name() const override { return "cpu"; }
  std::string uuid() const override { return ""; }
  Stream stream() const override { return nullptr; }
  void synchronize() override {}
  std::unique_ptr<StepClock> make_step_clock() override { return std::make_unique<CpuClock>(); }
  std::unique_ptr<PhaseClock> make_phase_clock() override { return std::make_unique<CpuPhases>(); }
  std::unique_ptr<ScalarReader> make_scalar_reader() override {
    return std::make_unique<CpuReader>();
  }
  std::optional<std::int64_t> peak_memory_bytes() const override { return std::nullopt; }
  void reset_peak_memory() override {}
  void release_free_memory() override { scalemark::release_free_memory(); }
  std::optional<std::int64_t> memory_left(int ranks_on_host) const override {
    return scalemark::memory_left(ranks_on_host);
  }
  at::Tensor pinned(const at::Tensor& host) const override { return host; }
  std::unique_ptr<BatchCopier> make_batch_copier() override { return make_cpu_batch_copier(); }
  bool native(Precision precision) const override {
    return cpu_has_native(std::string(to_string(precision)));
  }
  void set_precision(Precision precision) override {
    if (precision == Precision::tf32)
      throw EnvironmentError(
          "--precision tf32: no CPU has it; use fp32 or bf16, or a GPU (--device cuda)");
    if (precision == Precision::int8 && !has_int8_operators())
      throw EnvironmentError(
          "--precision int8: this LibTorch has no quantised operators for this CPU; use fp32 or "
          "bf16");
  }
};

class CpuBatchCopier : public BatchCopier {
 public:
  CpuBatchCopier() : thread_([this] { run(); }) {}
  ~CpuBatchCopier() override {
    {
      const std::lock_guard lock(mutex_);
      leave_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void start(std::vector<TensorCopy> tensors) override {
    for (const TensorCopy& tensor : tensors)
      if (!tensor.from.is_non_overlapping_and_dense() ||
          tensor.from.strides() != tensor.to.strides() ||
          tensor.from.nbytes() != tensor.to.nbytes())
        throw std::logic_error("a batch is copied between tensors of one layout");
    {
      const std::lock_guard lock(mutex_);
      tensors_ = std::move(tensors);
      busy_ = true;
    }
    changed_.notify_all();
  }
  void wait() override {
    const double before = steady_seconds();
    std::unique_lock lock(mutex_);
    wait_until_done(changed_, lock, [this] { return !busy_; });
    tensors_.clear();
    times_.wait_seconds += steady_seconds() - before;
    times_.copy_seconds += copied_seconds_;
    copied_seconds_ = 0;
  }
  CopyTimes times() override { return times_; }
  void restart() override { times_ = {}; }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wait_until_done(changed_, lock, [this] { return busy_ || leave_; });
      if (leave_) return;
      lock.unlock();
      const double before = steady_seconds();
      // start() and wait() do not change the tensors until they are copied.
      for (const TensorCopy& tensor : tensors_)
        std::memcpy(tensor.to.mutable_data_ptr(), tensor.from.const_data_ptr(),
                    tensor.from.nbytes());
      const double seconds = steady_seconds() - before;
      lock.lock();
      copied_seconds_ = seconds;
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TensorCopy> tensors_;
  bool busy_ = false, leave_ = false;
  double copied_seconds_ = 0;  ///< seconds of the copy that was not waited for yet
  CopyTimes times_;            ///< used by the caller's thread alone
  std::thread thread_;         ///< last: it uses the others
};

}  // namespace

std::unique_ptr<DeviceBackend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

std::unique_ptr<BatchCopier> make_cpu_batch_copier() { return std::make_unique<CpuBatchCopier>(); }

}  // namespace scalemark

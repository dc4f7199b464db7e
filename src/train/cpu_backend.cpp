// Implements the CPU as a device. It executes at once: times are clock readings, and a scalar can
// be read as soon as it is computed.
#include "train/cpu_backend.hpp"

#include "config/names.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "models/int8.hpp"
#include "platform/memory_limit.hpp"
#include "platform/platform.hpp"

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

}  // namespace

std::unique_ptr<DeviceBackend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace scalemark

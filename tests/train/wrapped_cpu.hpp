// A device that is the CPU but for what a test changes of it.
#pragma once

#include "train/device_backend.hpp"

namespace scalemark::testing {

class WrappedCpu : public DeviceBackend {
 public:
  at::Device device() const override { return cpu_->device(); }
  std::string name() const override { return cpu_->name(); }
  std::string uuid() const override { return cpu_->uuid(); }
  Stream stream() const override { return cpu_->stream(); }
  void synchronize() override { cpu_->synchronize(); }
  std::unique_ptr<StepClock> make_step_clock() override { return cpu_->make_step_clock(); }
  std::unique_ptr<PhaseClock> make_phase_clock() override { return cpu_->make_phase_clock(); }
  std::unique_ptr<ScalarReader> make_scalar_reader() override { return cpu_->make_scalar_reader(); }
  std::optional<std::int64_t> peak_memory_bytes() const override {
    return cpu_->peak_memory_bytes();
  }
  void reset_peak_memory() override { cpu_->reset_peak_memory(); }
  void release_free_memory() override { cpu_->release_free_memory(); }
  std::optional<std::int64_t> memory_left(int ranks) const override {
    return cpu_->memory_left(ranks);
  }
  at::Tensor pinned(const at::Tensor& host) const override { return host; }
  std::unique_ptr<BatchCopier> make_batch_copier() override { return cpu_->make_batch_copier(); }
  bool native(Precision precision) const override { return cpu_->native(precision); }
  void set_precision(Precision precision) override { cpu_->set_precision(precision); }

 private:
  std::unique_ptr<DeviceBackend> cpu_ = make_device_backend(Device::cpu, 0);
};

}  // namespace scalemark::testing

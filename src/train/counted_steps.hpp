// Counts the steps of an optimizer where the host does not know which of them changed nothing.
// Internal to train/.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace scalemark {

/// Counts steps on the device as long as the host does not know which were skipped.
class CountedSteps {
 public:
  /// Counts a step. `skip` is that of UpdateRule::begin_step().
  void begin_step(const at::Tensor& skip) {
    ++begun_;
    if (skip.defined()) skipped_ = skipped_.defined() ? skipped_ + skip : skip.clone();
  }
  /// Returns the number of steps including the current one. Waits for the device.
  std::int64_t count() const {
    return static_cast<std::int64_t>(begun_ - (skipped_.defined() ? skipped_.item<double>() : 0));
  }
  /// Returns count() as a scalar of `options`, without waiting.
  at::Tensor on_device(const at::TensorOptions& options) const {
    at::Tensor steps = at::full({}, begun_, options);
    if (skipped_.defined()) steps -= skipped_[0];
    return steps;
  }
  /// Returns the number of steps including those that were skipped.
  double begun() const { return begun_; }
  /// Returns whether a step can have been skipped.
  bool may_have_skipped() const { return skipped_.defined(); }

 private:
  double begun_ = 0;
  at::Tensor skipped_;  ///< [1] on the device
};

}  // namespace scalemark

// Internal to train/: the steps that an optimizer has made, where the host does not know which of
// them changed nothing.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace scalemark {

class CountedSteps {
 public:
  /// `skip`: see UpdateRule::begin_step().
  void begin_step(const at::Tensor& skip) {
    ++begun_;
    if (skip.defined()) skipped_ = skipped_.defined() ? skipped_ + skip : skip.clone();
  }
  /// With the step under way; waits for the device.
  std::int64_t count() const {
    return static_cast<std::int64_t>(begun_ - (skipped_.defined() ? skipped_.item<double>() : 0));
  }
  /// The same as a scalar of `options`, without waiting.
  at::Tensor on_device(const at::TensorOptions& options) const {
    at::Tensor steps = at::full({}, begun_, options);
    if (skipped_.defined()) steps -= skipped_[0];
    return steps;
  }
  /// With those that were left out.
  double begun() const { return begun_; }
  /// Whether one can have been left out.
  bool may_have_skipped() const { return skipped_.defined(); }

 private:
  double begun_ = 0;
  at::Tensor skipped_;  ///< [1] on the device
};

}  // namespace scalemark

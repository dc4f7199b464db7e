// A gate that owns gradients, for tests of layers without a training.
#pragma once

#include "models/parameter_gate.hpp"

namespace scalemark::testing {

/// Takes the gradients of products, as the parameters of a training do.
class GradientTaker : public ParameterGate {
 public:
  bool takes_gradient(const at::Tensor& /*leaf*/) override { return true; }
  void put_gradient(const at::Tensor& leaf, const GradientWriter& write) override {
    at::Tensor& gradient = leaf.mutable_grad();
    const bool first = !gradient.defined();
    if (first) gradient = at::empty_like(leaf);
    write(gradient, !first);
  }
};

}  // namespace scalemark::testing

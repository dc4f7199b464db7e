// The hook between layers and whoever owns the weights: layers call it before they use parameters
// and compute with what it returns. Nothing happens by default. This is how communication may run
// on into the next forward pass, and how bf16 shadow weights reach the layers, while models know
// nothing of ranks or precision.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>

namespace scalemark {

class ParameterGate {
 public:
  virtual ~ParameterGate() = default;
  /// Called before a layer reads these leaves in a forward pass.
  virtual void before_use(at::TensorList /*parameters*/) {}
  /// The tensor to compute with in place of a matrix or convolution weight: the leaf itself (fp32),
  /// or its shadow in the compute dtype, a leaf of its own whose gradient arrives in the
  /// parameter's slice.
  virtual at::Tensor compute_weight(const at::Tensor& leaf) { return leaf; }
  /// Rows of a table [rows, width] in the compute dtype: int64 [...] -> [..., width].
  virtual at::Tensor table_rows(const at::Tensor& leaf, const at::Tensor& indices) {
    return at::embedding(compute_weight(leaf), indices);
  }

  /// Writes (add: false) or adds a contribution to the gradient of a leaf: fp32, in its shape.
  using GradientWriter = std::function<void(at::Tensor& gradient, bool add)>;
  /// Asked in a forward pass, once for every use of `leaf`. True: this use does not hand its
  /// gradient to autograd but calls put_gradient() once in the backward pass, which saves a pass
  /// over the weights.
  virtual bool takes_gradient(const at::Tensor& /*leaf*/) { return false; }
  virtual void put_gradient(const at::Tensor& /*leaf*/, const GradientWriter& /*write*/) {}

  /// The same of a lookup in the table `leaf` [rows, width]: true where it calls put_rows() once in
  /// the backward pass.
  virtual bool takes_rows(const at::Tensor& /*leaf*/) { return false; }
  /// indices int64 [n], which may repeat; rows [n, width] in the compute dtype: row indices[i] of
  /// the table's gradient is to grow by rows[i].
  virtual void put_rows(const at::Tensor& /*leaf*/, const at::Tensor& /*indices*/,
                        const at::Tensor& /*rows*/) {}
};

class OperatorSet;
const OperatorSet& standard_operators();  // models/operator_set.hpp

/// Shared by all layers of a model so that both can be set after construction.
struct GateHolder {
  std::shared_ptr<ParameterGate> gate = std::make_shared<ParameterGate>();
  const OperatorSet* operators = &standard_operators();  ///< what layers compute with
};
/// What a layer is given.
using LayerGate = std::shared_ptr<GateHolder>;

}  // namespace scalemark

// Connects layers with the owner of the weights: layers call the gate before they use parameters,
// and compute with what it returns. By default it does nothing. Through it communication may
// overlap with the next forward pass, and bf16 shadow weights reach the layers, while models do not
// depend on ranks or precision.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <vector>

namespace scalemark {

/// The calls that layers make before they use parameters and when they have gradients.
class ParameterGate {
 public:
  virtual ~ParameterGate() = default;
  /// Called before a layer reads these leaves in a forward pass.
  virtual void before_use(at::TensorList /*parameters*/) {}
  /// Called around a block of layers that is run as a whole (run_block()), whose parameters no
  /// other layer uses. `output` is what the block has computed.
  virtual void begin_block() {}
  virtual void end_block(const at::Tensor& /*output*/) {}
  /// Returns whether blocks keep only their inputs for the backward pass, which runs them again.
  virtual bool recomputes() const { return false; }
  /// Returns the tensor to compute with in place of a matrix or convolution weight: the leaf itself
  /// (fp32), or its shadow in the compute dtype, which is a leaf of its own whose gradient goes to
  /// the parameter's slice.
  virtual at::Tensor compute_weight(const at::Tensor& leaf) { return leaf; }
  /// Returns rows of a table [rows, width] in the compute dtype: int64 [...] -> [..., width].
  virtual at::Tensor table_rows(const at::Tensor& leaf, const at::Tensor& indices) {
    return at::embedding(compute_weight(leaf), indices);
  }

  /// Writes (add: false) or adds a contribution to the gradient of a leaf: fp32, in its shape.
  using GradientWriter = std::function<void(at::Tensor& gradient, bool add)>;
  /// Asked in a forward pass, once for every use of `leaf`. True means that this use does not pass
  /// its gradient to autograd but calls put_gradient() once in the backward pass, which saves a
  /// pass over the weights.
  virtual bool takes_gradient(const at::Tensor& /*leaf*/) { return false; }
  virtual void put_gradient(const at::Tensor& /*leaf*/, const GradientWriter& /*write*/) {}

  /// Asked in a forward pass, once for every lookup in the table `leaf` [rows, width]. True means
  /// that the lookup does not pass its gradient to autograd but calls put_rows() once in the
  /// backward pass.
  virtual bool takes_rows(const at::Tensor& /*leaf*/) { return false; }
  /// Adds rows[i] to row indices[i] of the table's gradient. indices is int64 [n] and may repeat;
  /// rows is [n, width] in the compute dtype.
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
/// A layer gets the gate in this form.
using LayerGate = std::shared_ptr<GateHolder>;

/// Runs a block of layers: `layers` returns what it computes of `inputs`, one or two, and must own
/// what it needs beside them, since a gate that recomputes() runs it in the backward pass again. A
/// network is a row of such blocks between its first layers and its last ones, so that a gate may
/// hold the weights of one block at a time.
at::Tensor run_block(const LayerGate& holder, const std::vector<at::Tensor>& inputs,
                     const std::function<at::Tensor(const std::vector<at::Tensor>&)>& layers);

}  // namespace scalemark

// Computes attention as matrix products with the dropout of this folder between them.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "models/kernels/kernels.hpp"

namespace scalemark {
namespace {

/// Returns 0 where a target may look, and minus infinity where it may not: [length, length].
at::Tensor causal_mask(std::int64_t length, const at::TensorOptions& options) {
  return at::full({length, length}, -std::numeric_limits<double>::infinity(), options).triu_(1);
}

at::Tensor without_heads(const at::Tensor& x) { return x.flatten(0, 1); }

/// Returns minus infinity where a target may not look. The result is undefined where it may look
/// anywhere.
at::Tensor hidden_from(const AttentionInputs& inputs) {
  const at::Tensor& queries = inputs.queries;
  if (inputs.mask.defined())
    return without_heads(inputs.mask.expand({-1, queries.size(1), -1, -1}));
  return inputs.causal ? causal_mask(queries.size(2), queries.options()) : at::Tensor();
}

}  // namespace

bool suits_attention(const AttentionInputs& inputs, double dropout_probability) {
  return inputs.queries.is_cpu() && dropout_probability > 0;
}

at::Tensor attention_with_dropout(const AttentionInputs& inputs, double dropout_probability) {
  const at::Tensor &queries = inputs.queries, q = without_heads(queries);
  const at::Tensor keys = without_heads(inputs.keys).transpose(1, 2);
  const double scale = 1 / std::sqrt(static_cast<double>(queries.size(3)));
  const at::Tensor hidden = hidden_from(inputs);
  const at::Tensor scores =
      hidden.defined() ? at::baddbmm(hidden, q, keys, 1, scale) : at::bmm(q, keys).mul_(scale);
  const at::Tensor weights = dropout(at::softmax(scores, -1), dropout_probability);
  return at::bmm(weights, without_heads(inputs.values)).view(queries.sizes());
}

}  // namespace scalemark

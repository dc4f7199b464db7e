// Implements the layers of sequence models.
#include "models/sequence_layers.hpp"

#include <cmath>
#include <limits>

#include "models/frozen.hpp"

namespace scalemark {

namespace {

/// Returns a layer from the width to `parts` times the width.
std::shared_ptr<Linear> projection(const LayerGate& gate, const StackShape& shape,
                                   std::int64_t parts) {
  return std::make_shared<Linear>(gate, shape.width, parts * shape.width,
                                  LinearOptions{shape.init, shape.bias});
}

/// Returns a layer from `in` to the width that ends a residual.
std::shared_ptr<Linear> last_of_residual(const LayerGate& gate, const StackShape& shape,
                                         std::int64_t in) {
  return std::make_shared<Linear>(gate, in, shape.width,
                                  LinearOptions{shape.init, shape.bias, shape.residual_gain});
}

std::int64_t key_heads_of(const StackShape& shape) {
  return shape.key_heads > 0 ? shape.key_heads : shape.heads;
}

/// Maps [batch, length, parts * width] to `parts` views [batch, heads, length, width / heads].
std::vector<at::Tensor> heads_of(const at::Tensor& x, std::int64_t parts, const StackShape& shape) {
  return x.view({x.size(0), x.size(1), parts, shape.heads, shape.width / shape.heads})
      .permute({2, 0, 3, 1, 4})
      .unbind(0);
}

/// Maps [batch, heads, length, depth] to [batch, length, heads * depth].
at::Tensor merged_heads(const at::Tensor& x) { return x.transpose(1, 2).flatten(2); }

/// What the backward pass needs in addition to the tensors that autograd saves.
struct TablePlace : torch::CustomClassHolder {
  TablePlace(at::Tensor table, LayerGate holder)
      : leaf(std::move(table)), gate(std::move(holder)) {}
  at::Tensor leaf;
  LayerGate gate;
};

/// A lookup that gives its gradient to the gate as rows.
class Rows : public torch::autograd::Function<Rows> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& weight,
                            const at::Tensor& indices,
                            const c10::intrusive_ptr<TablePlace>& place) {
    context->save_for_backward({indices});
    context->saved_data["place"] = c10::IValue::make_capsule(place);
    return at::embedding(weight, indices);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const at::NoGradGuard no_grad;
    const at::Tensor indices = context->get_saved_variables()[0].flatten();
    const auto place =
        c10::static_intrusive_pointer_cast<TablePlace>(context->saved_data["place"].toCapsule());
    place->gate->gate->put_rows(place->leaf, indices,
                                gradients[0].reshape({indices.numel(), place->leaf.size(1)}));
    return {{}, {}, {}};
  }
};

/// Returns rows of the table `leaf` [rows, width]: int64 [...] -> [..., width] in the compute
/// dtype. The gradient goes to the gate as rows where the gate takes them, without a dense tensor.
at::Tensor table_rows(const at::Tensor& leaf, const at::Tensor& indices, const LayerGate& holder) {
  ParameterGate& gate = *holder->gate;
  if (!at::GradMode::is_enabled() || !gate.takes_rows(leaf)) return gate.table_rows(leaf, indices);
  return Rows::apply(gate.compute_weight(leaf), indices,
                     c10::make_intrusive<TablePlace>(leaf, holder));
}

}  // namespace

LayerNorm::LayerNorm(LayerGate gate, std::int64_t width, double epsilon)
    : gate_(std::move(gate)), epsilon_(epsilon) {
  weight_ = register_parameter("weight", new_parameter({width}).fill_(1));
  bias_ = register_parameter("bias", new_parameter({width}).zero_());
}

at::Tensor LayerNorm::forward(const at::Tensor& x, const at::Tensor& branch,
                              double dropout_probability) {
  gate_->gate->before_use({weight_, bias_});
  return gate_->operators->norm_of_sum(x, branch, dropout_probability, weight_, bias_, epsilon_);
}

Embedding::Embedding(LayerGate gate, at::Tensor weight) : gate_(std::move(gate)) {
  weight_ = register_parameter("weight", std::move(weight));
}

at::Tensor Embedding::forward(const at::Tensor& indices) {
  gate_->gate->before_use(weight_);
  return table_rows(weight_, indices, gate_);
}

at::Tensor Embedding::project(const at::Tensor& x, const at::Tensor& bias) {
  if (projection_) {
    const at::Tensor y = projection_->forward(x);
    return bias.defined() ? y + bias_like(bias, y) : y;
  }
  gate_->gate->before_use(weight_);
  return gate_->operators->linear(x, weight_, bias_like(bias, x), gate_);
}

void Embedding::freeze(at::ScalarType dtype) {
  projection_ = std::make_shared<FrozenLinear>(weight_, at::Tensor(), dtype);
}

void Embedding::quantize() { projection_->quantize(); }

at::Tensor padding_mask(const at::Tensor& padding, at::ScalarType dtype) {
  if (!padding.defined()) return {};
  return at::zeros(padding.sizes(), padding.options().dtype(dtype))
      .masked_fill_(padding, -std::numeric_limits<double>::infinity())
      .view({padding.size(0), 1, 1, padding.size(1)});
}

RmsNorm::RmsNorm(LayerGate gate, std::int64_t width, double epsilon)
    : gate_(std::move(gate)), epsilon_(epsilon) {
  weight_ = register_parameter("weight", new_parameter({width}).fill_(1));
}

at::Tensor RmsNorm::forward(const at::Tensor& x) {
  gate_->gate->before_use(weight_);
  return gate_->operators->rms_norm(x, weight_, epsilon_);
}

SelfAttention::SelfAttention(const LayerGate& gate, const StackShape& shape, bool causal)
    : gate_(gate), shape_(shape), causal_(causal) {
  const std::int64_t depth = shape.width / shape.heads;
  input_ = register_module(
      "input",
      std::make_shared<Linear>(gate, shape.width, (shape.heads + 2 * key_heads_of(shape)) * depth,
                               LinearOptions{shape.init, shape.bias}));
  output_ = register_module("output", last_of_residual(gate, shape, shape.width));
}

at::Tensor SelfAttention::forward(const at::Tensor& x, double dropout_probability,
                                  const at::Tensor& mask, const Rotation& rotation) {
  const OperatorSet& operators = *gate_->operators;
  const at::Tensor all = input_->forward(x).view(
      {x.size(0), x.size(1), shape_.heads + 2 * key_heads_of(shape_), shape_.width / shape_.heads});
  const AttentionHeads heads = operators.divided_heads(all, key_heads_of(shape_), rotation);
  return output_->forward(merged_heads(operators.attention(
      {heads.queries, heads.keys, heads.values, causal_, mask}, dropout_probability)));
}

CrossAttention::CrossAttention(const LayerGate& gate, const StackShape& shape)
    : gate_(gate), shape_(shape) {
  query_ = register_module("query", projection(gate, shape, 1));
  memory_ = register_module("memory", projection(gate, shape, 2));
  output_ = register_module("output", last_of_residual(gate, shape, shape.width));
}

at::Tensor CrossAttention::forward(const at::Tensor& x, const at::Tensor& memory,
                                   double dropout_probability, const at::Tensor& mask) {
  const at::Tensor q = heads_of(query_->forward(x), 1, shape_)[0];
  const auto kv = heads_of(memory_->forward(memory), 2, shape_);
  return output_->forward(merged_heads(
      gate_->operators->attention({q, kv[0], kv[1], /*causal=*/false, mask}, dropout_probability)));
}

FeedForward::FeedForward(const LayerGate& gate, const StackShape& shape)
    : gate_(gate),
      activation_(shape.activation),
      inner_(std::make_shared<Linear>(gate, shape.width,
                                      (halves(shape.activation) ? 2 : 1) * shape.inner,
                                      LinearOptions{shape.init, shape.bias})),
      outer_(last_of_residual(gate, shape, shape.inner)) {
  register_module("inner", inner_);
  register_module("outer", outer_);
}

at::Tensor FeedForward::forward(const at::Tensor& x, double dropout_probability) {
  if (activation_ == Activation::relu && dropout_probability > 0)
    return outer_->forward(gate_->operators->relu_dropout(inner_->forward(x), dropout_probability));
  if (activation_ != Activation::relu && is_training())
    return outer_->forward_of(inner_->forward(x), activation_);
  return outer_->forward(inner_->forward(x, activation_));
}

EncoderLayer::EncoderLayer(const LayerGate& gate, const StackShape& shape)
    : attention_(std::make_shared<SelfAttention>(gate, shape, /*causal=*/false)),
      attention_norm_(std::make_shared<LayerNorm>(gate, shape.width, shape.norm_epsilon)),
      feed_forward_(std::make_shared<FeedForward>(gate, shape)),
      feed_forward_norm_(std::make_shared<LayerNorm>(gate, shape.width, shape.norm_epsilon)) {
  register_module("attention", attention_);
  register_module("attention_norm", attention_norm_);
  register_module("feed_forward", feed_forward_);
  register_module("feed_forward_norm", feed_forward_norm_);
}

at::Tensor EncoderLayer::forward(const at::Tensor& x, double p, const at::Tensor& mask) {
  const at::Tensor y = attention_norm_->forward(x, attention_->forward(x, p, mask), p);
  return feed_forward_norm_->forward(y, feed_forward_->forward(y, p), p);
}

template <typename Norm>
PreNormLayer<Norm>::PreNormLayer(const LayerGate& gate, const StackShape& shape, bool causal)
    : gate_(gate),
      attention_norm_(std::make_shared<Norm>(gate, shape.width, shape.norm_epsilon)),
      attention_(std::make_shared<SelfAttention>(gate, shape, causal)),
      feed_forward_norm_(std::make_shared<Norm>(gate, shape.width, shape.norm_epsilon)),
      feed_forward_(std::make_shared<FeedForward>(gate, shape)) {
  register_module("attention_norm", attention_norm_);
  register_module("attention", attention_);
  register_module("feed_forward_norm", feed_forward_norm_);
  register_module("feed_forward", feed_forward_);
}

template <typename Norm>
at::Tensor PreNormLayer<Norm>::forward(const at::Tensor& x, double p, const Rotation& rotation) {
  const OperatorSet& operators = *gate_->operators;
  const at::Tensor attended =
      attention_->forward(attention_norm_->forward(x), p, /*mask=*/{}, rotation);
  const at::Tensor y = x + operators.dropout(attended, p);
  return y + operators.dropout(feed_forward_->forward(feed_forward_norm_->forward(y), p), p);
}

template class PreNormLayer<LayerNorm>;
template class PreNormLayer<RmsNorm>;

at::Tensor sinusoidal_positions(std::int64_t length, std::int64_t width) {
  const at::Tensor position = at::arange(length, at::kDouble).unsqueeze(1);
  const at::Tensor rate = at::exp(at::arange(0, width, 2, at::kDouble) *
                                  (-std::log(10000.) / static_cast<double>(width)));
  const at::Tensor angle = position * rate;  // [length, width / 2]
  return at::stack({at::sin(angle), at::cos(angle)}, -1).view({length, width});
}

}  // namespace scalemark

// The autograd function that puts a weight gradient in its place.
#include "models/kernels/linear.hpp"

#include "models/kernels/gelu.hpp"
#include "models/kernels/products.hpp"
#include "models/kernels/widen.hpp"

namespace scalemark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The number of rows of the weight gradient that are computed at a time where the compute type is
/// narrower than fp32. A panel is still in cache when it is cast into its place.
constexpr std::int64_t kPanelRows = 4096;

/// What the backward pass needs in addition to the tensors that autograd saves.
struct Place : torch::CustomClassHolder {
  Place(at::Tensor parameter, LayerGate holder, bool gelu = false)
      : leaf(std::move(parameter)), gate(std::move(holder)), of_gelu(gelu) {}
  at::Tensor leaf;
  LayerGate gate;
  bool of_gelu;  ///< the product is that of gelu(x), which is made again on the way back
};

void put(const Place& place, const ParameterGate::GradientWriter& write) {
  const at::NoGradGuard no_grad;
  place.gate->gate->put_gradient(place.leaf, write);
}

/// Computes gradient (+)= dy^T x with dy [n, out], x [n, in].
void write_product(at::Tensor& gradient, bool add, const at::Tensor& dy, const at::Tensor& x) {
  if (x.scalar_type() == gradient.scalar_type()) {
    if (add)
      gradient.addmm_(dy.t(), x);
    else
      at::mm_out(gradient, dy.t(), x);
    return;
  }
  for (std::int64_t row = 0; row < gradient.size(0); row += kPanelRows) {
    const std::int64_t rows = std::min(kPanelRows, gradient.size(0) - row);
    const at::Tensor panel = at::mm(dy.narrow(1, row, rows).t(), x);
    at::Tensor part = gradient.narrow(0, row, rows);
    if (add)
      part.add_(panel);
    else
      widen(panel, part);
  }
}

class Product : public torch::autograd::Function<Product> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const std::optional<at::Tensor>& bias, const at::Tensor& weight,
                            const c10::intrusive_ptr<Place>& place) {
    context->save_for_backward({x, weight});
    context->saved_data["place"] = c10::IValue::make_capsule(place);
    context->saved_data["has_bias"] = bias.has_value();
    return linear_product(place->of_gelu ? gelu_fused(x) : x, weight, bias.value_or(at::Tensor()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto& x = saved[0];
    const auto& weight = saved[1];
    const at::Tensor dy = gradients[0].reshape({-1, weight.size(0)});
    const auto place =
        c10::static_intrusive_pointer_cast<Place>(context->saved_data["place"].toCapsule());
    at::Tensor dx, dbias, factor = x.reshape({-1, weight.size(1)});
    const auto input_gradient_of = [&] { return product_input_gradient(dy, weight); };
    if (place->of_gelu) {  // in the pass that computes the gradient of x
      dx = input_gradient_of();
      factor = gelu_and_gradient(factor, dx);
    }
    put(*place, [&](at::Tensor& gradient, bool add) { write_product(gradient, add, dy, factor); });
    if (!place->of_gelu && context->needs_input_grad(0)) dx = input_gradient_of();
    if (dx.defined()) dx = dx.view(x.sizes());
    if (context->saved_data["has_bias"].toBool()) dbias = dy.sum(0);
    return {dx, dbias, {}, {}};
  }
};

}  // namespace

at::Tensor linear_in_place(const at::Tensor& x, const at::Tensor& leaf, const at::Tensor& bias,
                           const LayerGate& holder, bool of_gelu) {
  ParameterGate& gate = *holder->gate;
  const auto factor = [&] { return of_gelu ? at::gelu(x) : x; };
  if (!at::GradMode::is_enabled()) return linear_product(factor(), gate.compute_weight(leaf), bias);
  if (!gate.takes_gradient(leaf)) return at::linear(factor(), gate.compute_weight(leaf), bias);
  const bool anew = of_gelu && suits_gelu(x);
  // The weight is made part of the graph, since it may be the only input that needs a gradient.
  return Product::apply(anew ? x : factor(), bias.defined() ? std::optional(bias) : std::nullopt,
                        gate.compute_weight(leaf), c10::make_intrusive<Place>(leaf, holder, anew));
}

}  // namespace scalemark

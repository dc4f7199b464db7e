// The autograd function that hands rows to the gate.
#include "models/table_rows.hpp"

namespace scalemark {
namespace {

/// What the way back needs beside tensors that autograd saves.
struct TablePlace : torch::CustomClassHolder {
  TablePlace(at::Tensor table, LayerGate holder)
      : leaf(std::move(table)), gate(std::move(holder)) {}
  at::Tensor leaf;
  LayerGate gate;
};

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

}  // namespace

at::Tensor table_rows(const at::Tensor& leaf, const at::Tensor& indices, const LayerGate& holder) {
  ParameterGate& gate = *holder->gate;
  if (!at::GradMode::is_enabled() || !gate.takes_rows(leaf)) return gate.table_rows(leaf, indices);
  return Rows::apply(gate.compute_weight(leaf), indices,
                     c10::make_intrusive<TablePlace>(leaf, holder));
}

}  // namespace scalemark

// Moves gradients from the backward pass into their slices, counts uses, and finds the
// gradient-ready order.
#include "train/gradient_arrival.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "error.hpp"
#include "measure/clock.hpp"

namespace scalemark {
namespace {

class GradientHook : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit GradientHook(std::function<void(const at::Tensor&)> action)
      : action_(std::move(action)) {}
  void operator()(const torch::autograd::Variable& leaf) override {
    const at::NoGradGuard no_grad;
    if (!leaf.grad().defined()) return;  // all its uses put their gradients themselves
    action_(leaf.grad());
    leaf.mutable_grad().reset();
  }

 private:
  std::function<void(const at::Tensor&)> action_;
};

void convert(TableRows& table, const OperatorSet& operators) {
  if (table.table.how != TableGradient::converted) return;
  const double start = steady_seconds();
  table.gradient.zero_();
  operators.add_rows(table.gradient, table.rows.indices(), table.rows.rows());
  table.converting_seconds += steady_seconds() - start;
}

}  // namespace

void on_gradient(const at::Tensor& leaf, std::function<void(const at::Tensor&)> action) {
  torch::autograd::impl::set_post_acc_grad_hooks(leaf,
                                                 std::make_unique<GradientHook>(std::move(action)));
}

void forget_gradient(const at::Tensor& leaf) {
  torch::autograd::impl::set_post_acc_grad_hooks(leaf, nullptr);
}

void GradientArrival::add_slice(int bucket, const at::Tensor& gradient) {
  targets_.push_back({bucket, gradient});
  uses_.emplace_back();
}

void GradientArrival::add_table(int slice, const EmbeddingTable& table) {
  Target& target = targets_[static_cast<std::size_t>(slice)];
  target.table = static_cast<int>(tables_.size());
  tables_.push_back({table, target.bucket, target.gradient, {}});
  if (table.collects())
    tables_.back().rows =
        RowBuffer(table.width, table.carries_dense() ? table.rows : 0, target.gradient.options());
}

void GradientArrival::begin_pass(bool first, bool last) {
  first_pass_ = first;
  last_pass_ = last;
  std::fill(uses_.begin(), uses_.end(), Uses{});
  if (!first) return;
  for (TableRows& table : tables_) table.rows.clear();
}

/// Returns the table of a slice whose gradient is collected as rows, else null.
TableRows* GradientArrival::collected(int slice) {
  const int table = targets_[static_cast<std::size_t>(slice)].table;
  if (table < 0) return nullptr;
  TableRows& rows = tables_[static_cast<std::size_t>(table)];
  return rows.table.collects() ? &rows : nullptr;
}

void GradientArrival::put(int slice, const ParameterGate::GradientWriter& write) {
  Uses& use = uses_[static_cast<std::size_t>(slice)];
  TableRows* const table = collected(slice);
  if (on_write_) on_write_(targets_[static_cast<std::size_t>(slice)].bucket);
  at::Tensor place = table && table->table.carries_dense()
                         ? table->rows.dense()
                         : targets_[static_cast<std::size_t>(slice)].gradient;
  write(place, /*add=*/!first_pass_ || use.written);
  use.written = true;
  arrived(slice);
}

void GradientArrival::put_rows(int slice, const at::Tensor& indices, const at::Tensor& rows) {
  if (TableRows* const table = collected(slice)) {
    table->rows.append(indices, rows);
    return arrived(slice);
  }
  put(slice, [&](at::Tensor& gradient, bool add) {
    if (!add) gradient.zero_();
    gradient.index_add_(0, indices, rows.to(gradient.scalar_type()));
  });
}

void GradientArrival::take_from(const at::Tensor& leaf, int slice) {
  on_gradient(leaf, [weak = weak_from_this(), slice](const at::Tensor& found) {
    const auto arrival = weak.lock();
    if (!arrival) return;
    arrival->put(slice, [&](at::Tensor& gradient, bool add) {
      if (add)
        gradient.add_(found);
      else
        gradient.copy_(found);
    });
  });
}

void GradientArrival::arrived(int slice) {
  Uses& use = uses_[static_cast<std::size_t>(slice)];
  if (++use.arrived < use.expected()) return;
  use = {};
  if (!last_pass_) return;
  if (TableRows* const table = collected(slice)) convert(*table, operators_);
  on_ready_(targets_[static_cast<std::size_t>(slice)].bucket);
}

std::vector<int> gradient_ready_order(Model& model, at::Device device) {
  const std::vector<at::Tensor> leaves = model.parameters();
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(leaves.size()); ++i)
    on_gradient(leaves[i], [&order, i](const at::Tensor&) { order.push_back(i); });
  const std::int64_t samples = model.possible_batch(2);
  model.loss_sum(model.synthetic_batch(samples, 0, device, at::kFloat)).backward();
  for (const at::Tensor& leaf : leaves) forget_gradient(leaf);
  const auto names = model.named_parameters();
  for (int i = 0; i < static_cast<int>(leaves.size()); ++i)
    if (std::find(order.begin(), order.end(), i) == order.end())
      throw RunError("parameter " + names[i].key() + " gets no gradient: take it out of the model");
  return order;
}

}  // namespace scalemark

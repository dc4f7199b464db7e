// Bucket layout, views and gradient hooks; see flat_parameters.hpp.
//
// A leaf's grad stays undefined, so that autograd hands over the very tensor that the backward pass
// computed, without adding it to anything; the hook then moves it into the flat bucket (one pass,
// casting). A weight that is used more than once is summed by autograd before the hook runs. Layers
// that put gradients themselves (put_gradient) add up in the bucket instead. A table's gradient may
// be collected as rows: then what comes as rows goes to its RowBuffer, and what is dense too where
// it is to be carried as rows.
#include "train/flat_parameters.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <unordered_map>

#include "error.hpp"

namespace scalemark {
namespace {

/// Elements: 64 bytes of bf16 shadow, 128 of fp32, so that slices are aligned in both.
constexpr std::int64_t kAlignment = 32;

std::int64_t align(std::int64_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}

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

/// Calls `action` with the complete gradient of `leaf` once a backward pass, then drops it.
void on_gradient(const at::Tensor& leaf, std::function<void(const at::Tensor&)> action) {
  torch::autograd::impl::set_post_acc_grad_hooks(leaf,
                                                 std::make_unique<GradientHook>(std::move(action)));
}

/// The slice's part of a flat tensor, in the shape and memory format of `like`.
at::Tensor view_of(const at::Tensor& flat, const Slice& slice, const at::Tensor& like) {
  return flat.as_strided(like.sizes(), like.strides(), slice.offset);
}

void check_permutation(std::vector<int> order, std::size_t count) {
  std::sort(order.begin(), order.end());
  bool ok = order.size() == count;
  for (std::size_t i = 0; ok && i < count; ++i) ok = order[i] == static_cast<int>(i);
  if (!ok)
    throw std::invalid_argument("gradient-ready order is not a permutation of the model's " +
                                std::to_string(count) + " parameters");
}

}  // namespace

/// Contributions to one parameter's gradient in one pass.
struct Uses {
  int given = 0;         ///< compute weights handed out in the forward pass
  int direct = 0;        ///< of these, uses that put their gradient themselves
  int arrived = 0;       ///< contributions so far
  bool written = false;  ///< by one that was not collected as rows

  /// Uses that autograd sees arrive together, as their sum.
  int expected() const { return direct + (given > direct || given == 0 ? 1 : 0); }
};

struct FlatParameters::Impl {
  std::vector<Bucket> buckets;
  std::vector<Slice> slices;
  std::vector<at::Tensor> gradients;  ///< by slice, views of the buckets
  std::vector<at::Tensor> shadows;    ///< by slice; undefined in fp32
  std::vector<Uses> uses;             ///< by slice
  std::vector<at::Tensor> leaves;     ///< by slice
  std::vector<TableRows> tables;
  std::vector<int> table_of;  ///< by slice: index into tables, -1 for none
  std::unordered_map<const c10::TensorImpl*, int> slice_of;  ///< by leaf
  std::int64_t parameter_count = 0;
  bool first_pass = true, last_pass = true;
  std::function<void(int)> on_ready = [](int) {};

  void lay_out(const std::vector<at::Tensor>& leaves, const std::vector<int>& order,
               const FlatLayout& layout) {
    for (const int parameter : order) {
      const std::int64_t limit =
          buckets.size() == 1 ? layout.first_bucket_bytes : layout.bucket_bytes;
      const bool reduced = std::none_of(layout.tables.begin(), layout.tables.end(),
                                        [&](const EmbeddingTable& table) {
                                          return table.parameter == parameter && !table.reduced();
                                        });
      if (buckets.empty() || !reduced || !buckets.back().reduced ||
          buckets.back().count * static_cast<std::int64_t>(sizeof(float)) >= limit)
        buckets.emplace_back();
      Bucket& bucket = buckets.back();
      bucket.reduced = reduced;
      const std::int64_t count = leaves[parameter].numel();
      slices.push_back({parameter, static_cast<int>(buckets.size()) - 1, bucket.count, count,
                        leaves[parameter].dim() == 1});
      bucket.slices.push_back(slices.back());
      bucket.count += align(count);
      parameter_count += count;
    }
  }

  void allocate(const at::TensorOptions& options, const FlatLayout& layout) {
    for (Bucket& bucket : buckets) {
      bucket.weights = at::zeros({bucket.count}, options);
      bucket.gradients = at::zeros({bucket.count}, options);
      for (int i = 0; i < layout.states; ++i)
        bucket.state.push_back(at::zeros({bucket.count}, options));
      if (layout.shadow_dtype != at::kFloat)
        bucket.shadow = at::zeros({bucket.count}, options.dtype(layout.shadow_dtype));
    }
  }

  /// Moves the leaf's values into its slice and makes it a view of it.
  void bind(const std::shared_ptr<Impl>& self, at::Tensor leaf, int index) {
    const Slice& slice = slices[index];
    Bucket& bucket = buckets[slice.bucket];
    const at::Tensor weight = view_of(bucket.weights, slice, leaf);
    weight.copy_(leaf.detach());
    gradients.push_back(view_of(bucket.gradients, slice, leaf));
    slice_of[leaf.unsafeGetTensorImpl()] = index;
    leaf.set_data(weight);
    leaves.push_back(leaf);
    const auto arrive = arrival(self, index);
    on_gradient(leaf, arrive);
    shadows.emplace_back();
    if (!bucket.shadow.defined()) return;
    shadows.back() = view_of(bucket.shadow, slice, leaf);
    shadows.back().copy_(weight);
    shadows.back().set_requires_grad(true);
    on_gradient(shadows.back(), arrive);
  }

  /// Moves what it is given into the slice. Hooks live as long as the leaves, which may be longer
  /// than this.
  static std::function<void(const at::Tensor&)> arrival(const std::shared_ptr<Impl>& self,
                                                        int index) {
    return [weak = std::weak_ptr(self), index](const at::Tensor& found) {
      const auto impl = weak.lock();
      if (!impl) return;
      impl->put(index, [&](at::Tensor& gradient, bool add) {
        if (add)
          gradient.add_(found);
        else
          gradient.copy_(found);
      });
    };
  }

  void add_table(const EmbeddingTable& table) {
    const auto of_parameter = [&](const Slice& slice) {
      return slice.parameter == table.parameter;
    };
    const auto slice = std::find_if(slices.begin(), slices.end(), of_parameter);
    const auto index = static_cast<std::size_t>(slice - slices.begin());
    table_of[index] = static_cast<int>(tables.size());
    tables.push_back({table, slice->bucket, gradients[index], {}});
    if (table.collects())
      tables.back().rows = RowBuffer(table.width, table.carries_dense() ? table.rows : 0,
                                     gradients[index].options());
  }

  /// Of a slice whose gradient is collected, else nothing.
  TableRows* collected(int index) {
    const int table = table_of[static_cast<std::size_t>(index)];
    if (table < 0) return nullptr;
    TableRows& rows = tables[static_cast<std::size_t>(table)];
    return rows.table.collects() ? &rows : nullptr;
  }

  void put(int index, const GradientWriter& write) {
    Uses& use = uses[index];
    TableRows* const table = collected(index);
    at::Tensor place =
        table && table->table.carries_dense() ? table->rows.dense() : gradients[index];
    write(place, /*add=*/!first_pass || use.written);
    use.written = true;
    arrived(index);
  }

  void put_rows(int index, const at::Tensor& indices, const at::Tensor& rows) {
    if (TableRows* const table = collected(index)) {
      table->rows.append(indices, rows);
      return arrived(index);
    }
    put(index, [&](at::Tensor& gradient, bool add) {
      if (!add) gradient.zero_();
      gradient.index_add_(0, indices, rows.to(gradient.scalar_type()));
    });
  }

  void arrived(int index) {
    Uses& use = uses[index];
    if (++use.arrived < use.expected()) return;
    use = {};
    if (!last_pass) return;
    if (TableRows* const table = collected(index)) convert(*table);
    on_ready(slices[index].bucket);
  }

  static void convert(TableRows& table) {
    if (table.table.how != TableGradient::converted) return;
    const auto start = std::chrono::steady_clock::now();
    table.gradient.zero_();
    add_rows(table.gradient, table.rows.indices(), table.rows.rows());
    table.converting_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  /// The slice of a leaf that is in use by a pass with a backward pass, else nothing.
  Uses* uses_of(const at::Tensor& leaf) {
    const auto found = slice_of.find(leaf.unsafeGetTensorImpl());
    return found == slice_of.end() || !at::GradMode::is_enabled() ? nullptr : &uses[found->second];
  }
};

FlatParameters::FlatParameters(Model& model, const std::vector<int>& order,
                               const FlatLayout& layout)
    : impl_(std::make_shared<Impl>()) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> leaves = model.parameters();
  check_permutation(order, leaves.size());
  impl_->lay_out(leaves, order, layout);
  impl_->allocate(at::TensorOptions().dtype(at::kFloat).device(leaves.front().device()), layout);
  impl_->uses.resize(impl_->slices.size());
  impl_->table_of.resize(impl_->slices.size(), -1);
  for (int i = 0; i < static_cast<int>(impl_->slices.size()); ++i)
    impl_->bind(impl_, leaves[impl_->slices[i].parameter], i);
  for (const EmbeddingTable& table : layout.tables) impl_->add_table(table);
}

std::vector<Bucket>& FlatParameters::buckets() { return impl_->buckets; }
std::vector<TableRows>& FlatParameters::tables() { return impl_->tables; }
const std::vector<Slice>& FlatParameters::slices() const { return impl_->slices; }
std::int64_t FlatParameters::parameter_count() const { return impl_->parameter_count; }

std::vector<Buffer> FlatParameters::gradient_buffers() {
  std::vector<Buffer> buffers;
  for (const Bucket& bucket : impl_->buckets)
    buffers.push_back({bucket.gradients.data_ptr(),
                       static_cast<std::size_t>(bucket.reduced ? bucket.count : 0), DataType::f32});
  return buffers;
}

std::vector<int> FlatParameters::parameters_in() const {
  std::vector<int> counts;
  for (const Bucket& bucket : impl_->buckets)
    counts.push_back(static_cast<int>(bucket.slices.size()));
  return counts;
}

std::int64_t FlatParameters::gradient_bytes() const {
  std::int64_t bytes = 0;
  for (const Bucket& bucket : impl_->buckets) bytes += bucket.gradients.nbytes();
  return bytes;
}

void FlatParameters::set_on_ready(std::function<void(int bucket)> on_ready) {
  impl_->on_ready = std::move(on_ready);
}

void FlatParameters::begin_pass(bool first, bool last) {
  impl_->first_pass = first;
  impl_->last_pass = last;
  std::fill(impl_->uses.begin(), impl_->uses.end(), Uses{});
  if (!first) return;
  for (TableRows& table : impl_->tables) table.rows.clear();
}

void FlatParameters::take_leaf_gradients(bool take) {
  for (int i = 0; i < static_cast<int>(impl_->leaves.size()); ++i)
    if (take)
      on_gradient(impl_->leaves[i], Impl::arrival(impl_, i));
    else
      torch::autograd::impl::set_post_acc_grad_hooks(impl_->leaves[i], nullptr);
}

bool FlatParameters::weights_are_finite() const {
  const at::NoGradGuard no_grad;
  return std::all_of(impl_->buckets.begin(), impl_->buckets.end(), [](const Bucket& bucket) {
    return at::isfinite(bucket.weights).all().item<bool>();
  });
}

at::Tensor FlatParameters::compute_weight(const at::Tensor& leaf) {
  if (Uses* use = impl_->uses_of(leaf)) ++use->given;
  const auto found = impl_->slice_of.find(leaf.unsafeGetTensorImpl());
  if (found == impl_->slice_of.end()) return leaf;
  const at::Tensor& shadow = impl_->shadows[found->second];
  return shadow.defined() ? shadow : leaf;
}

bool FlatParameters::takes_gradient(const at::Tensor& leaf) {
  Uses* use = leaf.is_cpu() ? impl_->uses_of(leaf) : nullptr;
  if (use) ++use->direct;
  return use != nullptr;
}

void FlatParameters::put_gradient(const at::Tensor& leaf, const GradientWriter& write) {
  impl_->put(impl_->slice_of.at(leaf.unsafeGetTensorImpl()), write);
}

bool FlatParameters::takes_rows(const at::Tensor& leaf) {
  Uses* use = impl_->uses_of(leaf);
  if (!use) return false;
  const int index = impl_->slice_of.at(leaf.unsafeGetTensorImpl());
  if (!leaf.is_cpu() && !impl_->collected(index)) return false;
  ++use->direct;
  return true;
}

void FlatParameters::put_rows(const at::Tensor& leaf, const at::Tensor& indices,
                              const at::Tensor& rows) {
  impl_->put_rows(impl_->slice_of.at(leaf.unsafeGetTensorImpl()), indices, rows);
}

std::vector<int> gradient_ready_order(Model& model, at::Device device) {
  const std::vector<at::Tensor> leaves = model.parameters();
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(leaves.size()); ++i)
    on_gradient(leaves[i], [&order, i](const at::Tensor&) { order.push_back(i); });
  model.loss_sum(model.synthetic_batch(2, 0, device, at::kFloat)).backward();
  for (const at::Tensor& leaf : leaves)
    torch::autograd::impl::set_post_acc_grad_hooks(leaf, nullptr);
  const auto names = model.named_parameters();
  for (int i = 0; i < static_cast<int>(leaves.size()); ++i)
    if (std::find(order.begin(), order.end(), i) == order.end())
      throw RunError("parameter " + names[i].key() + " gets no gradient: take it out of the model");
  return order;
}

}  // namespace scalemark

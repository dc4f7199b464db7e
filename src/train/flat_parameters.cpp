// Assigns parameters to buckets, allocates the buckets, and replaces a model's weights by views of
// them.
#include "train/flat_parameters.hpp"

#include <algorithm>
#include <stdexcept>

namespace scalemark {

namespace {

/// The alignment in elements: 64 bytes of a 2-byte shadow, 128 of fp32, so that slices are aligned
/// in both.
constexpr std::int64_t kAlignment = 32;

std::int64_t align(std::int64_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}

void check_permutation(std::vector<int> order, std::size_t count) {
  std::sort(order.begin(), order.end());
  bool ok = order.size() == count;
  for (std::size_t i = 0; ok && i < count; ++i) ok = order[i] == static_cast<int>(i);
  if (!ok)
    throw std::invalid_argument("gradient-ready order is not a permutation of the model's " +
                                std::to_string(count) + " parameters");
}

/// Returns the bucket for the next parameter. A table that is not reduced gets a bucket of its own.
Bucket& open_bucket(std::vector<Bucket>& buckets, bool reduced, const FlatLayout& layout) {
  const std::int64_t limit = buckets.size() == 1 ? layout.first_bucket_bytes : layout.bucket_bytes;
  if (buckets.empty() || !reduced || !buckets.back().reduced ||
      buckets.back().count * static_cast<std::int64_t>(sizeof(float)) >= limit)
    buckets.emplace_back().reduced = reduced;
  return buckets.back();
}

}  // namespace

void allocate(Bucket& bucket, const at::Device& device, const FlatLayout& layout) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  bucket.weights = at::zeros({bucket.count}, options);
  bucket.gradients = at::zeros({bucket.count}, options);
  for (int i = 0; i < layout.states; ++i)
    bucket.state.push_back(at::zeros({bucket.count}, options));
  if (layout.shadow_dtype != at::kFloat)
    bucket.shadow = at::zeros({bucket.count}, options.dtype(layout.shadow_dtype));
}

std::vector<Bucket> make_buckets(const std::vector<at::Tensor>& leaves,
                                 const std::vector<int>& order, const FlatLayout& layout) {
  check_permutation(order, leaves.size());
  std::vector<Bucket> buckets;
  for (const int parameter : order) {
    const bool reduced = std::ranges::none_of(layout.tables, [&](const EmbeddingTable& table) {
      return table.parameter == parameter && !table.reduced();
    });
    Bucket& bucket = open_bucket(buckets, reduced, layout);
    const at::Tensor& leaf = leaves[static_cast<std::size_t>(parameter)];
    bucket.slices.push_back({parameter, static_cast<int>(buckets.size()) - 1, bucket.count,
                             leaf.numel(), leaf.dim() == 1});
    bucket.count += align(leaf.numel());
    if (layout.first_uses.empty()) continue;
    const int use = layout.first_uses[static_cast<std::size_t>(parameter)];
    bucket.first_use = bucket.slices.size() == 1 ? use : std::min(bucket.first_use, use);
  }
  return buckets;
}

at::Tensor view_of(const at::Tensor& flat, const Slice& slice, const at::Tensor& like) {
  return flat.as_strided(like.sizes(), like.strides(), slice.offset);
}

FlatParameters::FlatParameters(Model& model, const std::vector<int>& order,
                               const FlatLayout& layout)
    : operators_(model.operators()) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> leaves = model.parameters();
  buckets_ = make_buckets(leaves, order, layout);
  for (Bucket& bucket : buckets_) {  // one after the other: each frees what its leaves held
    allocate(bucket, leaves.front().device(), layout);
    for (const Slice& slice : bucket.slices)
      bind(slice, leaves[static_cast<std::size_t>(slice.parameter)]);
  }
  for (const EmbeddingTable& table : layout.tables)
    arrival_->add_table(slice_of(leaves[static_cast<std::size_t>(table.parameter)]), table);
}

/// Moves the values of the leaf into its slice and makes the leaf a view of it.
void FlatParameters::bind(const Slice& slice, at::Tensor leaf) {
  const int index = static_cast<int>(slices_.size());
  const Bucket& bucket = buckets_[static_cast<std::size_t>(slice.bucket)];
  const at::Tensor weight = view_of(bucket.weights, slice, leaf);
  weight.copy_(leaf.detach());
  slice_of_[leaf.unsafeGetTensorImpl()] = index;
  leaf.set_data(weight);
  slices_.push_back(slice);
  leaves_.push_back(leaf);
  arrival_->add_slice(slice.bucket, view_of(bucket.gradients, slice, leaf));
  arrival_->take_from(leaf, index);
  shadows_.emplace_back();
  if (!bucket.shadow.defined()) return;
  shadows_.back() = view_of(bucket.shadow, slice, leaf);
  shadows_.back().copy_(weight);
  shadows_.back().set_requires_grad(true);
  arrival_->take_from(shadows_.back(), index);
}

std::vector<Buffer> FlatParameters::gradient_buffers() const {
  std::vector<Buffer> buffers;
  for (const Bucket& bucket : buckets_)
    buffers.push_back({bucket.gradients.data_ptr(),
                       static_cast<std::size_t>(bucket.reduced ? bucket.count : 0), DataType::f32});
  return buffers;
}

std::vector<int> FlatParameters::parameters_in() const {
  std::vector<int> counts;
  for (const Bucket& bucket : buckets_) counts.push_back(static_cast<int>(bucket.slices.size()));
  return counts;
}

std::vector<int> FlatParameters::first_uses() const {
  std::vector<int> uses;
  for (const Bucket& bucket : buckets_) uses.push_back(bucket.first_use);
  return uses;
}

std::int64_t FlatParameters::parameter_count() const {
  std::int64_t count = 0;
  for (const Slice& slice : slices_) count += slice.count;
  return count;
}

std::int64_t FlatParameters::gradient_bytes() const {
  std::int64_t bytes = 0;
  for (const Bucket& bucket : buckets_) bytes += bucket.gradients.nbytes();
  return bytes;
}

void FlatParameters::set_on_ready(std::function<void(int bucket)> on_ready) {
  arrival_->set_on_ready(std::move(on_ready));
}

void FlatParameters::take_leaf_gradients(bool take) {
  for (int i = 0; i < static_cast<int>(leaves_.size()); ++i)
    if (take)
      arrival_->take_from(leaves_[static_cast<std::size_t>(i)], i);
    else
      forget_gradient(leaves_[static_cast<std::size_t>(i)]);
}

bool FlatParameters::weights_are_finite() const {
  const at::NoGradGuard no_grad;
  constexpr std::int64_t kPart = 1 << 20;  // on the CPU, where the test makes copies as large
  return std::ranges::all_of(buckets_, [](const Bucket& bucket) {
    const auto parts = bucket.weights.split(bucket.weights.is_cpu() ? kPart : bucket.count);
    return std::ranges::all_of(
        parts, [](const at::Tensor& part) { return at::isfinite(part).all().item<bool>(); });
  });
}

/// Returns the slice of a leaf, or -1 for a leaf of another model.
int FlatParameters::slice_of(const at::Tensor& leaf) const {
  const auto found = slice_of_.find(leaf.unsafeGetTensorImpl());
  return found == slice_of_.end() ? -1 : found->second;
}

void FlatParameters::before_use(at::TensorList parameters) {
  if (!on_use_) return;
  for (const at::Tensor& leaf : parameters)
    if (const int slice = slice_of(leaf); slice >= 0)
      on_use_(slices_[static_cast<std::size_t>(slice)].bucket);
}

at::Tensor FlatParameters::compute_weight(const at::Tensor& leaf) {
  const int slice = slice_of(leaf);
  if (slice < 0) return leaf;
  if (at::GradMode::is_enabled()) arrival_->expect(slice);
  const at::Tensor& shadow = shadows_[static_cast<std::size_t>(slice)];
  return shadow.defined() ? shadow : leaf;
}

bool FlatParameters::takes_gradient(const at::Tensor& leaf) {
  const int slice = places_gradient_of(leaf) && at::GradMode::is_enabled() ? slice_of(leaf) : -1;
  if (slice >= 0) arrival_->expect_put(slice);
  return slice >= 0;
}

void FlatParameters::put_gradient(const at::Tensor& leaf, const GradientWriter& write) {
  arrival_->put(slice_of_.at(leaf.unsafeGetTensorImpl()), write);
}

bool FlatParameters::takes_rows(const at::Tensor& leaf) {
  const int slice = at::GradMode::is_enabled() ? slice_of(leaf) : -1;
  if (slice < 0 || (!places_gradient_of(leaf) && !arrival_->collects(slice))) return false;
  arrival_->expect_put(slice);
  return true;
}

void FlatParameters::put_rows(const at::Tensor& leaf, const at::Tensor& indices,
                              const at::Tensor& rows) {
  arrival_->put_rows(slice_of_.at(leaf.unsafeGetTensorImpl()), indices, rows);
}

}  // namespace scalemark

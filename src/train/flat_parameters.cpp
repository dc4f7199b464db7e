// Assigns parameters to buckets, allocates the buckets, and replaces a model's weights by views of
// them.
#include "train/flat_parameters.hpp"

#include <algorithm>
#include <cmath>
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

/// Returns the bucket for the next parameter. A table that is not reduced gets a bucket of its own,
/// and so do the matrices of a `block` of the network (-1: they are of none).
Bucket& open_bucket(std::vector<Bucket>& buckets, bool reduced, int block,
                    const FlatLayout& layout) {
  if (block >= 0) {
    const auto open = std::ranges::find(buckets, block, &Bucket::block);
    if (open != buckets.end()) return *open;
    buckets.emplace_back().block = block;
    return buckets.back();
  }
  const std::int64_t limit = buckets.size() == 1 ? layout.first_bucket_bytes : layout.bucket_bytes;
  if (buckets.empty() || !reduced || !buckets.back().reduced || buckets.back().block >= 0 ||
      buckets.back().count * static_cast<std::int64_t>(sizeof(float)) >= limit)
    buckets.emplace_back().reduced = reduced;
  return buckets.back();
}

/// Returns the parts of slices in the elements [first, first + count).
std::vector<Slice> parts_in(const std::vector<Slice>& slices, std::int64_t first,
                            std::int64_t count) {
  std::vector<Slice> parts;
  for (Slice slice : slices) {
    const std::int64_t end = std::min(slice.offset + slice.count, first + count);
    slice.offset = std::max(slice.offset, first);
    slice.count = end - slice.offset;
    slice.offset -= first;
    if (slice.count > 0) parts.push_back(slice);
  }
  return parts;
}

/// Whether layers read the parameters of a bucket as they are, in fp32.
bool stays_fp32(const Bucket& bucket, const FlatLayout& layout) {
  return layout.shadow_dtype == at::kFloat ||
         (layout.division.divides() &&
          !layout.computed_with[static_cast<std::size_t>(bucket.whole.slices.front().parameter)]);
}

void allocate_weights(Bucket& bucket, const at::Device& device, const FlatLayout& layout) {
  const auto fp32 = at::TensorOptions().dtype(at::kFloat).device(device);
  const Division& division = layout.division;
  const bool shadowed = !stays_fp32(bucket, layout);
  WholeBucket& whole = bucket.whole;
  whole.weights = at::zeros({whole.count}, shadowed ? fp32.dtype(layout.shadow_dtype) : fp32);
  const at::Tensor computed =
      division.frees_weights()
          ? at::zeros({bucket.count}, whole.weights.options())
          : whole.weights.narrow(0, bucket.count * division.rank, bucket.count);
  bucket.weights = shadowed ? at::zeros({bucket.count}, fp32) : computed;
  if (shadowed) bucket.shadow = computed;
}

/// Of a bucket that has weights.
void allocate_others(Bucket& bucket, const FlatLayout& layout) {
  WholeBucket& whole = bucket.whole;
  const auto zeros = [&](std::int64_t count) {
    return at::zeros({count}, bucket.weights.options());
  };
  whole.gradients = zeros(whole.count);
  bucket.gradients = layout.division.divides() ? zeros(bucket.count) : whole.gradients;
  for (int i = 0; i < layout.states; ++i) bucket.state.push_back(zeros(bucket.count));
}

}  // namespace

void hold_memory(const at::Tensor& tensor, bool hold) {
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  const std::size_t bytes = hold ? tensor.nbytes() : 0;
  if (storage.nbytes() == bytes) return;
  storage.set_data_ptr_noswap(c10::GetAllocator(tensor.device().type())->allocate(bytes));
  storage.set_nbytes(bytes);
}

std::vector<Bucket> make_buckets(const std::vector<at::Tensor>& leaves,
                                 const std::vector<int>& order, const FlatLayout& layout) {
  check_permutation(order, leaves.size());
  const Division& division = layout.division;
  std::vector<Bucket> buckets;
  Bucket others;  // of a division: what layers read as it is
  const auto add = [&](Bucket& bucket, int parameter) {
    const auto index = static_cast<std::size_t>(parameter);
    const at::Tensor& leaf = leaves[index];
    bucket.slices.push_back({parameter, -1, bucket.count, leaf.numel(), leaf.dim() == 1});
    bucket.count += align(leaf.numel());
    if (layout.first_uses.empty()) return;
    const int use = layout.first_uses[index];
    bucket.first_use = bucket.slices.size() == 1 ? use : std::min(bucket.first_use, use);
  };
  for (const int parameter : order) {
    const auto index = static_cast<std::size_t>(parameter);
    const bool reduced = std::ranges::none_of(layout.tables, [&](const EmbeddingTable& table) {
      return table.parameter == parameter && !table.reduced();
    });
    const bool divided = division.divides() && layout.computed_with[index];
    const int block = divided && division.frees_weights() ? layout.blocks[index] : -1;
    add(divided || !division.divides() ? open_bucket(buckets, reduced, block, layout) : others,
        parameter);
  }
  if (!others.slices.empty()) buckets.push_back(std::move(others));
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    Bucket& bucket = buckets[i];
    for (Slice& slice : bucket.slices) slice.bucket = static_cast<int>(i);
    bucket.whole = {bucket.count, bucket.slices, {}, {}};
    if (!division.divides()) continue;
    bucket.count = align((bucket.count + division.ranks - 1) / division.ranks);
    bucket.whole.count = bucket.count * division.ranks;
    bucket.slices = parts_in(bucket.slices, bucket.count * division.rank, bucket.count);
  }
  return buckets;
}

at::Tensor view_of(const at::Tensor& flat, const Slice& slice, const at::Tensor& like) {
  return flat.as_strided(like.sizes(), like.strides(), slice.offset);
}

FlatParameters::FlatParameters(Model& model, const std::vector<int>& order,
                               const FlatLayout& layout)
    : operators_(model.operators()), division_(layout.division) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> leaves = model.parameters();
  buckets_ = make_buckets(leaves, order, layout);
  for (Bucket& bucket : buckets_) {  // one after the other: each frees what its leaves held
    allocate_weights(bucket, leaves.front().device(), layout);
    fill(bucket, leaves);
  }
  for (Bucket& bucket : buckets_) {  // out of what all leaves held
    allocate_others(bucket, layout);
    take_gradients(bucket, leaves);
  }
  for (const EmbeddingTable& table : layout.tables)
    arrival_->add_table(slice_of(leaves[static_cast<std::size_t>(table.parameter)]), table);
}

/// Moves the values of its leaves into the bucket, and makes the leaves views of what layers read.
void FlatParameters::fill(Bucket& bucket, const std::vector<at::Tensor>& leaves) {
  const WholeBucket& whole = bucket.whole;
  const auto leaf_of = [&](const Slice& slice) {
    return leaves[static_cast<std::size_t>(slice.parameter)];
  };
  // Of a division the fp32 weights of all ranks exist for this moment alone.
  const bool computes_in_fp32 = whole.weights.scalar_type() == at::kFloat;
  const bool apart = division_.divides() && !(computes_in_fp32 && !division_.frees_weights());
  const at::Tensor flat = !apart ? (computes_in_fp32 ? whole.weights : bucket.weights)
                                 : at::zeros({whole.count}, bucket.weights.options());
  for (const Slice& slice : whole.slices) {
    const at::Tensor leaf = leaf_of(slice);
    view_of(flat, slice, leaf).copy_(leaf.detach());
  }
  if (apart) bucket.weights.copy_(flat.narrow(0, bucket.count * division_.rank, bucket.count));
  if (bucket.shadow.defined()) bucket.shadow.copy_(bucket.weights);
  const at::Tensor read = computes_in_fp32 ? whole.weights : flat;
  for (const Slice& slice : whole.slices) bind(slice, leaf_of(slice), read);
  if (apart && !computes_in_fp32) hold_memory(flat, false);  // nobody reads those leaves
  if (division_.frees_weights()) hold_memory(whole.weights, false);
}

/// Makes the leaf a view of its slice of `flat`, fp32.
void FlatParameters::bind(const Slice& slice, at::Tensor leaf, const at::Tensor& flat) {
  const int index = static_cast<int>(slices_.size());
  const WholeBucket& whole = buckets_[static_cast<std::size_t>(slice.bucket)].whole;
  slice_of_[leaf.unsafeGetTensorImpl()] = index;
  leaf.set_data(view_of(flat, slice, leaf));
  slices_.push_back(slice);
  leaves_.push_back(leaf);
  shadows_.emplace_back();
  if (whole.weights.scalar_type() == at::kFloat) return;
  shadows_.back() = view_of(whole.weights, slice, leaf);
  shadows_.back().set_requires_grad(true);
}

/// Makes the gradients of its leaves arrive in the bucket.
void FlatParameters::take_gradients(const Bucket& bucket, const std::vector<at::Tensor>& leaves) {
  const at::Tensor& gradients = bucket.whole.gradients;
  for (const Slice& slice : bucket.whole.slices) {
    const at::Tensor& leaf = leaves[static_cast<std::size_t>(slice.parameter)];
    const int index = slice_of(leaf);
    arrival_->add_slice(slice.bucket, view_of(gradients, slice, leaf));
    arrival_->take_from(leaf, index);
    const at::Tensor& shadow = shadows_[static_cast<std::size_t>(index)];
    if (shadow.defined()) arrival_->take_from(shadow, index);
  }
  if (division_.frees_gradients()) hold_memory(gradients, false);
}

std::vector<Buffer> FlatParameters::gradient_buffers() const {
  std::vector<Buffer> buffers;
  for (const Bucket& bucket : buckets_)
    buffers.push_back({bucket.whole.gradients.data_ptr(),
                       static_cast<std::size_t>(bucket.reduced ? bucket.whole.count : 0),
                       DataType::f32});
  return buffers;
}

std::vector<int> FlatParameters::parameters_in() const {
  std::vector<int> counts;
  for (const Bucket& bucket : buckets_)
    counts.push_back(static_cast<int>(bucket.whole.slices.size()));
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
  for (const Bucket& bucket : buckets_)
    bytes +=
        bucket.whole.gradients.nbytes() + (division_.divides() ? bucket.gradients.nbytes() : 0);
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
  return std::ranges::all_of(buckets_, [](const Bucket& bucket) {
    if (bucket.weights.numel() == 0) return true;
    const auto [least, most] = at::aminmax(bucket.weights);  // both are NaN where one weight is
    return std::isfinite(least.item<double>()) && std::isfinite(most.item<double>());
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

void FlatParameters::end_block(const at::Tensor& output) {
  if (!on_block_) return;
  const int block = blocks_begun_ - 1;
  on_block_(block, BlockEvent::forward_ended);
  if (output.requires_grad())
    output.register_hook(
        [this, block](const at::Tensor&) { on_block_(block, BlockEvent::backward_begins); });
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

// Assigns parameters to buckets and allocates the buckets.
#include "train/bucket_layout.hpp"

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

}  // namespace scalemark

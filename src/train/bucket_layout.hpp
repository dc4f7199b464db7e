// How a model's parameters lie in buckets: slices of a few flat tensors, in gradient-ready order.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "train/embedding_tables.hpp"

namespace scalemark {

/// Where a parameter lies in its bucket.
struct Slice {
  int parameter;  ///< index into Model::parameters()
  int bucket;
  std::int64_t offset;  ///< elements
  std::int64_t count;
  bool vector;  ///< one-dimensional: a bias, or a norm's gamma or beta
};

struct Bucket {
  /// Elements, padded with zeros so that every slice starts on 64 bytes, in the shadow too.
  std::int64_t count = 0;
  std::vector<Slice> slices;      ///< a parameter lies in one bucket as a whole
  at::Tensor weights;             ///< fp32 [count]
  at::Tensor gradients;           ///< fp32 [count]
  std::vector<at::Tensor> state;  ///< of the optimizer, fp32 [count] each
  at::Tensor shadow;              ///< bf16 or fp16 [count]; undefined in fp32
  bool reduced = true;  ///< false: of a table whose gradient is gathered, alone in its bucket
  int first_use = -1;   ///< least of its parameters' (FlatLayout::first_uses)
};

/// What the buckets hold beside fp32 weights and gradients, and how large they are.
struct FlatLayout {
  std::int64_t bucket_bytes = 25 << 20;       ///< of fp32 gradients, then a bucket is closed
  std::int64_t first_bucket_bytes = 1 << 20;  ///< the same of the first bucket
  int states = 0;                             ///< fp32 tensors that the optimizer keeps
  at::ScalarType shadow_dtype = at::kFloat;   ///< at::kFloat: no shadow
  std::vector<EmbeddingTable> tables = {};
  std::vector<int> first_uses = {};  ///< by parameter, see UseProbe; empty: not known
};

/// Buckets for `leaves`, without memory. `order`: of parameters, gradient-ready. Throws
/// std::invalid_argument where it is not a permutation of them.
std::vector<Bucket> make_buckets(const std::vector<at::Tensor>& leaves,
                                 const std::vector<int>& order, const FlatLayout& layout);

/// The bucket's tensors, of zeros.
void allocate(Bucket& bucket, const at::Device& device, const FlatLayout& layout);

/// The slice's part of one of its bucket's tensors, in the shape and memory format of `like`.
at::Tensor view_of(const at::Tensor& flat, const Slice& slice, const at::Tensor& like);

}  // namespace scalemark

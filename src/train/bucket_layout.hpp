// Defines how the parameters of a model are laid out in buckets: as slices of a few flat tensors,
// in gradient-ready order.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "train/embedding_tables.hpp"

namespace scalemark {

/// Describes where a parameter is stored in its bucket.
struct Slice {
  int parameter;  ///< index into Model::parameters()
  int bucket;
  std::int64_t offset;  ///< elements
  std::int64_t count;
  bool vector;  ///< one-dimensional: a bias, or a norm's gamma or beta
};

/// The flat tensors of one bucket and the slices of its parameters.
struct Bucket {
  /// The number of elements, padded with zeros so that every slice starts on 64 bytes, in the
  /// shadow too.
  std::int64_t count = 0;
  std::vector<Slice> slices;      ///< a parameter lies in one bucket as a whole
  at::Tensor weights;             ///< fp32 [count]
  at::Tensor gradients;           ///< fp32 [count]
  std::vector<at::Tensor> state;  ///< states of the optimizer, fp32 [count] each
  at::Tensor shadow;              ///< bf16 or fp16 [count]; undefined in fp32
  bool reduced = true;  ///< false: of a table whose gradient is gathered, alone in its bucket
  int first_use = -1;   ///< least of its parameters' (FlatLayout::first_uses)
};

/// Defines what the buckets hold in addition to fp32 weights and gradients, and how large they are.
struct FlatLayout {
  std::int64_t bucket_bytes = 25 << 20;  ///< a bucket of so many bytes of fp32 gradients is closed
  std::int64_t first_bucket_bytes = 1 << 20;  ///< size at which the first bucket is closed
  int states = 0;                             ///< fp32 tensors that the optimizer keeps
  at::ScalarType shadow_dtype = at::kFloat;   ///< at::kFloat: no shadow
  std::vector<EmbeddingTable> tables = {};
  std::vector<int> first_uses = {};  ///< by parameter, see UseProbe; empty: unknown
};

/// Returns buckets for `leaves`, without memory. `order` lists the parameters in gradient-ready
/// order. Throws std::invalid_argument where it is not a permutation of them.
std::vector<Bucket> make_buckets(const std::vector<at::Tensor>& leaves,
                                 const std::vector<int>& order, const FlatLayout& layout);

/// Allocates the tensors of a bucket and fills them with zeros.
void allocate(Bucket& bucket, const at::Device& device, const FlatLayout& layout);

/// Returns the slice's part of one of its bucket's tensors, in the shape and memory format of
/// `like`.
at::Tensor view_of(const at::Tensor& flat, const Slice& slice, const at::Tensor& like);

}  // namespace scalemark

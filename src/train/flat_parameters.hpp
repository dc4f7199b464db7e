// Owns weights, gradients, optimizer state and bf16 shadow weights of a model as slices of one
// bucket layout. Leaves become views of the flat fp32 master weights; gradients land in the flat
// gradient buckets, cast to fp32 where the backward pass computed them in bf16, and are summed
// there over micro-batches.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "models/model.hpp"
#include "train/embedding_tables.hpp"
#include "train/row_gradients.hpp"

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
  std::int64_t count = 0;  ///< elements, padded (with zeros) so that every slice starts on 64 bytes
  std::vector<Slice> slices;      ///< a parameter lies in one bucket as a whole
  at::Tensor weights;             ///< fp32 [count]
  at::Tensor gradients;           ///< fp32 [count]
  std::vector<at::Tensor> state;  ///< of the optimizer, fp32 [count] each
  at::Tensor shadow;              ///< bf16 [count]; undefined in fp32
  bool reduced = true;  ///< false: of a table whose gradient is gathered, alone in its bucket
};

/// An embedding table and what this rank has collected of its gradient in the step under way.
struct TableRows {
  EmbeddingTable table;
  int bucket;
  at::Tensor gradient;            ///< fp32 [V, d], a view of the bucket
  RowBuffer rows;                 ///< where the table collects
  double converting_seconds = 0;  ///< adding rows to the slice, all steps so far (converted)
};

/// What the buckets hold beside fp32 weights and gradients, and how large they are.
struct FlatLayout {
  std::int64_t bucket_bytes = 25 << 20;       ///< of fp32 gradients, then a bucket is closed
  std::int64_t first_bucket_bytes = 1 << 20;  ///< the same of the first bucket
  int states = 0;                             ///< fp32 tensors that the optimizer keeps
  at::ScalarType shadow_dtype = at::kFloat;   ///< at::kFloat: no shadow
  std::vector<EmbeddingTable> tables = {};
};

class FlatParameters : public ParameterGate {
 public:
  /// `order`: parameter indices in gradient-ready order (see gradient_ready_order). Copies the
  /// model's weights in and rebinds its leaves, which keep their memory format.
  /// Throws std::invalid_argument where `order` is not a permutation of the parameters.
  FlatParameters(Model& model, const std::vector<int>& order, const FlatLayout& layout);

  std::vector<Bucket>& buckets();
  const std::vector<Slice>& slices() const;  ///< in gradient-ready order
  /// By bucket; of no elements where the bucket is not to be reduced.
  std::vector<Buffer> gradient_buffers();
  std::vector<TableRows>& tables();
  std::vector<int> parameters_in() const;
  std::int64_t parameter_count() const;  ///< without padding
  std::int64_t gradient_bytes() const;   ///< of all buckets, with padding

  /// Called with the bucket index whenever a parameter's gradient is complete in its slice: all
  /// uses, all micro-batches.
  void set_on_ready(std::function<void(int bucket)> on_ready);
  /// Before the forward pass of a micro-batch: the first overwrites gradients, later ones add to
  /// them, the last makes them ready. Without a call every pass is first and last, which will not
  /// do where tables collect rows: those of a first pass replace the ones before.
  void begin_pass(bool first, bool last);
  /// Whether gradients that autograd computes for the leaves are moved here, as they are from the
  /// start. false: they stay with the leaves, for whoever takes them there; shadows are not in use.
  void take_leaf_gradients(bool take);
  /// False where any weight is not finite.
  bool weights_are_finite() const;

  /// The leaf itself, or its view of the shadow: a leaf of its own, whose gradient arrives in the
  /// parameter's slice too. A parameter must reach the loss through one of the two, not both.
  at::Tensor compute_weight(const at::Tensor& leaf) override;
  /// On the CPU layers write gradients of matrices themselves.
  bool takes_gradient(const at::Tensor& leaf) override;
  void put_gradient(const at::Tensor& leaf, const GradientWriter& write) override;
  /// And rows of tables; where these are collected on every device.
  bool takes_rows(const at::Tensor& leaf) override;
  void put_rows(const at::Tensor& leaf, const at::Tensor& indices, const at::Tensor& rows) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Runs one backward pass of two samples and returns the parameter indices in the order in which
/// their gradients arrive. Throws RunError naming a parameter that gets none.
std::vector<int> gradient_ready_order(Model& model, at::Device device);

}  // namespace scalemark

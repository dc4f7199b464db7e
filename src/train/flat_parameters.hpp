// Defines how the parameters of a model are laid out in buckets, as slices of a few flat tensors in
// gradient-ready order, and owns weights, gradients, optimizer state and shadow weights in that
// layout. Leaves become views of the flat fp32 master weights. Gradients go to the flat gradient
// buckets, cast to fp32 where the backward pass computed them in a 2-byte type, and are summed
// there over micro-batches.
#pragma once

#include <ATen/ATen.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "comm/communicator.hpp"
#include "models/model.hpp"
#include "models/operator_set.hpp"
#include "train/embedding_tables.hpp"
#include "train/gradient_arrival.hpp"

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

class FlatParameters : public ParameterGate {
 public:
  /// Copies the model's weights in and rebinds its leaves, which keep their memory format. `order`
  /// holds parameter indices in gradient-ready order (see gradient_ready_order). Throws
  /// std::invalid_argument where it is not a permutation of the parameters.
  FlatParameters(Model& model, const std::vector<int>& order, const FlatLayout& layout);
  FlatParameters(const FlatParameters&) = delete;
  FlatParameters& operator=(const FlatParameters&) = delete;

  std::vector<Bucket>& buckets() { return buckets_; }
  const std::vector<Slice>& slices() const { return slices_; }  ///< in gradient-ready order
  /// Returns one buffer for each bucket, without elements where the bucket is not to be reduced.
  std::vector<Buffer> gradient_buffers() const;
  const OperatorSet& operators() const { return operators_; }
  std::vector<TableRows>& tables() { return arrival_->tables(); }
  std::vector<int> parameters_in() const;  ///< by bucket
  std::vector<int> first_uses() const;     ///< by bucket
  std::int64_t parameter_count() const;    ///< without padding
  std::int64_t gradient_bytes() const;     ///< bytes of all buckets, with padding

  /// Sets a function that is called with the bucket index whenever the gradient of a parameter is
  /// complete over all uses and all micro-batches, in its slice or collected as rows.
  void set_on_ready(std::function<void(int bucket)> on_ready);
  /// Sets a function that is called with the bucket index before a layer uses a parameter in that
  /// bucket. An empty function is not called.
  void set_on_use(std::function<void(int bucket)> on_use) { on_use_ = std::move(on_use); }
  /// Begins a micro-batch, before its forward pass: the first one overwrites gradients, later ones
  /// add to them, and the last one makes them ready. Without a call every pass is first and last,
  /// which is not enough where tables collect rows: those of a first pass replace the ones before.
  void begin_pass(bool first, bool last) { arrival_->begin_pass(first, last); }
  /// Sets whether gradients that autograd computes for the leaves are moved here, which is the
  /// initial state. With false they stay with the leaves, for another owner; shadows are not in use
  /// then.
  void take_leaf_gradients(bool take);
  /// Returns false where any weight is not finite.
  bool weights_are_finite() const;

  void before_use(at::TensorList parameters) override;
  /// Returns the leaf itself, or its view of the shadow, which is a leaf of its own whose gradient
  /// goes to the parameter's slice too. A parameter must reach the loss through one of the two, not
  /// both.
  at::Tensor compute_weight(const at::Tensor& leaf) override;
  /// On the CPU layers write gradients of matrices themselves, where the model's operators do.
  bool takes_gradient(const at::Tensor& leaf) override;
  void put_gradient(const at::Tensor& leaf, const GradientWriter& write) override;
  /// Returns whether a layer passes the gradient as rows, as for tables on the CPU, and on every
  /// device where rows are collected.
  bool takes_rows(const at::Tensor& leaf) override;
  void put_rows(const at::Tensor& leaf, const at::Tensor& indices, const at::Tensor& rows) override;

 private:
  void bind(const Slice& slice, at::Tensor leaf);
  bool places_gradient_of(const at::Tensor& leaf) const {
    return leaf.is_cpu() && operators_.places_gradients();
  }
  int slice_of(const at::Tensor& leaf) const;

  const OperatorSet& operators_;  ///< the model's
  std::vector<Bucket> buckets_;
  std::vector<Slice> slices_;
  std::vector<at::Tensor> leaves_;   ///< indexed by slice
  std::vector<at::Tensor> shadows_;  ///< indexed by slice, views of the buckets; undefined in fp32
  std::unordered_map<const c10::TensorImpl*, int> slice_of_;  ///< by leaf
  std::function<void(int)> on_use_;
  std::shared_ptr<GradientArrival> arrival_ = std::make_shared<GradientArrival>(operators_);
};

}  // namespace scalemark

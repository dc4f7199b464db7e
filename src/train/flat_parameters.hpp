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
#include "config/keys/machine.hpp"
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

/// What layers read and backward passes write of a bucket. A parameter lies in one bucket as a
/// whole.
struct WholeBucket {
  /// The number of elements, padded with zeros so that every slice starts on 64 bytes, in a 2-byte
  /// type too, and so that every rank's block is as long.
  std::int64_t count = 0;
  std::vector<Slice> slices;
  at::Tensor weights;    ///< [count] in the type that layers compute in
  at::Tensor gradients;  ///< fp32 [count]
};

/// The flat tensors that this rank updates: of a bucket that is divided among ranks (--shard) its
/// own block, else all of it, whose weights (or shadow) and gradients are then those of `whole`.
struct Bucket {
  std::int64_t count = 0;         ///< elements, padding included
  std::vector<Slice> slices;      ///< or the parts of them that lie in the block
  at::Tensor weights;             ///< fp32 [count]
  at::Tensor gradients;           ///< fp32 [count]
  std::vector<at::Tensor> state;  ///< states of the optimizer, fp32 [count] each
  at::Tensor shadow;              ///< bf16 or fp16 [count]; undefined in fp32
  bool reduced = true;  ///< false: of a table whose gradient is gathered, alone in its bucket
  int first_use = -1;   ///< least of its parameters' (FlatLayout::first_uses)
  int block = -1;  ///< of a network's blocks the one whose matrices it holds (--shard parameters)
  WholeBucket whole;
};

/// Says among how many ranks buckets are divided, and how.
struct Division {
  Shard shard = Shard::none;
  int ranks = 1, rank = 0;  ///< of this rank's group of --shard_ranks
  bool divides() const { return shard != Shard::none; }
  /// Whether whole gradients, or whole weights, exist only while they are in use.
  bool frees_gradients() const { return shard == Shard::gradients || frees_weights(); }
  bool frees_weights() const { return shard == Shard::parameters; }
};

/// Defines what the buckets hold in addition to fp32 weights and gradients, and how large they are.
struct FlatLayout {
  std::int64_t bucket_bytes = 25 << 20;  ///< a bucket of so many bytes of fp32 gradients is closed
  std::int64_t first_bucket_bytes = 1 << 20;  ///< size at which the first bucket is closed
  int states = 0;                             ///< fp32 tensors that the optimizer keeps
  at::ScalarType shadow_dtype = at::kFloat;   ///< at::kFloat: no shadow
  std::vector<EmbeddingTable> tables = {};
  std::vector<int> first_uses = {};  ///< by parameter, see UseProbe; empty: unknown
  Division division = {};
  std::vector<int> blocks = {};  ///< by parameter: its block, or -1; with a division alone
  /// By parameter: layers read it through ParameterGate::compute_weight(); with a division alone.
  /// Those that are not, biases and the like, get a bucket of their own that stays fp32.
  std::vector<bool> computed_with = {};
};

/// Returns buckets for `leaves`, without memory. `order` lists the parameters in gradient-ready
/// order. Throws std::invalid_argument where it is not a permutation of them.
std::vector<Bucket> make_buckets(const std::vector<at::Tensor>& leaves,
                                 const std::vector<int>& order, const FlatLayout& layout);

/// Allocates the memory of a tensor that owns all of its storage, or frees it. Views of it keep
/// their place.
void hold_memory(const at::Tensor& tensor, bool hold);

/// Sums a value over the ranks that hold parts of every bucket.
using SumOverShards = std::function<at::Tensor(const at::Tensor&)>;

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
  const Division& division() const { return division_; }
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
  /// Sets a function that is called with the number of a block of the network, from 0 in the order
  /// in which they run, when its forward pass has ended, or its backward pass begins.
  enum class BlockEvent { forward_ended, backward_begins };
  void set_on_block(std::function<void(int block, BlockEvent)> on_block) {
    on_block_ = std::move(on_block);
  }
  void set_on_write(std::function<void(int bucket)> on_write) {
    arrival_->set_on_write(std::move(on_write));
  }
  /// Sets what recomputes() returns, at first false.
  void set_recomputes(bool recomputes) { recomputes_ = recomputes; }
  /// Begins a micro-batch, before its forward pass: the first one overwrites gradients, later ones
  /// add to them, and the last one makes them ready. Without a call every pass is first and last,
  /// which is not enough where tables collect rows: those of a first pass replace the ones before.
  void begin_pass(bool first, bool last) {
    arrival_->begin_pass(first, last);
    blocks_begun_ = 0;
  }
  /// Sets whether gradients that autograd computes for the leaves are moved here, which is the
  /// initial state. With false they stay with the leaves, for another owner; shadows are not in use
  /// then.
  void take_leaf_gradients(bool take);
  /// Returns false where any weight is not finite.
  bool weights_are_finite() const;

  void before_use(at::TensorList parameters) override;
  void begin_block() override { ++blocks_begun_; }
  void end_block(const at::Tensor& output) override;
  bool recomputes() const override { return recomputes_; }
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
  void fill(Bucket& bucket, const std::vector<at::Tensor>& leaves);
  void bind(const Slice& slice, at::Tensor leaf, const at::Tensor& flat);
  void take_gradients(const Bucket& bucket, const std::vector<at::Tensor>& leaves);
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
  Division division_;
  std::function<void(int)> on_use_;
  std::function<void(int, BlockEvent)> on_block_;
  int blocks_begun_ = 0;  ///< in this pass
  bool recomputes_ = false;
  std::shared_ptr<GradientArrival> arrival_ = std::make_shared<GradientArrival>(operators_);
};

}  // namespace scalemark

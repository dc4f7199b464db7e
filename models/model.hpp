// Declares what a trainer needs of a network: parameters, a synthetic batch, a loss as a sum and
// its count.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "models/catalog.hpp"
#include "models/parameter_gate.hpp"

namespace scalemark {

/// The inputs and targets of one step, with the counts that throughput and loss need.
struct Batch {
  at::Tensor inputs;        ///< images, or (source) tokens int64 [samples, length]
  at::Tensor targets;       ///< labels int64 [samples], or tokens [samples, length or masked]
  double units = 0;         ///< images, target tokens without padding or sequences: what throughput
                            ///< counts
  double loss_count = 0;    ///< what the loss sum is divided by, over all ranks: images, unpadded
                            ///< tokens, masked positions
  double padded_units = 0;  ///< units and padding
  // The tensors below are undefined where a model does not use them.
  at::Tensor decoder_inputs = {};    ///< for translation: the targets shifted right
  at::Tensor padding = {};           ///< for sources: bool [samples, length]; undefined: none
  at::Tensor segments = {};          ///< for BERT: int64 [samples, length], 0 or 1
  at::Tensor masked_positions = {};  ///< for BERT: int64 [samples, masked], in the sequence
  at::Tensor next_sentence = {};     ///< for BERT: labels int64 [samples], 0 or 1
  std::vector<at::Tensor> more_inputs = {};  ///< for a network of a file: those after the first
};

/// Returns views of `count` samples from `first` on, with their proportional share of units and
/// loss count.
Batch part_of(const Batch& batch, std::int64_t first, std::int64_t count);

/// Returns views of micro-batches of `size` samples, which must divide the batch. Units and loss
/// counts are divided equally.
std::vector<Batch> split(const Batch& batch, std::int64_t size);

/// A range of samples of a task, by number: [first, first + count).
struct SampleRange {
  std::int64_t first, count;
};

/// What the output of a file's network is compared with.
enum class FileLoss { cross_entropy, mse, own };

/// The distribution of the lengths of sequences. With `fixed`, all have the length `longest`; with
/// `uniform`, 1 to `longest`; with `lognormal`, round(median exp(sigma z)) with normal z, limited
/// to 1 to `longest`.
struct Lengths {
  LengthDistribution distribution = LengthDistribution::fixed;
  double median = 0, sigma = 0;  ///< parameters of lognormal

  bool vary() const { return distribution != LengthDistribution::fixed; }
  std::int64_t draw(std::int64_t longest, at::Generator generator) const;
};

/// The options with which a network is built.
struct ModelOptions {
  std::string name;
  std::int64_t image_size = 224;
  std::int64_t num_classes = 1000;
  bool channels_last = true;
  std::int64_t vocabulary = 0;        ///< 0: the model's own
  std::int64_t sequence_length = 64;  ///< tokens of the longest sequence
  Lengths lengths = {};
  double dropout = 0;
  double label_smoothing = 0;
  const OperatorSet* operators = &standard_operators();  ///< what layers compute with
  // The members below are those of a user's network.
  std::string file = {};                       ///< TorchScript or of torch.export; empty: none
  std::string library = {};                    ///< shared library; empty: none
  std::vector<std::int64_t> input_shape = {};  ///< shape of one sample; empty: the file's
  bool integer_inputs = false;                 ///< below num_classes
  FileLoss file_loss = FileLoss::cross_entropy;
  bool counts_tokens = false;  ///< units are targets, not samples
};

/// Where one exists, networks that this thread makes have parameters without values, on LibTorch's
/// meta device: their shapes are all there is. For networks that do not fit into memory.
class ShapesOnly {
 public:
  ShapesOnly();
  ~ShapesOnly();
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;
};

/// A network that can be trained and measured.
class Model : public torch::nn::Module {
 public:
  /// Returns a fixed synthetic batch of `batch_size` samples from `seed` on `device`. `dtype` is
  /// the compute dtype, which images have.
  virtual Batch synthetic_batch(std::int64_t batch_size, std::uint64_t seed, at::Device device,
                                at::ScalarType dtype) = 0;
  /// Returns the batch size nearest to `wanted` with which the network runs.
  virtual std::int64_t possible_batch(std::int64_t wanted) const { return wanted; }
  /// Returns samples of the model's learnable task. Each is determined by `seed` and its number
  /// alone, so ranks may divide a batch in any way. Throws ConfigError where the model has no such
  /// task.
  virtual Batch learnable_batch(const SampleRange& samples, std::uint64_t seed, at::Device device,
                                at::ScalarType dtype);
  /// Returns the sum (not the mean) of the per-sample losses, as an fp32 scalar with graph. Divided
  /// by the loss counts of all ranks it is the loss.
  virtual at::Tensor loss_sum(const Batch& batch) = 0;
  /// Returns the logits in fp32.
  virtual at::Tensor forward(const Batch& batch) = 0;
  /// Sets the gate that every layer calls before it uses parameters, and which provides the tensors
  /// to compute with.
  void set_gate(std::shared_ptr<ParameterGate> gate) { gate_holder_->gate = std::move(gate); }
  /// What layers compute with: standard_operators() at first.
  void set_operators(const OperatorSet& operators) { gate_holder_->operators = &operators; }
  const OperatorSet& operators() const { return *gate_holder_->operators; }

 protected:
  /// Returns at::dropout() computed with the operators of this model.
  at::Tensor dropout(const at::Tensor& x, double probability) const;

  LayerGate gate_holder_ = std::make_shared<GateHolder>();
};

/// Returns the entry of that name in a table of the sizes of a network. Throws
/// std::invalid_argument where there is none.
template <typename Sizes>
const auto& size_named(std::string_view name, const Sizes& sizes) {
  for (const auto& size : sizes)
    if (size.name == name) return size;
  throw std::invalid_argument("the catalog has '" + std::string(name) +
                              "', but its network has no such size");
}

/// Returns the network with the catalog's name, initialised as in its paper from torch's default
/// generator (seed it first). Throws std::invalid_argument for an unknown name.
std::shared_ptr<Model> make_model(const ModelOptions& options);

}  // namespace scalemark

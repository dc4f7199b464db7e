// Defines BERT pretraining (Devlin et al. 2018; google-research/bert): a masked language model and
// the prediction of the next sentence, on synthetic pairs of sentences of full length.
#include <array>

#include "models/catalog.hpp"
#include "models/sequence_layers.hpp"

namespace scalemark {
namespace {

struct BertSize {
  std::string_view name;
  std::int64_t width, heads;
  int layers;
  std::int64_t vocabulary;

  StackShape shape() const {
    return {width, 4 * width, heads, Activation::gelu, LinearInit::bert, /*norm_epsilon=*/1e-12};
  }
};
constexpr std::array kBertSizes{
    BertSize{"bert_base", 768, 12, 12, 30522},
    BertSize{"bert_large", 1024, 16, 24, 30522},
    BertSize{"bert_tiny", 128, 2, 2, 1024},
};

/// Tokens of the published vocabulary: the first of a sequence, the last of a sentence, and the
/// replacement of a masked word. The synthetic words follow them.
constexpr std::int64_t kClass = 101, kSeparator = 102, kMask = 103;

/// Computes the logits of the masked words: a layer of its own, then the word embedding as
/// projection, with bias.
class MaskedHead : public torch::nn::Module {
 public:
  MaskedHead(LayerGate gate, const StackShape& shape, std::int64_t vocabulary)
      : gate_(std::move(gate)),
        dense_(
            std::make_shared<Linear>(gate_, shape.width, shape.width, LinearOptions{shape.init})),
        norm_(std::make_shared<LayerNorm>(gate_, shape.width, shape.norm_epsilon)) {
    bias_ = register_parameter("bias", new_parameter({vocabulary}).zero_());
    register_module("dense", dense_);
    register_module("norm", norm_);
  }
  /// Maps [positions, width] to [positions, vocabulary].
  at::Tensor forward(const at::Tensor& x, Embedding& words) {
    gate_->gate->before_use(bias_);
    return words.project(norm_->forward(dense_->forward(x, Activation::gelu)), bias_);
  }

 private:
  LayerGate gate_;
  std::shared_ptr<Linear> dense_;
  std::shared_ptr<LayerNorm> norm_;
  at::Tensor bias_;
};

/// The two sentences of a sequence: segment 0 is [CLS] words [SEP], segment 1 words [SEP].
struct Sentences {
  std::int64_t length;

  std::int64_t second() const { return length / 2; }  ///< index of the first token of segment 1
  std::array<std::int64_t, 3> special() const { return {0, second() - 1, length - 1}; }
  /// Returns the segment of each token, int64 [length].
  at::Tensor segments() const { return at::arange(length).ge(second()).to(at::kLong); }
};

class Bert : public Model {
 public:
  explicit Bert(const ModelOptions& options) : options_(options) {
    const BertSize& size = size_named(options.name, kBertSizes);
    const StackShape shape = size.shape();
    if (options_.vocabulary == 0) options_.vocabulary = size.vocabulary;
    const auto table = [&](const char* name, std::int64_t rows) {
      return register_module(
          name, std::make_shared<Embedding>(gate_holder_, truncated_normal({rows, shape.width})));
    };
    words_ = table("word_embedding", options_.vocabulary);
    positions_ = table("position_embedding", kBertPositions);
    segments_ = table("segment_embedding", 2);
    norm_ = register_module("embedding_norm", std::make_shared<LayerNorm>(gate_holder_, shape.width,
                                                                          shape.norm_epsilon));
    for (int i = 0; i < size.layers; ++i)
      encoder_.push_back(register_module("encoder" + std::to_string(i + 1),
                                         std::make_shared<EncoderLayer>(gate_holder_, shape)));
    pooler_ =
        register_module("pooler", std::make_shared<Linear>(gate_holder_, shape.width, shape.width,
                                                           LinearOptions{shape.init}));
    masked_ = register_module(
        "masked", std::make_shared<MaskedHead>(gate_holder_, shape, options_.vocabulary));
    next_ = register_module(
        "next", std::make_shared<Linear>(gate_holder_, shape.width, 2, LinearOptions{shape.init}));
  }

  /// Draws uniform words in two sentences. Of the masked words 80 % are hidden, 10 % are exchanged,
  /// and 10 % are kept.
  Batch synthetic_batch(std::int64_t batch_size, std::uint64_t seed, at::Device device,
                        at::ScalarType) override {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    const Sentences sentences{options_.sequence_length};
    const std::int64_t length = sentences.length, masked = masked_positions(length);
    const auto words = [&](std::int64_t count) {
      return at::randint(kMask + 1, options_.vocabulary, {batch_size, count}, generator, at::kLong);
    };
    at::Tensor tokens = words(length);
    // The masked positions are those of the smallest draws: none twice, and none of a special
    // token.
    at::Tensor draws = at::rand({batch_size, length}, generator);
    for (const std::int64_t position : sentences.special()) {
      tokens.select(1, position).fill_(position == 0 ? kClass : kSeparator);
      draws.select(1, position).fill_(2);
    }
    const at::Tensor positions =
        std::get<0>(std::get<1>(draws.topk(masked, 1, /*largest=*/false)).sort(1));
    const at::Tensor hidden = tokens.gather(1, positions);
    const at::Tensor chance = at::rand({batch_size, masked}, generator);
    const at::Tensor seen =
        at::where(chance < 0.8, kMask, at::where(chance < 0.9, words(masked), hidden));

    Batch batch;
    batch.inputs = tokens.scatter(1, positions, seen).to(device);
    batch.targets = hidden.to(device);
    batch.segments = sentences.segments().expand({batch_size, length}).contiguous().to(device);
    batch.masked_positions = positions.to(device);
    batch.next_sentence = at::randint(2, {batch_size}, generator, at::kLong).to(device);
    batch.units = batch.padded_units = static_cast<double>(batch_size);
    batch.loss_count = static_cast<double>(batch_size * masked);
    return batch;
  }

  /// Returns the sum of both losses. Every sequence has the same number of masked positions, and
  /// its next-sentence loss is counted that many times; so the sum divided by the loss count is the
  /// mean over positions plus the mean over sequences.
  at::Tensor loss_sum(const Batch& batch) override {
    const Logits logits = logits_of(batch);
    return cross_entropy_sum(operators(), logits.masked, batch.targets.flatten()) +
           batch.targets.size(1) * cross_entropy_sum(logits.next, batch.next_sentence);
  }

  /// Returns the logits of all masked positions and then those of the next sentence in one row:
  /// fp32 [batch * masked * vocabulary + batch * 2].
  at::Tensor forward(const Batch& batch) override {
    const Logits logits = logits_of(batch);
    return to_fp32(at::cat({logits.masked.flatten(), logits.next.flatten()}));
  }

 private:
  struct Logits {
    at::Tensor masked;  ///< [batch * masked, vocabulary]
    at::Tensor next;    ///< [batch, 2]
  };

  Logits logits_of(const Batch& batch) {
    const at::Tensor x = encode(batch, is_training() ? options_.dropout : 0);
    // Only masked positions are projected to the vocabulary: their rows of [batch * length, width].
    const at::Tensor first = at::arange(x.size(0), batch.inputs.options()) * x.size(1);
    const at::Tensor rows = (batch.masked_positions + first.unsqueeze(1)).flatten();
    const at::Tensor pooled = at::tanh(pooler_->forward(x.select(1, 0)));
    return {masked_->forward(x.flatten(0, 1).index_select(0, rows), *words_),
            next_->forward(pooled)};
  }

  /// Returns [batch, length, width].
  at::Tensor encode(const Batch& batch, double p) {
    const at::Tensor positions = at::arange(batch.inputs.size(1), batch.inputs.options());
    const at::Tensor sum = words_->forward(batch.inputs) + segments_->forward(batch.segments) +
                           positions_->forward(positions);
    at::Tensor x = dropout(norm_->forward(sum), p);
    for (const auto& layer : encoder_)
      x = run_block(gate_holder_, {x},
                    [layer, p](const auto& in) { return layer->forward(in[0], p); });
    return x;
  }

  ModelOptions options_;
  std::shared_ptr<Embedding> words_, positions_, segments_;
  std::shared_ptr<LayerNorm> norm_;
  std::vector<std::shared_ptr<EncoderLayer>> encoder_;
  std::shared_ptr<Linear> pooler_, next_;
  std::shared_ptr<MaskedHead> masked_;
};

}  // namespace

std::shared_ptr<Model> make_bert(const ModelOptions& options) {
  return std::make_shared<Bert>(options);
}

}  // namespace scalemark

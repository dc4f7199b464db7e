// Defines the Transformer, encoder and decoder, for synthetic translation (Vaswani et al. 2017,
// table 3): post-norm layers, a final norm after each stack, ReLU, one embedding for source, target
// and output.
#include <array>
#include <cmath>

#include "models/sequence_layers.hpp"
#include "models/synthetic_data.hpp"

namespace scalemark {
namespace {

struct TransformerSize {
  std::string_view name;
  std::int64_t width, inner, heads;
  int layers;  ///< layers of the encoder, and as many of the decoder
  std::int64_t vocabulary;

  StackShape shape() const { return {width, inner, heads}; }
};
constexpr std::array kTransformerSizes{
    TransformerSize{"transformer_base", 512, 2048, 8, 6, 32768},
    TransformerSize{"transformer_big", 1024, 4096, 16, 6, 32768},
    TransformerSize{"transformer_tiny", 128, 512, 4, 2, 1024},
};

class DecoderLayer : public torch::nn::Module {
 public:
  DecoderLayer(const LayerGate& gate, const StackShape& shape)
      : attention_(std::make_shared<SelfAttention>(gate, shape, /*causal=*/true)),
        attention_norm_(std::make_shared<LayerNorm>(gate, shape.width)),
        cross_(std::make_shared<CrossAttention>(gate, shape)),
        cross_norm_(std::make_shared<LayerNorm>(gate, shape.width)),
        feed_forward_(std::make_shared<FeedForward>(gate, shape)),
        feed_forward_norm_(std::make_shared<LayerNorm>(gate, shape.width)) {
    register_module("attention", attention_);
    register_module("attention_norm", attention_norm_);
    register_module("cross", cross_);
    register_module("cross_norm", cross_norm_);
    register_module("feed_forward", feed_forward_);
    register_module("feed_forward_norm", feed_forward_norm_);
  }
  /// Runs a layer of the decoder. A target position attends to no later one, and padding comes
  /// last, so the self-attention needs no padding mask.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& memory, double p,
                     const at::Tensor& memory_mask) {
    const at::Tensor y = attention_norm_->forward(x, attention_->forward(x, p), p);
    const at::Tensor z = cross_norm_->forward(y, cross_->forward(y, memory, p, memory_mask), p);
    return feed_forward_norm_->forward(z, feed_forward_->forward(z, p), p);
  }

 private:
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<LayerNorm> attention_norm_;
  std::shared_ptr<CrossAttention> cross_;
  std::shared_ptr<LayerNorm> cross_norm_;
  std::shared_ptr<FeedForward> feed_forward_;
  std::shared_ptr<LayerNorm> feed_forward_norm_;
};

class Transformer : public Model {
 public:
  explicit Transformer(const ModelOptions& options) : options_(options) {
    const TransformerSize& size = size_named(options.name, kTransformerSizes);
    const StackShape shape = size.shape();
    root_width_ = std::sqrt(static_cast<double>(size.width));
    if (options_.vocabulary == 0) options_.vocabulary = size.vocabulary;
    embedding_ = register_module(
        "embedding",
        std::make_shared<Embedding>(
            gate_holder_, normal_parameter({options_.vocabulary, size.width}, 1 / root_width_)));
    for (int i = 0; i < size.layers; ++i)
      encoder_.push_back(register_module("encoder" + std::to_string(i + 1),
                                         std::make_shared<EncoderLayer>(gate_holder_, shape)));
    encoder_norm_ =
        register_module("encoder_norm", std::make_shared<LayerNorm>(gate_holder_, size.width));
    for (int i = 0; i < size.layers; ++i)
      decoder_.push_back(register_module("decoder" + std::to_string(i + 1),
                                         std::make_shared<DecoderLayer>(gate_holder_, shape)));
    decoder_norm_ =
        register_module("decoder_norm", std::make_shared<LayerNorm>(gate_holder_, size.width));
    positions_ =
        register_buffer("positions", sinusoidal_positions(options.sequence_length, size.width));
  }

  /// Draws uniform tokens. A target is as long as its source.
  Batch synthetic_batch(std::int64_t batch_size, std::uint64_t seed, at::Device device,
                        at::ScalarType) override {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < batch_size; ++i)
      lengths.push_back(options_.lengths.draw(options_.sequence_length, generator));
    const auto tokens = [&] {
      const at::Tensor all = at::randint(
          1, options_.vocabulary, {batch_size, options_.sequence_length}, generator, at::kLong);
      std::vector<at::Tensor> sequences;
      for (std::int64_t i = 0; i < batch_size; ++i)
        sequences.push_back(all[i].narrow(0, 0, lengths[static_cast<std::size_t>(i)]));
      return sequences;
    };
    const auto sources = tokens();  // drawn first
    return translation(sources, tokens(), device);
  }

  Batch learnable_batch(const SampleRange& samples, std::uint64_t seed, at::Device device,
                        at::ScalarType) override {
    const auto sources = learnable_sequences(samples, options_.lengths, options_.sequence_length,
                                             options_.vocabulary, seed);
    std::vector<at::Tensor> targets;
    for (const at::Tensor& source : sources)
      targets.push_back(learnable_translation(source, options_.vocabulary));
    return translation(sources, targets, device);
  }

  at::Tensor loss_sum(const Batch& batch) override {
    return cross_entropy_sum(operators(), logits(batch).flatten(0, 1), batch.targets.flatten(),
                             options_.label_smoothing);
  }

  at::Tensor forward(const Batch& batch) override {  // logits, fp32 [batch, length, vocabulary]
    return to_fp32(logits(batch));
  }

 private:
  at::Tensor logits(const Batch& batch) {
    const double p = is_training() ? options_.dropout : 0;
    at::Tensor memory = embed(batch.inputs, p);
    const at::Tensor mask = padding_mask(batch.padding, memory.scalar_type());
    for (const auto& layer : encoder_)
      memory = run_block(gate_holder_, {memory}, [layer, p, mask](const auto& in) {
        return layer->forward(in[0], p, mask);
      });
    memory = encoder_norm_->forward(memory);
    at::Tensor x = embed(batch.decoder_inputs, p);
    for (const auto& layer : decoder_)
      x = run_block(gate_holder_, {x, memory}, [layer, p, mask](const auto& in) {
        return layer->forward(in[0], in[1], p, mask);
      });
    return embedding_->project(decoder_norm_->forward(x));
  }

  /// Makes a batch of sequences, padded at the end to the longest of the batch. The decoder sees
  /// the targets shifted right, after token 0.
  static Batch translation(const std::vector<at::Tensor>& sources,
                           const std::vector<at::Tensor>& targets, at::Device device) {
    Batch batch = text_batch(sources, targets, device);
    const at::Tensor shifted = at::constant_pad_nd(batch.targets.slice(1, 0, -1), {1, 0}, 0);
    batch.decoder_inputs = shifted.clamp_min(0);
    if (batch.units < batch.padded_units) batch.padding = batch.targets == kIgnoredLabel;
    return batch;
  }

  /// Maps int64 [batch, length] to [batch, length, width]; vectors are multiplied by sqrt(width)
  /// (3.4).
  at::Tensor embed(const at::Tensor& tokens, double p) {
    const at::Tensor vectors = embedding_->forward(tokens) * root_width_;
    const at::Tensor positions = positions_.narrow(0, 0, tokens.size(1));
    return dropout(vectors + positions.to(vectors.scalar_type()), p);
  }

  ModelOptions options_;
  double root_width_;
  std::shared_ptr<Embedding> embedding_;
  std::vector<std::shared_ptr<EncoderLayer>> encoder_;
  std::shared_ptr<LayerNorm> encoder_norm_;
  std::vector<std::shared_ptr<DecoderLayer>> decoder_;
  std::shared_ptr<LayerNorm> decoder_norm_;
  at::Tensor positions_;  ///< fp64 [length, width]
};

}  // namespace

std::shared_ptr<Model> make_transformer(const ModelOptions& options) {
  return std::make_shared<Transformer>(options);
}

}  // namespace scalemark

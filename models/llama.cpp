// Defines Llama 3 (Grattafiori et al. 2024): pre-norm with RMSNorm, SwiGLU, rotary positions and
// grouped keys, no biases.
#include <array>
#include <cmath>
#include <numbers>

#include "models/sequence_layers.hpp"
#include "models/task_models.hpp"

namespace scalemark {
namespace {

struct LlamaSize {
  std::string_view name;
  std::int64_t width, inner, heads, key_heads;
  int layers;
  bool stretched;  ///< positions are those of Llama 3.1 and newer

  StackShape shape() const {
    return {.width = width,
            .inner = inner,
            .heads = heads,
            .activation = Activation::swiglu,
            .init = LinearInit::normal,
            .key_heads = key_heads,
            .bias = false,
            .residual_gain = 1 / std::sqrt(2. * layers)};
  }
};
constexpr std::array kLlamaSizes{
    LlamaSize{"llama3_8b", 4096, 14336, 32, 8, 32, false},
    LlamaSize{"llama3_1b", 2048, 8192, 32, 8, 16, true},
    LlamaSize{"llama_125m", 768, 2048, 12, 4, 12, false},
    LlamaSize{"llama_tiny", 128, 352, 4, 2, 2, true},
};

/// The slowest frequencies are divided by 32, those of 8,192 positions or fewer to a turn less, and
/// those of fewer than 2,048 not at all (llama-models, models/llama3/model.py, apply_scaling).
double stretched_frequency(double frequency) {
  constexpr double kFactor = 32, kTrained = 8192, kLow = 1, kHigh = 4;
  const double turns = kTrained * frequency / (2 * std::numbers::pi);
  const double kept = std::clamp((turns - kLow) / (kHigh - kLow), 0., 1.);
  return frequency * (kept + (1 - kept) / kFactor);
}

/// Returns the rotations of `length` positions, fp64 [length, depth / 2]: of pair i by angle
/// position / 500000^(2 i / depth).
Rotation rotary_positions(std::int64_t length, std::int64_t depth, bool stretched) {
  at::Tensor frequencies =
      at::exp(at::arange(0, depth, 2, at::kDouble) * (-std::log(5e5) / static_cast<double>(depth)));
  if (stretched)
    for (double *f = frequencies.mutable_data_ptr<double>(), *const end = f + frequencies.numel();
         f != end; ++f)
      *f = stretched_frequency(*f);
  const at::Tensor angles = at::outer(at::arange(length, at::kDouble), frequencies);
  return {at::cos(angles), at::sin(angles)};
}

class Llama : public LanguageModel {
 public:
  explicit Llama(const ModelOptions& options) : LanguageModel(options) {
    const LlamaSize& size = size_named(options.name, kLlamaSizes);
    words_ = register_module("word_embedding",
                             std::make_shared<Embedding>(
                                 gate_holder_, normal_parameter({vocabulary(), size.width}, 0.02)));
    for (int i = 0; i < size.layers; ++i)
      layers_.push_back(register_module(
          "layer" + std::to_string(i + 1),
          std::make_shared<PreNormLayer<RmsNorm>>(gate_holder_, size.shape(), /*causal=*/true)));
    norm_ = register_module("norm", std::make_shared<RmsNorm>(gate_holder_, size.width));
    if (!find_model(options.name)->tied)
      head_ = register_module(
          "head", std::make_shared<Linear>(gate_holder_, size.width, vocabulary(),
                                           LinearOptions{LinearInit::normal, /*bias=*/false}));
    const Rotation rotation = rotary_positions(longest(), size.width / size.heads, size.stretched);
    cosines_ = register_buffer("cosines", rotation.cosines);
    sines_ = register_buffer("sines", rotation.sines);
  }

 private:
  at::Tensor logits(const at::Tensor& tokens) override {
    const double p = dropped();
    at::Tensor x = dropout(words_->forward(tokens), p);
    const auto of_these = [&](const at::Tensor& all) {
      return all.narrow(0, 0, tokens.size(1)).to(at::promote_types(x.scalar_type(), at::kFloat));
    };
    const Rotation rotation{of_these(cosines_), of_these(sines_)};
    for (const auto& layer : layers_)
      x = run_block(gate_holder_, {x}, [layer, p, rotation](const auto& in) {
        return layer->forward(in[0], p, rotation);
      });
    x = norm_->forward(x);
    return head_ ? head_->forward(x) : words_->project(x);
  }

  std::shared_ptr<Embedding> words_;
  std::vector<std::shared_ptr<PreNormLayer<RmsNorm>>> layers_;
  std::shared_ptr<RmsNorm> norm_;
  std::shared_ptr<Linear> head_;  ///< null: the words' table
  at::Tensor cosines_, sines_;    ///< fp64 [length, depth / 2]
};

}  // namespace

std::shared_ptr<Model> make_llama(const ModelOptions& options) {
  return std::make_shared<Llama>(options);
}

}  // namespace scalemark

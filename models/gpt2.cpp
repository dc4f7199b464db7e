// Defines GPT-2 (Radford et al. 2019; openai/gpt-2): pre-norm, tanh GELU, learned positions, one
// table for words and output.
#include <array>
#include <cmath>

#include "models/sequence_layers.hpp"
#include "models/task_models.hpp"

namespace scalemark {
namespace {

struct Gpt2Size {
  std::string_view name;
  std::int64_t width, heads;
  int layers;

  StackShape shape() const {
    return {.width = width,
            .inner = 4 * width,
            .heads = heads,
            .activation = Activation::gelu_tanh,
            .init = LinearInit::normal,
            .residual_gain = 1 / std::sqrt(2. * layers)};
  }
};
constexpr std::array kGpt2Sizes{
    Gpt2Size{"gpt2", 768, 12, 12},
    Gpt2Size{"gpt2_xl", 1600, 25, 48},
};

class Gpt2 : public LanguageModel {
 public:
  explicit Gpt2(const ModelOptions& options) : LanguageModel(options) {
    const Gpt2Size& size = size_named(options.name, kGpt2Sizes);
    const auto table = [&](const char* name, std::int64_t rows) {
      return register_module(name, std::make_shared<Embedding>(
                                       gate_holder_, normal_parameter({rows, size.width}, 0.02)));
    };
    words_ = table("word_embedding", vocabulary());
    positions_ = table("position_embedding", kGpt2Positions);
    for (int i = 0; i < size.layers; ++i)
      layers_.push_back(register_module(
          "layer" + std::to_string(i + 1),
          std::make_shared<PreNormLayer<LayerNorm>>(gate_holder_, size.shape(), /*causal=*/true)));
    norm_ = register_module("norm", std::make_shared<LayerNorm>(gate_holder_, size.width));
  }

 private:
  at::Tensor logits(const at::Tensor& tokens) override {
    const double p = dropped();
    const at::Tensor positions = at::arange(tokens.size(1), tokens.options());
    at::Tensor x = dropout(words_->forward(tokens) + positions_->forward(positions), p);
    for (const auto& layer : layers_)
      x = run_block(gate_holder_, {x},
                    [layer, p](const auto& in) { return layer->forward(in[0], p); });
    return words_->project(norm_->forward(x));
  }

  std::shared_ptr<Embedding> words_, positions_;
  std::vector<std::shared_ptr<PreNormLayer<LayerNorm>>> layers_;
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace

std::shared_ptr<Model> make_gpt2(const ModelOptions& options) {
  return std::make_shared<Gpt2>(options);
}

}  // namespace scalemark

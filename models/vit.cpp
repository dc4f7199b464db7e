// Defines the Vision Transformer (Dosovitskiy et al. 2021) with patches of 16 x 16 pixels:
// pre-norm, exact GELU, learned positions, a class token.
#include <array>

#include "models/sequence_layers.hpp"
#include "models/task_models.hpp"

namespace scalemark {
namespace {

constexpr std::int64_t kPatch = 16;

struct VitSize {
  std::string_view name;
  std::int64_t width, heads;
  int layers;

  StackShape shape() const {
    return {width, 4 * width, heads, Activation::gelu, LinearInit::xavier, /*norm_epsilon=*/1e-6};
  }
};
constexpr std::array kVitSizes{
    VitSize{"vit_b_16", 768, 12, 12},
    VitSize{"vit_l_16", 1024, 16, 24},
};

class Vit : public ImageModel {
 public:
  explicit Vit(const ModelOptions& options) : ImageModel(options) {
    const VitSize& size = size_named(options.name, kVitSizes);
    const StackShape shape = size.shape();
    const std::int64_t side = options.image_size / kPatch;
    class_token_ = register_parameter("class_token", truncated_normal({1, 1, size.width}));
    positions_ =
        register_parameter("positions", truncated_normal({1, side * side + 1, size.width}));
    const ConvOptions patches{kPatch, kPatch, 0, /*bias=*/true, options.channels_last};
    patches_ =
        register_module("patches", std::make_shared<Conv2d>(gate_holder_, 3, size.width, patches));
    for (int i = 0; i < size.layers; ++i)
      layers_.push_back(register_module(
          "layer" + std::to_string(i + 1),
          std::make_shared<PreNormLayer<LayerNorm>>(gate_holder_, shape, /*causal=*/false)));
    norm_ = register_module(
        "norm", std::make_shared<LayerNorm>(gate_holder_, size.width, shape.norm_epsilon));
    head_ = register_module("head",
                            std::make_shared<Linear>(gate_holder_, size.width, options.num_classes,
                                                     LinearOptions{LinearInit::bert}));
    dropout_ = options.dropout;
  }

  at::Tensor forward(const Batch& batch) override {
    const double p = is_training() ? dropout_ : 0;
    // [batch, width, rows, columns] to [batch, patches, width]
    const at::Tensor image =
        dequantized(patches_->forward(batch.inputs)).flatten(2).transpose(1, 2);
    gate_holder_->gate->before_use({class_token_, positions_});
    const auto like_image = [&](const at::Tensor& leaf) { return leaf.to(image.scalar_type()); };
    at::Tensor x = at::cat({like_image(class_token_).expand({image.size(0), -1, -1}), image}, 1);
    x = dropout(x + like_image(positions_), p);
    for (const auto& layer : layers_)
      x = run_block(gate_holder_, {x},
                    [layer, p](const auto& in) { return layer->forward(in[0], p); });
    return to_fp32(head_->forward(norm_->forward(x.select(1, 0))));
  }

 private:
  at::Tensor class_token_;  ///< fp32 [1, 1, width]
  at::Tensor positions_;    ///< fp32 [1, patches + 1, width]
  std::shared_ptr<Conv2d> patches_;
  std::vector<std::shared_ptr<PreNormLayer<LayerNorm>>> layers_;
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<Linear> head_;
  double dropout_;
};

}  // namespace

std::shared_ptr<Model> make_vit(const ModelOptions& options) {
  return std::make_shared<Vit>(options);
}

}  // namespace scalemark

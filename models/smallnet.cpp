// Defines a small convolutional net without BatchNorm: every sample's gradient is independent of
// the others, so N ranks x batch b must give the gradients of one rank x batch N*b. It computes
// real gradients in milliseconds.
#include <array>
#include <vector>

#include "models/task_models.hpp"

namespace scalemark {
namespace {

class SmallNet : public ImageModel {
 public:
  explicit SmallNet(const ModelOptions& options) : ImageModel(options) {
    constexpr std::array<std::int64_t, 4> channels{3, 16, 32, 64};
    for (std::size_t i = 0; i + 1 < channels.size(); ++i) {
      const ConvOptions conv{3, 2, 1, true, options.channels_last};
      convolutions_.push_back(register_module(
          "conv" + std::to_string(i + 1),
          std::make_shared<Conv2d>(gate_holder_, channels[i], channels[i + 1], conv)));
    }
    classifier_ = register_module(
        "classifier", std::make_shared<Linear>(gate_holder_, channels.back(), options.num_classes));
  }

  at::Tensor forward(const Batch& batch) override {  // for 32x32 images: 16x16x16, 8x8x32, 4x4x64
    at::Tensor x = batch.inputs;
    for (const auto& convolution : convolutions_) x = convolution->forward(x, Activation::relu);
    return to_fp32(classifier_->forward(dequantized(x).mean({2, 3})));
  }

 private:
  std::vector<std::shared_ptr<Conv2d>> convolutions_;
  std::shared_ptr<Linear> classifier_;
};

}  // namespace

std::shared_ptr<Model> make_smallnet(const ModelOptions& options) {
  return std::make_shared<SmallNet>(options);
}

}  // namespace scalemark

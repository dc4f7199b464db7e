// Defines AlexNet for images, in the form of Krizhevsky 2014 (one tower, no local response
// normalisation) that torchvision has. Convolutions are initialised as those of ResNet, linear
// layers as torch's.
#include <array>

#include "models/task_models.hpp"

namespace scalemark {
namespace {

class AlexNet : public ImageModel {
 public:
  explicit AlexNet(const ModelOptions& options) : ImageModel(options), dropout_(options.dropout) {
    const auto convolution = [&](const char* name, std::int64_t in, std::int64_t out,
                                 std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
      const ConvOptions conv{kernel, stride, padding, true, options.channels_last};
      return register_module(name, std::make_shared<Conv2d>(gate_holder_, in, out, conv));
    };
    convolutions_ = {convolution("conv1", 3, 64, 11, 4, 2), convolution("conv2", 64, 192, 5, 1, 2),
                     convolution("conv3", 192, 384, 3, 1, 1),
                     convolution("conv4", 384, 256, 3, 1, 1),
                     convolution("conv5", 256, 256, 3, 1, 1)};
    const auto linear = [&](const char* name, std::int64_t in, std::int64_t out) {
      return register_module(name, std::make_shared<Linear>(gate_holder_, in, out));
    };
    hidden_ = {linear("hidden1", 256 * 6 * 6, 4096), linear("hidden2", 4096, 4096)};
    classifier_ = linear("classifier", 4096, options.num_classes);
  }

  at::Tensor forward(const Batch& batch) override {
    at::Tensor x = batch.inputs;
    for (const std::size_t i : {0, 1, 2, 3, 4}) {  // 224x224 -> 27x27x64, 13x13x192, ... 6x6x256
      x = convolutions_[i]->forward(x, Activation::relu);
      if (i != 2 && i != 3) x = max_pool(gate_holder_, x, 3, 2);
    }
    x = at::adaptive_avg_pool2d(dequantized(x), {6, 6}).flatten(1);
    const double p = is_training() ? dropout_ : 0;
    for (const auto& layer : hidden_) x = layer->forward(dropout(x, p), Activation::relu);
    return to_fp32(classifier_->forward(x));
  }

 private:
  double dropout_;
  std::array<std::shared_ptr<Conv2d>, 5> convolutions_;
  std::array<std::shared_ptr<Linear>, 2> hidden_;
  std::shared_ptr<Linear> classifier_;
};

}  // namespace

std::shared_ptr<Model> make_alexnet(const ModelOptions& options) {
  return std::make_shared<AlexNet>(options);
}

}  // namespace scalemark

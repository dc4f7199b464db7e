// Defines VGG-16 for images (Simonyan and Zisserman 2014, table 1, configuration D): thirteen 3x3
// convolutions without normalisation, and three linear layers that hold nine tenths of the
// parameters. Convolutions are initialised as torchvision's, linear layers as torch's.
#include <array>
#include <vector>

#include "models/task_models.hpp"

namespace scalemark {
namespace {

struct VggStage {
  std::int64_t width;
  int convolutions;
};
constexpr std::array kVggStages{VggStage{64, 2}, VggStage{128, 2}, VggStage{256, 3},
                                VggStage{512, 3}, VggStage{512, 3}};

class Vgg16 : public ImageModel {
 public:
  explicit Vgg16(const ModelOptions& options) : ImageModel(options), dropout_(options.dropout) {
    std::int64_t channels = 3;
    for (std::size_t stage = 0; stage < kVggStages.size(); ++stage) {
      for (int i = 0; i < kVggStages[stage].convolutions; ++i) {
        const ConvOptions conv{3, 1, 1, true, options.channels_last};
        stages_[stage].push_back(register_module(
            "conv" + std::to_string(stage + 1) + "_" + std::to_string(i + 1),
            std::make_shared<Conv2d>(gate_holder_, channels, kVggStages[stage].width, conv)));
        channels = kVggStages[stage].width;
      }
    }
    const auto linear = [&](const char* name, std::int64_t in, std::int64_t out) {
      return register_module(name, std::make_shared<Linear>(gate_holder_, in, out));
    };
    hidden_ = {linear("hidden1", channels * 7 * 7, 4096), linear("hidden2", 4096, 4096)};
    classifier_ = linear("classifier", 4096, options.num_classes);
  }

  at::Tensor forward(const Batch& batch) override {
    at::Tensor x = batch.inputs;
    for (const auto& stage : stages_) {  // 224x224 -> 112x112x64, ... 7x7x512
      for (const auto& convolution : stage) x = convolution->forward(x, Activation::relu);
      x = max_pool(gate_holder_, x, 2, 2);
    }
    x = at::adaptive_avg_pool2d(dequantized(x), {7, 7}).flatten(1);
    const double p = is_training() ? dropout_ : 0;
    for (const auto& layer : hidden_) x = dropout(layer->forward(x, Activation::relu), p);
    return to_fp32(classifier_->forward(x));
  }

 private:
  double dropout_;
  std::array<std::vector<std::shared_ptr<Conv2d>>, kVggStages.size()> stages_;
  std::array<std::shared_ptr<Linear>, 2> hidden_;
  std::shared_ptr<Linear> classifier_;
};

}  // namespace

std::shared_ptr<Model> make_vgg(const ModelOptions& options) {
  return std::make_shared<Vgg16>(options);
}

}  // namespace scalemark

// Defines ResNet-18, 34, 50, 101 and 152 for images (He et al. 2015a, table 1), v1.5: the 3x3
// convolution of the bottleneck has the stride. They are initialised as in torchvision: Kaiming
// fan_out, gamma 1.
#include <ATen/Parallel.h>

#include <array>
#include <utility>
#include <vector>

#include "models/task_models.hpp"

namespace scalemark {
namespace {

constexpr int kStages = 4;

struct Depth {
  std::string_view name;
  bool bottleneck;
  std::array<int, kStages> blocks;  ///< number of blocks in conv2_x .. conv5_x
};
constexpr std::array kDepths{
    Depth{"resnet18", false, {2, 2, 2, 2}},  Depth{"resnet34", false, {3, 4, 6, 3}},
    Depth{"resnet50", true, {3, 4, 6, 3}},   Depth{"resnet101", true, {3, 4, 23, 3}},
    Depth{"resnet152", true, {3, 8, 36, 3}},
};

std::shared_ptr<ConvNorm> conv_norm(const LayerGate& gate, std::int64_t in, std::int64_t out,
                                    std::int64_t kernel, std::int64_t stride, bool channels_last) {
  const ConvOptions options{kernel, stride, kernel / 2, false, channels_last};
  return std::make_shared<ConvNorm>(gate, in, out, options);
}

/// A residual block: 3x3, 3x3 (basic) or 1x1, 3x3 with the stride, 1x1 (bottleneck), and the
/// shortcut.
class Block : public torch::nn::Module {
 public:
  /// Maps [N, in, H, W] to [N, width or 4 width, H / stride, W / stride].
  Block(const LayerGate& gate, std::int64_t in, std::int64_t width, std::int64_t stride,
        bool bottleneck, bool channels_last) {
    const auto add = [&](std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t by) {
      auto layer = conv_norm(gate, from, to, kernel, by, channels_last);
      layers_.push_back(register_module("layer" + std::to_string(layers_.size() + 1), layer));
    };
    const std::int64_t out = bottleneck ? 4 * width : width;
    if (bottleneck) {
      add(in, width, 1, 1);
      add(width, width, 3, stride);
      add(width, out, 1, 1);
    } else {
      add(in, width, 3, stride);
      add(width, out, 3, 1);
    }
    if (stride != 1 || in != out)
      shortcut_ = register_module("shortcut", conv_norm(gate, in, out, 1, stride, channels_last));
  }

  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = x;
    for (std::size_t i = 0; i + 1 < layers_.size(); ++i)
      y = layers_[i]->forward(y, Activation::relu);
    return layers_.back()->add_relu(y, shortcut_ ? shortcut_->forward(x) : x);
  }

 private:
  std::vector<std::shared_ptr<ConvNorm>> layers_;
  std::shared_ptr<ConvNorm> shortcut_;
};

class ResNet : public ImageModel {
 public:
  explicit ResNet(const ModelOptions& options) : ImageModel(options) {
    const Depth& depth = size_named(options.name, kDepths);
    stem_ = register_module("stem", conv_norm(gate_holder_, 3, 64, 7, 2, options.channels_last));
    std::int64_t channels = 64;
    for (int stage = 0; stage < kStages; ++stage) {
      const std::int64_t width = 64 << stage;
      for (int block = 0; block < depth.blocks[stage]; ++block) {
        const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        const auto name = "conv" + std::to_string(stage + 2) + "_" + std::to_string(block + 1);
        stages_[stage].push_back(register_module(
            name, std::make_shared<Block>(gate_holder_, channels, width, stride, depth.bottleneck,
                                          options.channels_last)));
        channels = depth.bottleneck ? 4 * width : width;
      }
    }
    classifier_ = register_module(
        "classifier", std::make_shared<Linear>(gate_holder_, channels, options.num_classes));
  }

  at::Tensor forward(const Batch& batch) override {
    const auto pooled = [this](const at::Tensor& images) {  // of 7x7x512 or 7x7x2048 of 224x224
      return dequantized(features(images, kStages - 1)).mean({2, 3});
    };
    return to_fp32(classifier_->forward(takes_shares(batch.inputs)
                                            ? operators().in_shares(batch.inputs, pooled)
                                            : pooled(batch.inputs)));
  }

 private:
  /// Returns the output of `stage` for images [N, 3, H, W]. Stage 0 is conv2_x with the stem before
  /// it.
  at::Tensor features(const at::Tensor& images, int stage) {
    const std::int64_t part = images_at_once(images, stage);
    if (images.size(0) > part) {
      std::vector<at::Tensor> parts;
      for (const at::Tensor& some : images.split(part)) parts.push_back(features(some, stage));
      return at::cat(parts);
    }
    at::Tensor x = stage == 0 ? stem(images) : features(images, stage - 1);
    for (const auto& block : stages_[stage])
      x = run_block(gate_holder_, {x}, [block](const auto& in) { return block->forward(in[0]); });
    return x;
  }

  /// Maps [N, 3, H, W] to [N, 64, H / 4, W / 4].
  at::Tensor stem(const at::Tensor& images) {
    return max_pool(gate_holder_, stem_->forward(images, Activation::relu), 3, 2, 1);
  }

  bool is_cut(const at::Tensor& images) const {
    return images.is_cpu() && stem_->is_frozen() &&
           !stem_->is_quantized();  // its tensors have a quarter of the bytes
  }

  /// Returns how many images pass a stage at once. Frozen layers on a CPU take so few that the
  /// output of one layer is still in the caches when the next one reads it; the last stage is
  /// small, and reads its weights once.
  std::int64_t images_at_once(const at::Tensor& images, int stage) const {
    constexpr std::array<std::int64_t, kStages> of_a_share{2, 2, 8, 0}, of_a_thread{1, 1, 2, 0};
    if (!is_cut(images) || of_a_share[stage] == 0) return images.size(0);
    const int threads = at::in_parallel_region() ? 1 : at::get_num_threads();
    return threads == 1 ? of_a_share[stage] : of_a_thread[stage] * threads;
  }

  /// Returns whether every thread computes its own share of the batch, which pays where each has
  /// enough images to read all weights for them alone. The first pass is excluded, since layers
  /// pack their weights in it.
  bool takes_shares(const at::Tensor& images) {
    constexpr std::int64_t fewest = 8;  // for each thread
    if (!is_cut(images)) return false;
    return std::exchange(is_packed_, true) && images.size(0) >= fewest * at::get_num_threads();
  }

  std::shared_ptr<ConvNorm> stem_;
  std::array<std::vector<std::shared_ptr<Block>>, kStages> stages_;
  std::shared_ptr<Linear> classifier_;
  bool is_packed_ = false;  ///< frozen layers have met a batch
};

}  // namespace

std::shared_ptr<Model> make_resnet(const ModelOptions& options) {
  return std::make_shared<ResNet>(options);
}

}  // namespace scalemark

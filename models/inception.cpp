// Defines Inception v3 for images (Szegedy et al. 2016, table 1) as torchvision has it, without the
// auxiliary classifier, which tf_cnn_benchmarks leaves out too. Convolutions are initialised as
// those of ResNet.
#include <array>
#include <vector>

#include "models/task_models.hpp"

namespace scalemark {
namespace {

struct InceptionConv {
  std::int64_t out, height = 1, width = 1, stride = 1;
  bool padded = true;  ///< so that stride 1 keeps the grid
};

/// A sequence of convolutions. With `forked`, the last two both read the output of the one before
/// them.
struct InceptionBranch {
  std::vector<InceptionConv> convolutions;
  bool forked = false;
};

/// Parallel branches. The last one pools 3x3: the mean and a 1x1 convolution of `pooled` channels
/// or, where that is 0, the maximum with stride 2.
struct InceptionBlock {
  std::vector<InceptionBranch> branches;
  std::int64_t pooled;
};

InceptionConv halving(std::int64_t out) { return {out, 3, 3, 2, false}; }

// The blocks are those of the paper's figures 5, 6 and 7, and of figure 10 where the grid is
// halved.
InceptionBlock on_35x35(std::int64_t pooled) {
  return {.branches = {{.convolutions = {{64}}},
                       {.convolutions = {{48}, {64, 5, 5}}},
                       {.convolutions = {{64}, {96, 3, 3}, {96, 3, 3}}}},
          .pooled = pooled};
}
InceptionBlock to_17x17() {
  return {.branches = {{.convolutions = {halving(384)}},
                       {.convolutions = {{64}, {96, 3, 3}, halving(96)}}},
          .pooled = 0};
}
InceptionBlock on_17x17(std::int64_t w) {
  return {.branches = {{.convolutions = {{192}}},
                       {.convolutions = {{w}, {w, 1, 7}, {192, 7, 1}}},
                       {.convolutions = {{w}, {w, 7, 1}, {w, 1, 7}, {w, 7, 1}, {192, 1, 7}}}},
          .pooled = 192};
}
InceptionBlock to_8x8() {
  return {.branches = {{.convolutions = {{192}, halving(320)}},
                       {.convolutions = {{192}, {192, 1, 7}, {192, 7, 1}, halving(192)}}},
          .pooled = 0};
}
InceptionBlock on_8x8() {
  return {.branches = {{.convolutions = {{320}}},
                       {.convolutions = {{384}, {384, 1, 3}, {384, 3, 1}}, .forked = true},
                       {.convolutions = {{448}, {384, 3, 3}, {384, 1, 3}, {384, 3, 1}},
                        .forked = true}},
          .pooled = 192};
}

/// The options with which all parts of the network are built.
struct InceptionBuild {
  LayerGate gate;
  bool channels_last;

  std::shared_ptr<ConvNorm> layer(std::int64_t in, const InceptionConv& conv) const {
    const std::int64_t rows = conv.padded ? conv.height / 2 : 0;
    const std::int64_t columns = conv.padded ? conv.width / 2 : 0;
    const ConvOptions options{
        {conv.height, conv.width}, conv.stride, {rows, columns}, false, channels_last};
    return std::make_shared<ConvNorm>(gate, in, conv.out, options, /*epsilon=*/1e-3);
  }
};

class Branch : public torch::nn::Module {
 public:
  /// Maps [N, in, H, W] to [N, out(), H', W'].
  Branch(const InceptionBuild& build, std::int64_t in, const InceptionBranch& branch)
      : in_row_(branch.convolutions.size() - (branch.forked ? 2 : 0)) {
    for (std::size_t i = 0; i < branch.convolutions.size(); ++i) {
      const InceptionConv& conv = branch.convolutions[i];
      layers_.push_back(register_module("layer" + std::to_string(i + 1), build.layer(in, conv)));
      if (i < in_row_) in = conv.out;
      out_ = i > in_row_ ? out_ + conv.out : conv.out;
    }
  }

  at::Tensor forward(at::Tensor x) {
    for (std::size_t i = 0; i < in_row_; ++i) x = layers_[i]->forward(x, Activation::relu);
    if (in_row_ == layers_.size()) return x;
    return concatenated({layers_[in_row_]->forward(x, Activation::relu),
                         layers_[in_row_ + 1]->forward(x, Activation::relu)},
                        1);
  }

  std::int64_t out() const { return out_; }

 private:
  std::vector<std::shared_ptr<ConvNorm>> layers_;
  std::size_t in_row_;  ///< layers before the fork
  std::int64_t out_ = 0;
};

class Mixed : public torch::nn::Module {
 public:
  /// Maps [N, in, H, W] to [N, out(), H', W'].
  Mixed(const InceptionBuild& build, std::int64_t in, const InceptionBlock& block)
      : gate_(build.gate) {
    for (const InceptionBranch& branch : block.branches) {
      branches_.push_back(register_module("branch" + std::to_string(branches_.size() + 1),
                                          std::make_shared<Branch>(build, in, branch)));
      out_ += branches_.back()->out();
    }
    if (block.pooled > 0) pooled_ = register_module("pooled", build.layer(in, {block.pooled}));
    out_ += block.pooled > 0 ? block.pooled : in;
  }

  at::Tensor forward(const at::Tensor& x) {
    std::vector<at::Tensor> parts;
    for (const auto& branch : branches_) parts.push_back(branch->forward(x));
    parts.push_back(pooled_ ? pooled_->forward(at::avg_pool2d(x, 3, 1, 1), Activation::relu)
                            : max_pool(gate_, x, 3, 2));
    return concatenated(parts, 1);
  }

  std::int64_t out() const { return out_; }

 private:
  LayerGate gate_;
  std::vector<std::shared_ptr<Branch>> branches_;
  std::shared_ptr<ConvNorm> pooled_;
  std::int64_t out_ = 0;
};

class Inception3 : public ImageModel {
 public:
  explicit Inception3(const ModelOptions& options)
      : ImageModel(options), dropout_(options.dropout) {
    const InceptionBuild build{gate_holder_, options.channels_last};
    std::int64_t channels = 3;
    for (const InceptionConv& conv :
         {halving(32), InceptionConv{32, 3, 3, 1, false}, InceptionConv{64, 3, 3},
          InceptionConv{80}, InceptionConv{192, 3, 3, 1, false}}) {
      stem_.push_back(
          register_module("stem" + std::to_string(stem_.size() + 1), build.layer(channels, conv)));
      channels = conv.out;
    }
    for (const InceptionBlock& block :
         {on_35x35(32), on_35x35(64), on_35x35(64), to_17x17(), on_17x17(128), on_17x17(160),
          on_17x17(160), on_17x17(192), to_8x8(), on_8x8(), on_8x8()}) {
      blocks_.push_back(register_module("mixed" + std::to_string(blocks_.size() + 1),
                                        std::make_shared<Mixed>(build, channels, block)));
      channels = blocks_.back()->out();
    }
    classifier_ = register_module(
        "classifier", std::make_shared<Linear>(gate_holder_, channels, options.num_classes));
  }

  at::Tensor forward(const Batch& batch) override {
    at::Tensor x = batch.inputs;
    for (std::size_t i = 0; i < stem_.size(); ++i) {
      x = stem_[i]->forward(x, Activation::relu);
      if (i == 2 || i == 4) x = max_pool(gate_holder_, x, 3, 2);  // 73x73x64, 35x35x192 of 299x299
    }
    for (const auto& block : blocks_) x = block->forward(x);  // 35x35x256, ... 8x8x2048
    x = dropout(dequantized(x).mean({2, 3}), is_training() ? dropout_ : 0);
    return to_fp32(classifier_->forward(x));
  }

 private:
  double dropout_;
  std::vector<std::shared_ptr<ConvNorm>> stem_;
  std::vector<std::shared_ptr<Mixed>> blocks_;
  std::shared_ptr<Linear> classifier_;
};

}  // namespace

std::shared_ptr<Model> make_inception(const ModelOptions& options) {
  return std::make_shared<Inception3>(options);
}

}  // namespace scalemark

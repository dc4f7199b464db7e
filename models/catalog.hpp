// Facts about every model that programs without LibTorch need: one line a model.
// LibTorch-free. A test holds each line against the network itself.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace scalemark {

struct ModelFacts {
  std::string_view name;
  std::string_view unit;             ///< "images/sec", "tokens/sec" or "sequences/sec"
  std::string_view sample;           ///< what --batch_size counts: "images", "sequences"
  std::int64_t default_batch_size;   ///< samples per rank
  std::int64_t parameters;           ///< trainable parameters, exact
  double forward_flops_per_sample;   ///< 2 per multiply-add, convolutions and matrix products only
  std::int64_t image_size;           ///< default height and width of images, pixels; 0 for other data
  std::string_view description;
};

// forward_flops_per_sample at the default image size; training = 3 x forward.
inline constexpr std::array kModels{
    ModelFacts{"resnet18", "images/sec", "images", 32, 11'689'512, 3'628'146'688., 224, "ResNet-18 (He et al. 2015)"},
    ModelFacts{"resnet34", "images/sec", "images", 32, 21'797'672, 7'327'523'840., 224, "ResNet-34"},
    ModelFacts{"resnet50", "images/sec", "images", 16, 25'557'032, 8'178'892'800., 224, "ResNet-50 v1.5"},
    ModelFacts{"resnet101", "images/sec", "images", 16, 44'549'160, 15'602'814'976., 224, "ResNet-101 v1.5"},
    ModelFacts{"resnet152", "images/sec", "images", 16, 60'192'808, 23'027'261'440., 224, "ResNet-152 v1.5"},
    ModelFacts{"smallnet", "images/sec", "images", 8, 0, 0., 32, "small convolutional net without BatchNorm, for tests"},
    ModelFacts{"trivial", "images/sec", "images", 32, 0, 0., 32, "a few kB: measures the overhead of a step"},
};

constexpr std::optional<ModelFacts> find_model(std::string_view name) {
  for (const ModelFacts& facts : kModels)
    if (facts.name == name) return facts;
  return std::nullopt;
}

}  // namespace scalemark

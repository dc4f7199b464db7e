// Facts about every model that programs without LibTorch need: one line a model, in catalog.inc.
// LibTorch-free. A test holds each line against the network itself.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace scalemark {

struct ModelFacts {
  std::string_view name;
  std::string_view unit;            ///< "images/sec", "tokens/sec" or "sequences/sec"
  std::string_view sample;          ///< what --batch_size counts: "images", "sequences"
  std::int64_t default_batch_size;  ///< samples per rank
  std::int64_t parameters;          ///< trainable parameters, exact
  double forward_flops_per_sample;  ///< 2 per multiply-add, convolutions and matrix products only
  std::int64_t image_size;  ///< default height and width of images, pixels; 0 for other data
  std::string_view description;
};

/// forward_flops_per_sample is at the default image size; training = 3 x forward.
inline constexpr std::array kModels{
#define MODEL(factory, ...) ModelFacts{__VA_ARGS__},
#include "models/catalog.inc"
#undef MODEL
};

constexpr std::optional<ModelFacts> find_model(std::string_view name) {
  for (const ModelFacts& facts : kModels)
    if (facts.name == name) return facts;
  return std::nullopt;
}

}  // namespace scalemark

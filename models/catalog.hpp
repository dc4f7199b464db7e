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
  double attention_flops;           ///< of these, what grows with the square of the length
  std::int64_t image_size;          ///< default height and width of images, pixels; 0: none
  std::int64_t sequence_length;     ///< default tokens of a sequence; 0: none
  std::string_view optimizer;       ///< default of --optimizer
  double dropout;                   ///< default of --dropout
  double activation_bytes;          ///< kept for the backward pass of one sample in fp32, about
  std::string_view description;
  std::int64_t width = 0;  ///< of the embeddings of a sequence model (d_model); 0: none
};

/// FLOPs and activations are at the default image size or sequence length; training = 3 x forward.
inline constexpr std::array kModels{
#define MODEL(factory, ...) ModelFacts{__VA_ARGS__},
#include "models/catalog.inc"
#undef MODEL
};

/// Forward FLOPs of one sequence of `length` tokens (source and target).
constexpr double forward_flops_at(const ModelFacts& facts, std::int64_t length) {
  const double ratio = static_cast<double>(length) / static_cast<double>(facts.sequence_length);
  return (facts.forward_flops_per_sample - facts.attention_flops) * ratio +
         facts.attention_flops * ratio * ratio;
}

constexpr std::optional<ModelFacts> find_model(std::string_view name) {
  for (const ModelFacts& facts : kModels)
    if (facts.name == name) return facts;
  return std::nullopt;
}

}  // namespace scalemark

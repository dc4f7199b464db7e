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
  std::int64_t smallest;            ///< least --image_size or --sequence_length
  std::string_view optimizer;       ///< default of --optimizer
  double learning_rate;             ///< most that --init_learning_rate is by default
  double dropout;                   ///< default of --dropout
  double activation_bytes;          ///< kept for the backward pass of one sample in fp32, about
  std::string_view description;
  std::int64_t width = 0;  ///< of the embeddings of a sequence model (d_model); 0: none
  // Of BERT alone.
  double masked_flops = 0;         ///< of the forward FLOPs, those of each masked position
  double sentence_flops = 0;       ///< of the forward FLOPs, those that no length changes
  std::int64_t longest = 1 << 16;  ///< tokens of a sequence, at most
};

/// Tokens of the longest sequence that BERT has a position for.
inline constexpr std::int64_t kBertPositions = 512;

/// Masked positions of a BERT sequence of `length` tokens: 5 of 32, rounded up, which gives the 20
/// of 128 tokens and the 80 of 512 that published pretraining uses (15 % and a little).
constexpr std::int64_t masked_positions(std::int64_t length) { return (5 * length + 31) / 32; }

/// FLOPs and activations are at the default image size or sequence length; training = 3 x forward.
inline constexpr std::array kModels{
#define MODEL(factory, ...) ModelFacts{__VA_ARGS__},
#include "models/catalog.inc"
#undef MODEL
};

/// A network of the user's: what it has is not known before it is loaded.
constexpr ModelFacts own_model(std::string_view name, std::string_view description) {
  return {name, "samples/sec", "samples", 8,  0,  0.,         0., 0, 0,
          1,    "momentum",    0.1,       0., 0., description};
}
inline constexpr std::array kOwnModels{
    own_model("torchscript", "a TorchScript module (--model_file)"),
    own_model("library", "a model of a shared library (--model_library)")};
inline constexpr const ModelFacts &kFileModel = kOwnModels[0], &kLibraryModel = kOwnModels[1];

/// Forward FLOPs of one sequence of `length` tokens (source and target).
constexpr double forward_flops_at(const ModelFacts& facts, std::int64_t length) {
  const double ratio = static_cast<double>(length) / static_cast<double>(facts.sequence_length);
  const auto heads = [&](std::int64_t tokens) {
    return facts.masked_flops * static_cast<double>(masked_positions(tokens)) +
           facts.sentence_flops;
  };
  const double linear =
      facts.forward_flops_per_sample - facts.attention_flops - heads(facts.sequence_length);
  return linear * ratio + facts.attention_flops * ratio * ratio + heads(length);
}

constexpr std::optional<ModelFacts> find_model(std::string_view name) {
  for (const ModelFacts& facts : kModels)
    if (facts.name == name) return facts;
  for (const ModelFacts& facts : kOwnModels)
    if (facts.name == name) return facts;
  return std::nullopt;
}

}  // namespace scalemark

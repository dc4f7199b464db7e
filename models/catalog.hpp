// Holds the facts about every model that programs without LibTorch need. Each model is one entry in
// catalog.inc; --dry_run also needs the embedding tables, to state the bytes of their gradients.
// LibTorch-free. Tests check all of it against the networks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace scalemark {

/// The facts about one model. An entry of the catalog must name the members without a default.
struct ModelFacts {
  std::string_view name;
  std::string_view unit;             ///< "images/sec", "tokens/sec" or "sequences/sec"
  std::string_view sample;           ///< what --batch_size counts: "images", "sequences"
  std::int64_t default_batch_size;   ///< samples per rank
  std::int64_t parameters;           ///< trainable parameters, exact
  double forward_flops_per_sample;   ///< 2 per multiply-add, convolutions and matrix products only
  double attention_flops = 0;        ///< part of them that grows with the square of the length
  std::int64_t image_size = 0;       ///< default height and width of images, pixels; 0: none
  std::int64_t sequence_length = 0;  ///< default tokens of a sequence; 0: none
  std::int64_t blocks = 0;  ///< layers that are run as a whole (run_block()); 0: no row of them
  std::int64_t block_parameters = 0;  ///< matrices' elements of one of them, of the largest
  double recomputed_bytes = 0;  ///< of activation_bytes, what --recompute does not keep of a layer
  std::int64_t smallest;        ///< least --image_size or --sequence_length
  std::string_view optimizer;   ///< default of --optimizer
  double learning_rate;         ///< upper bound of the default of --init_learning_rate
  double dropout = 0;           ///< default of --dropout
  double activation_bytes = 0;  ///< kept for the backward pass of one sample in fp32, about
  std::string_view description;
  std::int64_t width = 0;       ///< embedding width of a sequence model (d_model); 0: none
  std::int64_t vocabulary = 0;  ///< tokens of a sequence model; 0: none
  std::int64_t positions = 0;   ///< rows of a table of learned positions; 0: none
  bool tied = true;             ///< the words' table is the output projection, too
  // The members below are used by BERT alone.
  double masked_flops = 0;         ///< forward FLOPs of each masked position
  double sentence_flops = 0;       ///< forward FLOPs that do not depend on the length
  std::int64_t longest = 1 << 16;  ///< tokens of a sequence, at most
};

/// BERT and GPT-2 have position embeddings for sequences of at most this many tokens.
inline constexpr std::int64_t kBertPositions = 512, kGpt2Positions = 1024;

/// Returns the masked positions of a BERT sequence of `length` tokens: 5 of 32, rounded up. This
/// gives the 20 of 128 tokens and the 80 of 512 that published pretraining uses (slightly more than
/// 15 %).
constexpr std::int64_t masked_positions(std::int64_t length) { return (5 * length + 31) / 32; }

/// The catalog. FLOPs and activations are those at the default image size or sequence length;
/// training takes 3 x forward.
inline constexpr std::array kModels{
#define MODEL(factory, ...) ModelFacts{__VA_ARGS__},
#include "models/catalog.inc"
#undef MODEL
};

/// Returns the facts of a user's network, whose properties are unknown before it is loaded.
constexpr ModelFacts own_model(std::string_view name, std::string_view description) {
  return {.name = name,
          .unit = "samples/sec",
          .sample = "samples",
          .default_batch_size = 8,
          .parameters = 0,
          .forward_flops_per_sample = 0,
          .smallest = 1,
          .optimizer = "momentum",
          .learning_rate = 0.1,
          .description = description};
}
inline constexpr std::array kOwnModels{
    own_model("torchscript", "a TorchScript module (--model_file)"),
    own_model("library", "a model of a shared library (--model_library)"),
    own_model("exported", "a network of torch.export (--model_file)")};
inline constexpr const ModelFacts &kScriptModel = kOwnModels[0], &kLibraryModel = kOwnModels[1],
                                  &kExportedModel = kOwnModels[2];

/// Returns the forward FLOPs of one sequence of `length` tokens (source and target).
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

/// The facts about one embedding table.
struct TableFacts {
  std::string_view name;     ///< name of the layer
  std::int64_t rows, width;  ///< V x d
  bool tied;                 ///< serves as output projection too
  std::int64_t lookups;      ///< rows looked up by a pass over a batch
};

/// Returns the tables of `facts` and their lookups in one pass over `samples` sequences of `length`
/// tokens. An image model has none.
inline std::vector<TableFacts> embedding_tables(const ModelFacts& facts, std::int64_t samples,
                                                std::int64_t length) {
  const std::int64_t tokens = samples * length, d = facts.width;
  if (facts.vocabulary == 0) return {};
  if (facts.name.starts_with("transformer"))  // looked up for source and target
    return {{"embedding", facts.vocabulary, d, facts.tied, 2 * tokens}};
  std::vector<TableFacts> tables{{"word_embedding", facts.vocabulary, d, facts.tied, tokens}};
  if (facts.positions > 0)  // one position serves all sequences of a pass
    tables.push_back({"position_embedding", facts.positions, d, false, length});
  if (facts.name.starts_with("bert")) tables.push_back({"segment_embedding", 2, d, false, tokens});
  return tables;
}

/// The distributions of the lengths of synthetic sequences.
enum class LengthDistribution { fixed, uniform, lognormal };

}  // namespace scalemark

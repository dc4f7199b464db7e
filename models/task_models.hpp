// Implements what all networks of a task share: their batches and their loss.
#pragma once

#include <vector>

#include "models/layers.hpp"
#include "models/synthetic_data.hpp"

namespace scalemark {

/// The base of all image classifiers.
class ImageModel : public Model {
 public:
  explicit ImageModel(const ModelOptions& options) : options_(options) {}

  Batch synthetic_batch(std::int64_t batch_size, std::uint64_t seed, at::Device device,
                        at::ScalarType dtype) override {
    return synthetic_images(options_, batch_size, seed, device, dtype);
  }

  Batch learnable_batch(const SampleRange& samples, std::uint64_t seed, at::Device device,
                        at::ScalarType dtype) override {
    return learnable_images(options_, samples, seed, device, dtype);
  }

  at::Tensor loss_sum(const Batch& batch) override {
    return cross_entropy_sum(forward(batch), batch.targets);
  }

 private:
  ModelOptions options_;
};

/// The base of all decoder language models: every position predicts the next token. None sees a
/// later one, so padding at the end needs no mask.
class LanguageModel : public Model {
 public:
  explicit LanguageModel(const ModelOptions& options) : options_(options) {
    if (options_.vocabulary == 0) options_.vocabulary = find_model(options.name)->vocabulary;
  }

  /// Draws uniform tokens, one more than the sequence has positions.
  Batch synthetic_batch(std::int64_t batch_size, std::uint64_t seed, at::Device device,
                        at::ScalarType) override {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    std::vector<at::Tensor> inputs, targets;
    for (std::int64_t i = 0; i < batch_size; ++i) {
      const std::int64_t length = options_.lengths.draw(options_.sequence_length, generator);
      const at::Tensor tokens =
          at::randint(options_.vocabulary, {length + 1}, generator, at::kLong);
      inputs.push_back(tokens.slice(0, 0, length));
      targets.push_back(tokens.slice(0, 1));
    }
    return text_batch(inputs, targets, device);
  }

  Batch learnable_batch(const SampleRange& samples, std::uint64_t seed, at::Device device,
                        at::ScalarType) override {
    const auto inputs = learnable_sequences(samples, options_.lengths, options_.sequence_length,
                                            options_.vocabulary, seed);
    std::vector<at::Tensor> targets;
    for (const at::Tensor& input : inputs)
      targets.push_back(learnable_translation(input, options_.vocabulary));
    return text_batch(inputs, targets, device);
  }

  at::Tensor loss_sum(const Batch& batch) override {
    return cross_entropy_sum(operators(), logits(batch.inputs).flatten(0, 1),
                             batch.targets.flatten());
  }

  at::Tensor forward(const Batch& batch) override {  // fp32 [batch, length, vocabulary]
    return to_fp32(logits(batch.inputs));
  }

 protected:
  /// Maps int64 [batch, length] to [batch, length, vocabulary] in the compute dtype.
  virtual at::Tensor logits(const at::Tensor& tokens) = 0;

  std::int64_t vocabulary() const { return options_.vocabulary; }
  std::int64_t longest() const { return options_.sequence_length; }
  /// The probability of dropout in this pass.
  double dropped() const { return is_training() ? options_.dropout : 0; }

 private:
  ModelOptions options_;
};

}  // namespace scalemark

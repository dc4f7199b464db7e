// Implements what all image classifiers share: their batches and their loss.
#pragma once

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

}  // namespace scalemark

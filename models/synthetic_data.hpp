// Draws the synthetic data of models: noise, and the learnable tasks (--data learnable). The
// targets of a learnable task are a fixed function of the inputs, independent of the seed, which
// determines only the samples. A few hundred steps show whether a configuration trains, which noise
// with its random labels cannot.
#pragma once

#include "models/model.hpp"

namespace scalemark {

/// Returns the synthetic images and labels of every image model: inputs normal [batch, 3, size,
/// size], labels uniform [batch] int64. They are drawn on the CPU, so that a seed gives the same
/// batch on every device.
Batch synthetic_images(const ModelOptions& options, std::int64_t batch_size, std::uint64_t seed,
                       at::Device device, at::ScalarType dtype);

/// Returns images of the first 10 classes (fewer where there are fewer): normal noise plus the
/// pattern of the class, 8x8 cells of normal colours that are always the same. Shapes are those of
/// synthetic_images().
Batch learnable_images(const ModelOptions& options, const SampleRange& samples, std::uint64_t seed,
                       at::Device device, at::ScalarType dtype);

/// Returns source sequences: tokens uniform from 1 to A, where A is the largest power of 2 up to 64
/// and below the vocabulary. Each is int64 [length].
std::vector<at::Tensor> learnable_sequences(const SampleRange& samples, const Lengths& lengths,
                                            std::int64_t longest, std::int64_t vocabulary,
                                            std::uint64_t seed);

/// Returns a batch of sequences int64 [length], padded at the end to the longest of the batch:
/// inputs with 0, targets with kIgnoredLabel. What it counts are target tokens.
Batch text_batch(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& targets,
                 at::Device device);

/// Returns the translation token by token: t -> 1 + (29 (t - 1) + 17) mod A, a permutation.
at::Tensor learnable_translation(const at::Tensor& source, std::int64_t vocabulary);

}  // namespace scalemark

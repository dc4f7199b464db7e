// The learnable synthetic tasks (--data learnable): targets are a fixed function of the inputs, the
// same whatever the seed, which draws the samples alone. A few hundred steps show whether a
// configuration trains, which noise with its random labels cannot.
#pragma once

#include "models/model.hpp"

namespace scalemark {

/// Images of the first 10 classes (fewer where there are fewer): normal noise plus the pattern of
/// the class, 8x8 cells of normal colours drawn once for all. Shapes as synthetic_images().
Batch learnable_images(const ModelOptions& options, const SampleRange& samples, std::uint64_t seed,
                       at::Device device, at::ScalarType dtype);

/// Source sequences: uniform over the tokens 1 to A, A the largest power of 2 up to 64 and below
/// the vocabulary. int64 [length] each.
std::vector<at::Tensor> learnable_sequences(const SampleRange& samples, const Lengths& lengths,
                                            std::int64_t longest, std::int64_t vocabulary,
                                            std::uint64_t seed);

/// Their translation, token by token: t -> 1 + (29 (t - 1) + 17) mod A, a permutation.
at::Tensor learnable_translation(const at::Tensor& source, std::int64_t vocabulary);

}  // namespace scalemark

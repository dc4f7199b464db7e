// Draws synthetic samples and computes the targets of learnable ones. Everything is drawn on the
// CPU, so that a seed has the same meaning on every device.
#include "models/synthetic_data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "error.hpp"
#include "models/layers.hpp"

namespace scalemark {

namespace {

constexpr std::int64_t kClasses = 10, kCells = 8, kTokens = 64;
constexpr std::uint64_t kPatternSeed = 2017;

std::int64_t alphabet(std::int64_t vocabulary) {
  const std::int64_t most = std::clamp<std::int64_t>(vocabulary - 1, 1, kTokens);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most)));
}

at::MemoryFormat memory_format(const ModelOptions& options) {
  return options.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

}  // namespace

std::int64_t Lengths::draw(std::int64_t longest, at::Generator generator) const {
  if (!vary()) return longest;
  if (distribution == LengthDistribution::uniform)
    return at::randint(1, longest + 1, {}, generator, at::kLong).item<std::int64_t>();
  const double z = at::randn({}, generator, at::kDouble).item<double>();
  return std::clamp<std::int64_t>(std::llround(median * std::exp(sigma * z)), 1, longest);
}

Batch part_of(const Batch& batch, std::int64_t first, std::int64_t count) {
  const double share = static_cast<double>(count) / static_cast<double>(batch.inputs.size(0));
  const auto part = [&](const at::Tensor& whole) {
    return whole.defined() ? whole.narrow(0, first, count) : whole;
  };
  std::vector<at::Tensor> more;
  for (const at::Tensor& input : batch.more_inputs) more.push_back(part(input));
  return {part(batch.inputs),
          part(batch.targets),
          share * batch.units,
          share * batch.loss_count,
          share * batch.padded_units,
          part(batch.decoder_inputs),
          part(batch.padding),
          part(batch.segments),
          part(batch.masked_positions),
          part(batch.next_sentence),
          std::move(more)};
}

std::vector<Batch> split(const Batch& batch, std::int64_t size) {
  std::vector<Batch> parts;
  for (std::int64_t first = 0; first < batch.inputs.size(0); first += size)
    parts.push_back(part_of(batch, first, size));
  return parts;
}

Batch synthetic_images(const ModelOptions& options, std::int64_t batch_size, std::uint64_t seed,
                       at::Device device, at::ScalarType dtype) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  Batch batch;
  batch.inputs = at::randn({batch_size, 3, options.image_size, options.image_size}, generator)
                     .to(dtype)
                     .contiguous(memory_format(options))
                     .to(device);
  batch.targets = at::randint(options.num_classes, {batch_size}, generator, at::kLong).to(device);
  batch.units = batch.loss_count = batch.padded_units = static_cast<double>(batch_size);
  return batch;
}

Batch Model::learnable_batch(const SampleRange&, std::uint64_t, at::Device, at::ScalarType) {
  throw ConfigError("--data learnable: this model has no learnable task; leave out --data");
}

Batch learnable_images(const ModelOptions& options, const SampleRange& samples, std::uint64_t seed,
                       at::Device device, at::ScalarType dtype) {
  const std::int64_t classes = std::min(kClasses, options.num_classes), size = options.image_size;
  std::vector<at::Tensor> labels, noise;
  for (std::int64_t i = 0; i < samples.count; ++i) {
    at::Generator generator = numbered_generator(seed, samples.first + i);
    labels.push_back(at::randint(classes, {}, generator, at::kLong));
    noise.push_back(at::randn({3, size, size}, generator));
  }
  const at::Tensor targets = at::stack(labels);
  const at::Tensor patterns =
      at::randn({classes, 3, kCells, kCells},
                at::Generator(at::make_generator<at::CPUGeneratorImpl>(kPatternSeed)));
  const at::Tensor images =
      at::upsample_nearest2d(patterns.index_select(0, targets), {size, size}) + at::stack(noise);
  Batch batch;
  batch.inputs = images.to(dtype).contiguous(memory_format(options)).to(device);
  batch.targets = targets.to(device);
  batch.units = batch.loss_count = batch.padded_units = static_cast<double>(samples.count);
  return batch;
}

std::vector<at::Tensor> learnable_sequences(const SampleRange& samples, const Lengths& lengths,
                                            std::int64_t longest, std::int64_t vocabulary,
                                            std::uint64_t seed) {
  std::vector<at::Tensor> sequences;
  for (std::int64_t i = 0; i < samples.count; ++i) {
    const at::Generator generator = numbered_generator(seed, samples.first + i);
    const std::int64_t length = lengths.draw(longest, generator);
    sequences.push_back(at::randint(1, alphabet(vocabulary) + 1, {length}, generator, at::kLong));
  }
  return sequences;
}

Batch text_batch(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& targets,
                 at::Device device) {
  Batch batch;
  for (const at::Tensor& target : targets) batch.units += static_cast<double>(target.numel());
  batch.loss_count = batch.units;
  batch.inputs = at::pad_sequence(inputs, /*batch_first=*/true, 0).to(device);
  batch.targets = at::pad_sequence(targets, true, kIgnoredLabel).to(device);
  batch.padded_units = static_cast<double>(batch.targets.numel());
  return batch;
}

at::Tensor learnable_translation(const at::Tensor& source, std::int64_t vocabulary) {
  return ((source - 1) * 29 + 17).remainder(alphabet(vocabulary)) + 1;
}

}  // namespace scalemark

// Defines the keys of the model and its batch: which network computes, on how many samples of what
// kind.
#pragma once

#include <algorithm>

#include "config/keys/group.hpp"
#include "models/catalog.hpp"

namespace scalemark {

enum class Scaling { weak, strong };
constexpr auto names_of(Scaling) { return Names{"weak", "strong"}; }

enum class SyntheticData { noise, learnable };
constexpr auto names_of(SyntheticData) { return Names{"noise", "learnable"}; }

constexpr auto names_of(LengthDistribution) { return Names{"fixed", "uniform", "lognormal"}; }

enum class InputPlace { device, host };
constexpr auto names_of(InputPlace) { return Names{"device", "host"}; }

/// The largest --batch_size, found or given.
inline constexpr std::int64_t kLargestBatchSize = 1'000'000;

struct ModelSettings {
  std::string model = "resnet50";
  std::vector<std::string> more_models;        ///< a curve each
  std::optional<std::int64_t> batch_size;      ///< samples per rank; unset: the catalog's default
  std::vector<std::int64_t> more_batch_sizes;  ///< a curve each
  bool largest_batch = false;  ///< --batch_size max: batch_size is found before the run
  std::optional<std::int64_t> global_batch_size;      ///< samples over all ranks
  std::vector<std::int64_t> more_global_batch_sizes;  ///< a curve each
  bool batch_per_precision = false;  ///< the k-th batch is that of the k-th precision
  std::optional<std::int64_t> global_batch_tokens;   ///< target tokens over all ranks
  std::optional<std::int64_t> micro_batch_size;      ///< samples of a pass; unset: the rank's batch
  std::vector<std::int64_t> more_micro_batch_sizes;  ///< of a curve's second point and so on
  Scaling scaling = Scaling::weak;
  std::optional<std::int64_t> image_size;       ///< pixels
  std::optional<std::int64_t> sequence_length;  ///< tokens
  std::int64_t num_classes = 1000;
  SyntheticData data = SyntheticData::noise;
  LengthDistribution length_distribution = LengthDistribution::fixed;
  std::optional<double> length_median;  ///< tokens, of lognormal
  double length_sigma = 0.5;            ///< of the logarithm of the length
  InputPlace input = InputPlace::device;
  bool forward_only = false;
  std::int64_t seed = 1234;

  static void describe(auto& rows) {
    using S = ModelSettings;
    rows.group("Model and batch", Role::identity, kTraining);
    rows.add("model", &S::model, "NAME,...", "network; `scalemark list models` describes them")
        .one_of_models()
        .listed(&S::more_models)
        .of(kWithModel)
        .often_used();
    rows.add("batch_size", &S::batch_size, "N[,N...]|max",
             "samples per rank; what weak scaling fixes; max: the most that fit, found before "
             "the run")
        .in(1, static_cast<double>(kLargestBatchSize))
        .or_word("max", &S::largest_batch)
        .listed(&S::more_batch_sizes)
        .otherwise("the model's default; 1 in a single stream")
        .of(kWithModel)
        .is(Trait::varies_with_ranks)
        .often_used();
    rows.add("global_batch_size", &S::global_batch_size, "N[,N...]",
             "samples over all ranks; what strong scaling fixes")
        .listed(&S::more_global_batch_sizes)
        .in(1, 1e9)
        .otherwise("batch size x ranks")
        .is(Trait::varies_with_ranks);
    rows.add("batch_per_precision", &S::batch_per_precision, "",
             "lists of batches and of --precision are pairs, the k-th of both a curve; else each "
             "batch makes a curve with each precision")
        .role(Role::output)
        .of({Command::scale});
    rows.add("global_batch_tokens", &S::global_batch_tokens, "N",
             "the same in target tokens, divided by --sequence_length")
        .in(1, 1e12)
        .otherwise("--global_batch_size")
        .is(Trait::implied);
    rows.add("micro_batch_size", &S::micro_batch_size, "N[,N...]",
             "samples of one forward and backward pass; gradients are accumulated over a rank's "
             "batch; of a curve one for each of its points, too")
        .in(1, 1e6)
        .listed(&S::more_micro_batch_sizes)
        .by_point()
        .otherwise("the batch of a rank");
    rows.add("scaling", &S::scaling, "MODE",
             "weak: batch per rank fixed; strong: global batch fixed")
        .often_used();
    rows.add("image_size", &S::image_size, "PIXELS", "height and width of the synthetic images")
        .in(32, 4096)
        .otherwise("the model's default")
        .of(kWithModel);
    rows.add("sequence_length", &S::sequence_length, "TOKENS",
             "tokens of every synthetic sequence, source and target")
        .in(1, 65536)
        .otherwise("the model's default")
        .of(kWithModel);
    rows.add("num_classes", &S::num_classes, "N", "classes of the synthetic labels")
        .in(2, 1e6)
        .of(kWithModel);
    rows.add("data", &S::data, "KIND",
             "noise: one batch with random labels; learnable: a ring of batches of a task that a "
             "network can learn");
    rows.add("length_distribution", &S::length_distribution, "SHAPE",
             "of sequences of the Transformer, GPT-2 and Llama: all of --sequence_length, or drawn "
             "up to it");
    rows.add("length_median", &S::length_median, "TOKENS", "of lognormal lengths")
        .in(1, 65536)
        .otherwise("half of --sequence_length");
    rows.add("length_sigma", &S::length_sigma, "VALUE",
             "standard deviation of the logarithm of lognormal lengths")
        .in(0.01, 10);
    rows.add("input", &S::input, "PLACE",
             "where the prepared batches lie; host: copied to the device inside the clock, while "
             "the step before computes");
    rows.add("forward_only", &S::forward_only, "", "forward passes only: no gradients, no update");
    rows.add("seed", &S::seed, "N", "of weights and synthetic data")
        .in(0, 9007199254740991.)
        .of(kWithModel);
  }

  static void resolve(auto& config, const auto& facts) {
    if (!config.image_size && facts.image_size > 0) config.image_size = facts.image_size;
    if (!config.sequence_length && facts.sequence_length > 0)
      config.sequence_length = facts.sequence_length;
    if (!config.length_median && config.length_distribution == LengthDistribution::lognormal)
      config.length_median =
          std::max(1., static_cast<double>(config.sequence_length.value_or(2)) / 2);
  }

  static void check(const auto& whole) {
    check_scaling(whole);
    check_shapes(whole);
    check_lengths(whole);
    check_largest_batch(whole);
  }

 private:
  static void check_scaling(const auto& whole) {
    const auto& config = whole.given;
    if (config.scaling == Scaling::strong && !config.global_batch_size &&
        !config.global_batch_tokens)
      whole.refuse(
          "--scaling strong fixes the batch over all ranks and needs --global_batch_size or "
          "--global_batch_tokens (--batch_size is per rank)");
    if (!config.more_batch_sizes.empty() &&
        (config.global_batch_size || config.global_batch_tokens))
      whole.refuse(
          "--batch_size: a list makes a curve of each batch per rank, and a global batch has one; "
          "leave one of the two out");
    if (config.forward_only && config.micro_batch_size)
      whole.refuse("--micro_batch_size splits the batch of training; leave out --forward_only");
  }

  static void check_shapes(const auto& whole) {
    const auto& config = whole.given;
    const auto& facts = whole.facts;
    if (config.sequence_length && facts.sequence_length == 0)
      whole.refuse("--sequence_length: {} has images, no sequences", facts.name);
    const std::int64_t length = config.sequence_length.value_or(facts.sequence_length);
    if (facts.sequence_length > 0 && (length < facts.smallest || length > facts.longest))
      whole.refuse("--sequence_length {}: {} takes {} to {} tokens", length, facts.name,
                   facts.smallest, facts.longest);
    if (config.image_size && facts.image_size == 0)
      whole.refuse("--image_size: {} has sequences, no images", facts.name);
    if (config.image_size && config.image_size < facts.smallest)
      whole.refuse("--image_size {}: {} takes {} pixels and more", *config.image_size, facts.name,
                   facts.smallest);
  }

  static void check_lengths(const auto& whole) {
    const auto& config = whole.given;
    if (config.length_distribution != LengthDistribution::fixed && whole.facts.unit != "tokens/sec")
      whole.refuse(
          "--length_distribution {}: {} has no sequences of varying length; transformer_*, gpt2 "
          "and llama have",
          to_string(config.length_distribution), whole.facts.name);
    if (config.length_distribution != LengthDistribution::lognormal &&
        (config.length_median || config.length_sigma != ModelSettings{}.length_sigma))
      whole.refuse("--length_median and --length_sigma belong to --length_distribution lognormal");
  }

  /// Checks --batch_size max. The search decides the batch of a rank, so nothing else may, and
  /// there must be something to try.
  static void check_largest_batch(const auto& whole) {
    const auto& config = whole.given;
    if (!config.largest_batch) return;
    const auto refuse = [&](const char* why) {
      whole.refuse("--batch_size max finds the batch of a rank: {}", why);
    };
    if (config.scaling == Scaling::strong || config.global_batch_size || config.global_batch_tokens)
      refuse(
          "it does not go with a fixed global batch; use weak scaling without "
          "--global_batch_size and --global_batch_tokens");
    if (config.micro_batch_size)
      refuse("micro-batches would fit whatever the batch; leave out --micro_batch_size");
    if (config.base_batch_size)
      refuse("the base of the curve has the same; leave out --base_batch_size");
    if (config.dry_run && !config.device_memory)
      refuse(
          "--dry_run starts nothing that could be tried; add --device_memory GIB, in which its "
          "plan has to fit, or give a number");
  }
};

}  // namespace scalemark

// Defines the keys of the arithmetic of a step: types, the optimizer and its constants.
#pragma once

#include <algorithm>
#include <optional>

#include "config/keys/group.hpp"
#include "error.hpp"

namespace scalemark {

enum class Precision { fp32, tf32, bf16, fp16, int8 };
constexpr auto names_of(Precision) { return Names{"fp32", "tf32", "bf16", "fp16", "int8"}; }

enum class DataFormat { channels_last, channels_first };
constexpr auto names_of(DataFormat) { return Names{"channels_last", "channels_first"}; }

/// Says whose operators compute a network and its training.
enum class Kernels { scalemark, torch, triton };
constexpr auto names_of(Kernels) { return Names{"scalemark", "torch", "triton"}; }

/// Returns whether this build has kernels of its own (SCALEMARK_KERNELS).
bool has_own_kernels();
/// Returns whether it has those for a GPU (SCALEMARK_TRITON).
bool has_triton_kernels();

enum class Optimizer { sgd, momentum, adam, adamw, lamb, lars };
constexpr auto names_of(Optimizer) {
  return Names{"sgd", "momentum", "adam", "adamw", "lamb", "lars"};
}

struct OptimizerRates {
  double learning_rate, beta2, epsilon, weight_decay;
};

/// Returns the constants of an optimizer. adam: Vaswani et al. 2017, 5.3; adamw: Devlin et al.
/// 2018, A.2, epsilon of google-research/bert; lamb: You et al. 2020, of its batch of 512
/// sequences.
constexpr OptimizerRates default_rates(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adam:
      return {1e-4, 0.98, 1e-9, 0};
    case Optimizer::adamw:
      return {1e-4, 0.999, 1e-6, 0.01};
    case Optimizer::lamb:
      return {6.25e-4, 0.999, 1e-6, 0.01};
    default:
      return {0.1, 0.98, 1e-9, 4e-5};  // without moments
  }
}

struct ArithmeticSettings {
  Precision precision = Precision::fp32;
  std::vector<Precision> more_precisions;  ///< a curve each, after that of `precision`
  DataFormat data_format = DataFormat::channels_last;
  std::optional<Kernels> kernels;
  std::optional<Optimizer> optimizer;
  std::optional<double> init_learning_rate;  ///< resolved with the schedule
  double momentum = 0.9;
  double adam_beta1 = 0.9;  ///< of adam, adamw and lamb
  std::optional<double> adam_beta2, adam_epsilon, weight_decay;
  double lars_trust_coefficient = 0.001;  ///< eta of You et al. 2017
  std::optional<double> dropout;
  double label_smoothing = 0.1;  ///< of sequence models

  static void describe(auto& rows) {
    using S = ArithmeticSettings;
    rows.group("Arithmetic", Role::identity, kTraining);
    rows.add("precision", &S::precision, "TYPE,...",
             "compute type; in training weights and their update stay fp32; int8 is of infer")
        .listed(&S::more_precisions)
        .of(kWithModel)
        .often_used();
    rows.add("data_format", &S::data_format, "FORMAT",
             "memory layout of images; NHWC is channels_last")
        .alias("NHWC", DataFormat::channels_last)  // tf_cnn_benchmarks' words
        .alias("NCHW", DataFormat::channels_first)
        .of(kWithModel);
    rows.add("kernels", &S::kernels, "WHOSE",
             "whose operators compute. torch: LibTorch's own alone, one by one, as a plain PyTorch "
             "job has them: how such jobs scale here. scalemark: what this machine can do. On the "
             "CPU kernels of our own where they suit (batch normalisation with addition and ReLU, "
             "3 x 3 convolutions in fp32 by Winograd's F(2 x 2, 3 x 3), gradients of convolutions' "
             "weights, products in pieces, "
             "maximum pooling, GELU, SwiGLU, RMSNorm, rotary positions, dropout, the loss of "
             "sequence models and Adam's step in one "
             "pass, gradients written in their place); in inference batch normalisation is folded "
             "into the convolution, and oneDNN, or on a GPU cuDNN, adds and clips as it writes. "
             "triton: "
             "in bf16 training on a GPU, kernels of models/triton, which no GPU has run yet "
             "(cmake -DSCALEMARK_TRITON=ON)")
        .was("fused", {{"on", "scalemark"}, {"off", "torch"}})
        .of(kWithModel)
        .otherwise("scalemark; torch in a build without SCALEMARK_KERNELS");
    rows.add("optimizer", &S::optimizer, "NAME", "update rule").otherwise("the model's default");
    rows.add("init_learning_rate", &S::init_learning_rate, "RATE",
             "learning rate; with a schedule that at the end of its warm-up")
        .in(0, 1e6)
        .otherwise(
            "0.1 (0.005 of networks that 0.1 makes diverge), with adam and adamw 0.0001, with lamb "
            "0.000625; with vaswani (width x warm-up)^-0.5");
    rows.add("momentum", &S::momentum, "FACTOR", "of --optimizer momentum and lars").in(0, 1);
    rows.add("adam_beta1", &S::adam_beta1, "FACTOR",
             "decay of the first moment (adam, adamw, lamb)")
        .in(0, 0.999999);
    rows.add("adam_beta2", &S::adam_beta2, "FACTOR",
             "decay of the second moment (adam, adamw, lamb)")
        .in(0, 0.999999)
        .otherwise("0.98, with adamw and lamb 0.999");
    rows.add("adam_epsilon", &S::adam_epsilon, "VALUE",
             "added to the denominator (adam, adamw, lamb)")
        .in(0, 1)
        .otherwise("1e-9, with adamw and lamb 1e-6");
    rows.add("weight_decay", &S::weight_decay, "FACTOR",
             "L2 penalty; decoupled with adamw and lamb, which like lars spare biases and norms")
        .in(0, 1)
        .otherwise("0.00004, with adam 0, with adamw and lamb 0.01");
    rows.add("lars_trust_coefficient", &S::lars_trust_coefficient, "FACTOR",
             "of lars: a weight's step relative to its norm, at learning rate 1")
        .in(0, 1);
    rows.add("dropout", &S::dropout, "PROBABILITY",
             "of sequence models: on embeddings, attention, residual and the Transformer's "
             "activation; of vgg16, alexnet and inception3: around the last linear layers")
        .in(0, 0.99)
        .otherwise("the model's default");
    rows.add("label_smoothing", &S::label_smoothing, "SHARE",
             "of the Transformer: probability spread over the vocabulary")
        .in(0, 0.99);
  }

  static void resolve(auto& config, const auto& facts) {
    if (!config.kernels) config.kernels = has_own_kernels() ? Kernels::scalemark : Kernels::torch;
    if (!config.optimizer) config.optimizer = from_string<Optimizer>(facts.optimizer);
    const OptimizerRates rates = default_rates(*config.optimizer);
    if (!config.adam_beta2) config.adam_beta2 = rates.beta2;
    if (!config.adam_epsilon) config.adam_epsilon = rates.epsilon;
    if (!config.weight_decay) config.weight_decay = rates.weight_decay;
    if (!config.dropout) config.dropout = facts.dropout;
  }

  static void check(const auto& whole) {
    const auto& config = whole.given;
    if (config.kernels == Kernels::scalemark && !has_own_kernels())
      throw EnvironmentError(
          "--kernels scalemark: this build has no kernels of its own; leave the flag out, which "
          "gives --kernels torch, or build with cmake -DSCALEMARK_KERNELS=ON");
    if (whole.command == Command::infer) return;
    if (config.precision == Precision::int8 ||
        std::ranges::find(config.more_precisions, Precision::int8) != config.more_precisions.end())
      whole.refuse(
          "--precision int8 has no gradients: it is of scalemark infer alone; train in fp32, tf32, "
          "bf16 or fp16");
  }
};

}  // namespace scalemark

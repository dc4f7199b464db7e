// Keys of a network that the user brings as a file of TorchScript.
#pragma once

#include <string_view>

#include "config/keys/model.hpp"
#include "models/catalog.hpp"

namespace scalemark {

enum class InputDtype { fp32, int64 };
constexpr auto names_of(InputDtype) { return Names{"fp32", "int64"}; }

enum class OwnLoss { cross_entropy, mse, own };
constexpr auto names_of(OwnLoss) { return Names{"cross_entropy", "mse", "own"}; }

/// "3x224x224" as numbers; empty where it is none.
std::vector<std::int64_t> shape_of(std::string_view text);
/// SHA-256 of a file's content. ConfigError where it cannot be read.
std::string digest_of_file(const std::string& path);

struct OwnModelSettings {
  std::optional<std::string> model_file;
  std::optional<std::string> model_digest;  ///< of the file: identity, wherever it lies
  std::optional<std::string> input_shape;   ///< of one sample
  InputDtype input_dtype = InputDtype::fp32;
  OwnLoss loss = OwnLoss::cross_entropy;
  std::optional<double> model_flops;  ///< forward, of one sample

  static void describe(auto& rows) {
    using S = OwnModelSettings;
    rows.group("A model of your own", Role::identity, kTraining);
    rows.add("model_file", &S::model_file, "FILE",
             "TorchScript module (torch.jit.save) that is measured in place of --model")
        .role(Role::output)
        .otherwise("--model")
        .of(kWithModel);
    rows.add("model_digest", &S::model_digest, "SHA256", "that --model_file must have")
        .otherwise("that of --model_file")
        .of(kWithModel);
    rows.add("input_shape", &S::input_shape, "CxHxW", "of one sample of --model_file: 3x224x224")
        .otherwise("needed with --model_file")
        .of(kWithModel);
    rows.add("input_dtype", &S::input_dtype, "TYPE",
             "fp32: normal numbers; int64: tokens below --num_classes")
        .of(kWithModel);
    rows.add(
        "loss", &S::loss, "NAME",
        "of the module's output: cross_entropy (the last dimension are classes), mse, or own: it "
        "is the mean loss itself");
    rows.add("model_flops", &S::model_flops, "N",
             "FLOPs of the forward pass of one sample (2 per multiply-add)")
        .in(1, 1e18)
        .otherwise("unknown")
        .of(kWithModel);
  }

  /// What the files that are named tell.
  static void read_files(auto& config) {
    if (!config.model_file) return;
    if (config.model == ModelSettings{}.model) config.model = kFileModel.name;
    if (!config.model_digest) config.model_digest = digest_of_file(*config.model_file);
  }

  static void check(const auto& whole) {
    const auto& config = whole.given;
    if (!config.model_file) {
      if (config.model_digest || config.input_shape || config.model_flops)
        whole.refuse("--model_digest, --input_shape and --model_flops belong to --model_file");
      return;
    }
    if (!config.input_shape || shape_of(*config.input_shape).empty())
      whole.refuse("--model_file needs --input_shape, the shape of one sample such as 3x224x224");
    if (whole.resolved.model_digest != digest_of_file(*config.model_file))
      whole.refuse("--model_digest: {} has the SHA-256 {}", *config.model_file,
                   digest_of_file(*config.model_file));
    if (config.model != kFileModel.name)
      whole.refuse("--model and --model_file: one network is measured; leave one out");
    if (config.dry_run)
      whole.refuse(
          "--dry_run plans with what the catalog tells of a model; --model_file tells nothing");
    if (config.data == SyntheticData::learnable)
      whole.refuse("--data learnable: --model_file has no task that can be learnt; leave it out");
  }
};

}  // namespace scalemark

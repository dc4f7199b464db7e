// Defines the keys of a user's network: a file of torch.export or TorchScript, or a shared library.
#pragma once

#include <string_view>

#include "config/keys/model.hpp"
#include "models/catalog.hpp"

namespace scalemark {

enum class InputDtype { fp32, int64 };
constexpr auto names_of(InputDtype) { return Names{"fp32", "int64"}; }

enum class OwnLoss { cross_entropy, mse, own };
constexpr auto names_of(OwnLoss) { return Names{"cross_entropy", "mse", "own"}; }

enum class OwnUnit { samples, images, sequences, tokens };
constexpr auto names_of(OwnUnit) { return Names{"samples", "images", "sequences", "tokens"}; }

/// Returns the numbers of a shape such as "3x224x224", or nothing where the text is not one.
std::vector<std::int64_t> shape_of(std::string_view text);
/// Returns the SHA-256 of the content of the file that `flag` names. Throws ConfigError where there
/// is none, and ResultError where it cannot be read.
std::string digest_of_file(std::string_view flag, const std::string& path);
/// Returns true for a file of torch.export.save, by its content.
bool is_exported(const std::string& path);

struct OwnModelSettings {
  std::optional<std::string> model_file, model_library;
  std::optional<std::string> model_digest;  ///< of the file: identity, wherever it lies
  std::optional<std::string> input_shape;   ///< of one sample
  InputDtype input_dtype = InputDtype::fp32;
  OwnLoss loss = OwnLoss::cross_entropy;
  OwnUnit model_unit = OwnUnit::samples;
  std::optional<double> model_flops;  ///< forward, of one sample

  bool brings_model() const { return model_file || model_library; }

  static void describe(auto& rows) {
    using S = OwnModelSettings;
    rows.group("A model of your own", Role::identity, kTraining);
    rows.add("model_file", &S::model_file, "FILE",
             "network of torch.export.save, or a TorchScript module (torch.jit.save), that is "
             "measured in place of --model")
        .role(Role::output)
        .otherwise("--model")
        .of(kWithModel);
    rows.add("model_library", &S::model_library, "FILE",
             "shared library with a C++ model (models/library.hpp) in place of --model")
        .role(Role::output)
        .otherwise("--model")
        .of(kWithModel);
    rows.add("model_digest", &S::model_digest, "SHA256", "that this file must have")
        .otherwise("that of the file")
        .of(kWithModel);
    rows.add("input_shape", &S::input_shape, "CxHxW", "of one sample: 3x224x224")
        .otherwise("needed with --model_file")
        .of(kWithModel);
    rows.add("input_dtype", &S::input_dtype, "TYPE",
             "of --model_file in TorchScript: fp32: normal numbers; int64: tokens below "
             "--num_classes")
        .of(kWithModel);
    rows.add(
        "loss", &S::loss, "NAME",
        "of the output of --model_file: cross_entropy (the last dimension are classes), mse, or "
        "own: it is the mean loss itself");
    rows.add("model_unit", &S::model_unit, "WORD",
             "what the model's throughput counts; tokens: those of the targets")
        .of(kWithModel);
    rows.add("model_flops", &S::model_flops, "N",
             "FLOPs of the forward pass of one sample (2 per multiply-add)")
        .in(1, 1e18)
        .otherwise("counted: convolutions and matrix products")
        .of(kWithModel);
  }

  /// Reads what the named files contain.
  static void read_files(auto& config) {
    if (!config.brings_model()) return;
    if (config.model == ModelSettings{}.model) config.model = own_facts(config).name;
    if (!config.model_digest) config.model_digest = digest_of(config);
  }

  static void check(const auto& whole) {
    const auto& config = whole.given;
    if (!config.brings_model()) {
      if (config.model_digest || config.input_shape || config.model_flops ||
          config.model_unit != OwnUnit::samples)
        whole.refuse(
            "--model_digest, --input_shape, --model_unit and --model_flops belong to --model_file "
            "and --model_library");
      return;
    }
    if (config.model_file && config.model_library)
      whole.refuse("--model_file and --model_library: one network is measured; leave one out");
    const std::string flag = config.model_file ? "--model_file" : "--model_library";
    if (config.model_file && !config.input_shape && !is_exported(*config.model_file))
      whole.refuse(
          "--model_file of TorchScript needs --input_shape, the shape of one sample such as "
          "3x224x224");
    if (config.input_shape && shape_of(*config.input_shape).empty())
      whole.refuse("--input_shape \"{}\" is no shape of one sample such as 3x224x224",
                   *config.input_shape);
    if (const std::string digest = digest_of(config); whole.resolved.model_digest != digest)
      whole.refuse("--model_digest: the file of {} has the SHA-256 {}", flag, digest);
    if (config.model != own_facts(config).name)
      whole.refuse("--model and {}: one network is measured; leave one out", flag);
    if (config.dry_run)
      whole.refuse("--dry_run plans with what the catalog tells of a model; {} tells nothing",
                   flag);
    if (config.model_file && config.data == SyntheticData::learnable)
      whole.refuse("--data learnable: --model_file has no task that can be learnt; leave it out");
  }

 private:
  static const ModelFacts& own_facts(const auto& config) {
    if (!config.model_file) return kLibraryModel;
    return is_exported(*config.model_file) ? kExportedModel : kScriptModel;
  }
  static std::string digest_of(const auto& config) {
    return config.model_file ? digest_of_file("--model_file", *config.model_file)
                             : digest_of_file("--model_library", *config.model_library);
  }
};

}  // namespace scalemark

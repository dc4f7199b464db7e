// The names of the configuration's choices, as users write them and records show them.
// One table an enum; the first name of a value is its canonical one, later ones are accepted
// aliases.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "config/run_config.hpp"

namespace scalemark {

template <typename E>
struct Choice {
  std::string_view name;
  E value;
};

template <typename E>
struct ChoicesOf;  // specialised below: `table`

template <>
struct ChoicesOf<Precision> {
  static constexpr std::array table{
      Choice<Precision>{"fp32", Precision::fp32}, Choice<Precision>{"tf32", Precision::tf32},
      Choice<Precision>{"bf16", Precision::bf16}, Choice<Precision>{"fp16", Precision::fp16}};
};
template <>
struct ChoicesOf<Device> {
  static constexpr std::array table{Choice<Device>{"auto", Device::automatic},
                                    Choice<Device>{"cpu", Device::cpu},
                                    Choice<Device>{"cuda", Device::cuda}};
};
template <>
struct ChoicesOf<Scaling> {
  static constexpr std::array table{Choice<Scaling>{"weak", Scaling::weak},
                                    Choice<Scaling>{"strong", Scaling::strong}};
};
template <>
struct ChoicesOf<CommunicatorKind> {
  static constexpr std::array table{Choice<CommunicatorKind>{"auto", CommunicatorKind::automatic},
                                    Choice<CommunicatorKind>{"mpi", CommunicatorKind::mpi},
                                    Choice<CommunicatorKind>{"nccl", CommunicatorKind::nccl},
                                    Choice<CommunicatorKind>{"none", CommunicatorKind::none}};
};
template <>
struct ChoicesOf<Overlap> {
  static constexpr std::array table{Choice<Overlap>{"none", Overlap::none},
                                    Choice<Overlap>{"backward", Overlap::backward}};
};
template <>
struct ChoicesOf<WireDtype> {
  static constexpr std::array table{Choice<WireDtype>{"fp32", WireDtype::fp32},
                                    Choice<WireDtype>{"bf16", WireDtype::bf16},
                                    Choice<WireDtype>{"fp16", WireDtype::fp16}};
};
template <>
struct ChoicesOf<GpuBinding> {
  static constexpr std::array table{Choice<GpuBinding>{"near", GpuBinding::near},
                                    Choice<GpuBinding>{"launcher", GpuBinding::launcher}};
};
template <>
struct ChoicesOf<Reducer> {
  static constexpr std::array table{Choice<Reducer>{"scalemark", Reducer::scalemark},
                                    Choice<Reducer>{"c10d", Reducer::c10d}};
};
template <>
struct ChoicesOf<EmbeddingGradients> {
  static constexpr std::array table{
      Choice<EmbeddingGradients>{"dense", EmbeddingGradients::dense},
      Choice<EmbeddingGradients>{"sparse", EmbeddingGradients::sparse},
      Choice<EmbeddingGradients>{"sparse_as_dense", EmbeddingGradients::sparse_as_dense}};
};
template <>
struct ChoicesOf<TiedGradient> {
  static constexpr std::array table{Choice<TiedGradient>{"dense", TiedGradient::dense},
                                    Choice<TiedGradient>{"sparse", TiedGradient::sparse}};
};
template <>
struct ChoicesOf<InputPlace> {
  static constexpr std::array table{Choice<InputPlace>{"device", InputPlace::device},
                                    Choice<InputPlace>{"host", InputPlace::host}};
};
template <>
struct ChoicesOf<LengthDistribution> {
  static constexpr std::array table{
      Choice<LengthDistribution>{"fixed", LengthDistribution::fixed},
      Choice<LengthDistribution>{"uniform", LengthDistribution::uniform},
      Choice<LengthDistribution>{"lognormal", LengthDistribution::lognormal}};
};
template <>
struct ChoicesOf<Resource> {
  static constexpr std::array table{
      Choice<Resource>{"rank", Resource::rank}, Choice<Resource>{"node", Resource::node},
      Choice<Resource>{"core", Resource::core}, Choice<Resource>{"gpu", Resource::gpu}};
};
template <>
struct ChoicesOf<Optimizer> {
  static constexpr std::array table{Choice<Optimizer>{"sgd", Optimizer::sgd},
                                    Choice<Optimizer>{"momentum", Optimizer::momentum},
                                    Choice<Optimizer>{"adam", Optimizer::adam},
                                    Choice<Optimizer>{"adamw", Optimizer::adamw},
                                    Choice<Optimizer>{"lamb", Optimizer::lamb},
                                    Choice<Optimizer>{"lars", Optimizer::lars}};
};
template <>
struct ChoicesOf<SyntheticData> {
  static constexpr std::array table{Choice<SyntheticData>{"noise", SyntheticData::noise},
                                    Choice<SyntheticData>{"learnable", SyntheticData::learnable}};
};
template <>
struct ChoicesOf<DataFormat> {
  // tf_cnn_benchmarks says NHWC and NCHW.
  static constexpr std::array table{
      Choice<DataFormat>{"channels_last", DataFormat::channels_last},
      Choice<DataFormat>{"channels_first", DataFormat::channels_first},
      Choice<DataFormat>{"NHWC", DataFormat::channels_last},
      Choice<DataFormat>{"NCHW", DataFormat::channels_first}};
};
template <>
struct ChoicesOf<Launcher> {
  static constexpr std::array table{Choice<Launcher>{"auto", Launcher::automatic},
                                    Choice<Launcher>{"mpirun", Launcher::mpirun},
                                    Choice<Launcher>{"srun", Launcher::srun}};
};
template <>
struct ChoicesOf<InferenceMode> {
  static constexpr std::array table{
      Choice<InferenceMode>{"batch", InferenceMode::batch},
      Choice<InferenceMode>{"single_stream", InferenceMode::single_stream}};
};
template <>
struct ChoicesOf<Fused> {
  static constexpr std::array table{Choice<Fused>{"on", Fused::on},
                                    Choice<Fused>{"off", Fused::off}};
};
template <>
struct ChoicesOf<Origin> {
  static constexpr std::array table{Choice<Origin>{"default", Origin::standard},
                                    Choice<Origin>{"file", Origin::file},
                                    Choice<Origin>{"environment", Origin::environment},
                                    Choice<Origin>{"command_line", Origin::command_line}};
};

/// The canonical name of a value: to_string(Precision::bf16) is "bf16".
template <typename E>
requires requires { ChoicesOf<E>::table; }
std::string to_string(E value) {
  for (const auto& choice : ChoicesOf<E>::table)
    if (choice.value == value) return std::string(choice.name);
  return "?";
}

/// The value of a name or alias; nullopt for an unknown one.
template <typename E>
requires requires { ChoicesOf<E>::table; }
std::optional<E> from_string(std::string_view name) {
  for (const auto& choice : ChoicesOf<E>::table)
    if (choice.name == name) return choice.value;
  return std::nullopt;
}

}  // namespace scalemark

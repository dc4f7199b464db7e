// Which keys belong to which subcommand.
#include <algorithm>
#include <array>

#include "config/keys.hpp"

namespace scalemark {
namespace {

/// What a forward pass has in common with training. Other keys speak of gradients, updates or
/// curves.
constexpr std::array<std::string_view, 26> kSharedWithInfer{"model",
                                                            "batch_size",
                                                            "image_size",
                                                            "sequence_length",
                                                            "num_classes",
                                                            "seed",
                                                            "num_batches",
                                                            "num_warmup_batches",
                                                            "roofline",
                                                            "target_ci",
                                                            "max_seconds",
                                                            "timeout",
                                                            "precision",
                                                            "data_format",
                                                            "device",
                                                            "num_intra_threads",
                                                            "flush_denormals",
                                                            "gpu_binding",
                                                            "num_inter_threads",
                                                            "output",
                                                            "json",
                                                            "display_every",
                                                            "timestamps",
                                                            "label",
                                                            "inject",
                                                            "preflight"};

/// What is measured without a model: the ranks, their devices and where the result goes.
constexpr std::array<std::string_view, 8> kSharedWithPreflight{
    "device", "num_intra_threads", "gpu_binding", "timeout", "output", "json", "label", "inject"};

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, const Key& key) {
  return std::ranges::find(names, key.name) != names.end();
}

}  // namespace

std::string_view name_of(Command command) {
  switch (command) {
    case Command::run:
      return "run";
    case Command::scale:
      return "scale";
    case Command::infer:
      return "infer";
    case Command::preflight:
      break;
  }
  return "preflight";
}

bool belongs(const Key& key, Command command) {
  if (command == Command::infer) return key.infer_only || among(kSharedWithInfer, key);
  if (command == Command::preflight) return key.preflight_only || among(kSharedWithPreflight, key);
  return !key.infer_only && !key.preflight_only && (command == Command::scale || !key.scale_only);
}

bool recorded(const Key& key, Command command) {
  return belongs(key, command == Command::run ? Command::scale : command);
}

}  // namespace scalemark

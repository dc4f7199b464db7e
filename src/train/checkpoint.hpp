// Checkpoints of a training run: what they hold and how they come to lie on disk, whole or not at
// all.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "platform/posix_file.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark {

/// Scalars of training that a checkpoint holds beside its tensors. What has another one adds it
/// here and in write_training_state().
struct TrainingState {
  std::int64_t steps = 0;            ///< done, from the first warm-up step on
  std::int64_t optimizer_steps = 0;  ///< those that the optimizer counts (bias correction)
  double learning_rate = 0;          ///< of the last update
  double loss_scale = 1;             ///< of fp16; else 1
};

/// The archive that torch::load() reads into a model of the same name: weights (fp32) and buffers,
/// such as BatchNorm's running statistics, under their names; "optimizer", with a list of tensors
/// in the order of Model::named_parameters() for each of its states ("state0", ...);
/// "training_state", with the scalars of TrainingState.
void write_training_state(torch::serialize::OutputArchive& archive, const Model& model,
                          FlatParameters& parameters, const TrainingState& state);

/// Bytes of tensors in such an archive; the archive itself adds a little.
std::int64_t checkpoint_tensor_bytes(const Model& model, FlatParameters& parameters);

/// One of those who write the checkpoints of a run, a file each.
struct CheckpointWriter {
  int rank = 0;
  bool alone = true;      ///< files are checkpoint-STEP.pt, else checkpoint-STEP-rankR.pt
  int files_of_node = 1;  ///< that its node writes at a time
  std::string suffix() const { return alone ? "" : "-rank" + std::to_string(rank); }
};

/// The folder that a run writes its checkpoints to. While rank 0's lives no other run has the
/// folder, and while another rank's does no other run has the names of that rank; the last two
/// checkpoints lie there. At the end they are removed, but for the last one where the folder was
/// asked for.
class CheckpointFolder {
 public:
  /// `asked_for`: made where it is missing; without it a folder of its own in the system's
  /// temporary one, which goes with it. Throws ResultError where it cannot be written, is another
  /// run's, or has no room for three checkpoints of `bytes` of each file of the node.
  CheckpointFolder(const std::optional<std::string>& asked_for, std::int64_t bytes,
                   const CheckpointWriter& writer = {});
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  /// Writes `archive` as the writer's file of STEP: a hidden temporary file, fsync, rename, fsync
  /// of the folder. Then removes the oldest of three. Returns its bytes. Throws ResultError naming
  /// the path; then nothing lies under that name that was not there before.
  std::int64_t write(torch::serialize::OutputArchive& archive, std::int64_t step);

  const std::filesystem::path& path() const { return folder_; }

 private:
  void remove_all_but(std::size_t newest);
  void leave() noexcept;

  std::filesystem::path folder_;
  std::string suffix_;
  bool asked_for_;
  std::unique_ptr<FileLock> lock_;
  std::deque<std::filesystem::path> written_;  ///< that still lie there, oldest first
};

}  // namespace scalemark

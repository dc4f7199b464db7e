// Defines the content of checkpoints of a training run and how they are written to disk, completely
// or not at all.
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

/// The scalars of training that a checkpoint holds beside its tensors. Further ones are added here
/// and in write_training_state().
struct TrainingState {
  std::int64_t steps = 0;            ///< done, from the first warm-up step on
  std::int64_t optimizer_steps = 0;  ///< steps that the optimizer counts (bias correction)
  double learning_rate = 0;          ///< rate of the last update
  double loss_scale = 1;             ///< scale with fp16; else 1
};

/// Writes the archive that torch::load() reads into a model of the same name: weights (fp32) and
/// buffers, such as BatchNorm's running statistics, under their names; "optimizer", with a list of
/// tensors in the order of Model::named_parameters() for each of its states ("state0", ...);
/// "training_state", with the scalars of TrainingState.
void write_training_state(torch::serialize::OutputArchive& archive, const Model& model,
                          FlatParameters& parameters, const TrainingState& state);

/// Returns the bytes of the tensors in such an archive; the archive itself adds a little.
std::int64_t checkpoint_tensor_bytes(const Model& model, FlatParameters& parameters);

/// A rank that writes checkpoints of a run. Each of them writes one file.
struct CheckpointWriter {
  int rank = 0;
  bool alone = true;      ///< files are checkpoint-STEP.pt, else checkpoint-STEP-rankR.pt
  int files_of_node = 1;  ///< files that its node writes at a time
  std::string suffix() const { return alone ? "" : "-rank" + std::to_string(rank); }
};

/// Manages the folder to which a run writes its checkpoints. During the lifetime of rank 0's object
/// no other run can use the folder, and during that of another rank's object no other run can use
/// the names of that rank. The folder holds the last two checkpoints. At the end they are removed,
/// except for the last one where the folder was requested.
class CheckpointFolder {
 public:
  /// The folder `asked_for` is created where it is missing. Without it, a private folder in the
  /// system's temporary folder is used and removed at the end. Throws ResultError where the folder
  /// cannot be written, is used by another run, or has no room for three checkpoints of `bytes` of
  /// each file of the node.
  CheckpointFolder(const std::optional<std::string>& asked_for, std::int64_t bytes,
                   const CheckpointWriter& writer = {});
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  /// Writes `archive` as the writer's file of STEP: a hidden temporary file, fsync, rename, fsync
  /// of the folder. Then it removes the oldest of three. Returns the bytes of the file. Throws
  /// ResultError naming the path; the content under that name is then unchanged.
  std::int64_t write(torch::serialize::OutputArchive& archive, std::int64_t step);

  const std::filesystem::path& path() const { return folder_; }

 private:
  void remove_all_but(std::size_t newest);
  void leave() noexcept;

  std::filesystem::path folder_;
  std::string suffix_;
  bool asked_for_;
  std::unique_ptr<FileLock> lock_;
  std::deque<std::filesystem::path> written_;  ///< files that still exist, oldest first
};

}  // namespace scalemark

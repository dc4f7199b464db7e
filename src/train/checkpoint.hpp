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

/// Says what set of files a rank's part of a divided training (--shard) belongs to.
struct CheckpointSet {
  Shard shard = Shard::none;  ///< what is divided, also where a rank has nobody to divide it with
  std::string measurement = {};  ///< a random text that the files of one measurement share
};

/// Writes the archive of the part that this rank holds: "part" with the set, its number of files
/// and this file's place in it, and for each piece of a parameter its name and number in
/// Model::named_parameters(), the shape and strides of the whole, its first element in memory
/// order, and fp32 tensors [elements] of the weights and of each state. Rank 0 adds "whole": the
/// names of modules, the buffers, the number of parameters; and "training_state". No weights are
/// gathered or copied.
void write_training_part(torch::serialize::OutputArchive& archive, const Model& model,
                         FlatParameters& parameters, const CheckpointSet& set,
                         const TrainingState& state);

/// Returns the bytes of the tensors in an archive of this rank, of the whole or of its part; the
/// archive itself adds a little.
std::int64_t checkpoint_tensor_bytes(const Model& model, FlatParameters& parameters);

/// The content of a checkpoint, put together from the parts of all ranks. It is what
/// write_training_state() writes of the same training on one rank, however many there were.
struct WholeCheckpoint {
  struct Named {
    std::string name;
    at::Tensor tensor;  ///< on the CPU
  };
  std::vector<std::string> modules;  ///< their names, each before those within it
  std::vector<Named> weights;        ///< fp32, in the order of Model::named_parameters()
  std::vector<Named> buffers;
  std::vector<std::vector<at::Tensor>> states;  ///< of the optimizer, each in that order, fp32
  TrainingState training;
  std::string shard;                     ///< what was divided
  int ranks = 1;                         ///< among how many
  std::vector<std::string> passed_over;  ///< what is wrong with newer steps

  /// Writes the archive that write_training_state() writes.
  void write(torch::serialize::OutputArchive& archive) const;
};

/// Reads the parts of a step in a folder, or without a step of the newest one whose parts are all
/// there. Throws ConfigError where the folder has no parts, or none of the step, and ResultError,
/// which names the file, where one is missing, damaged, or of another step, measurement or number
/// of ranks.
WholeCheckpoint read_sharded_checkpoint(const std::filesystem::path& folder,
                                        std::optional<std::int64_t> step = std::nullopt);

/// Writes it to a file, completely or not at all, in place of what was there. Returns the bytes.
/// Throws ResultError naming the path.
std::int64_t write_whole_checkpoint(const WholeCheckpoint& whole,
                                    const std::filesystem::path& file);

/// A rank that writes checkpoints of a run. Each of them writes one file.
struct CheckpointWriter {
  int rank = 0;
  bool alone = true;      ///< files are checkpoint-STEP.pt, else checkpoint-STEP-rankR.pt
  int files_of_node = 1;  ///< files that its node writes at a time
  int parts = 0;          ///< files that are one checkpoint together; 0: each is a whole one
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
  /// ResultError naming the path; the content under that name is then unchanged. Of parts, rank 0
  /// also removes files of STEP by ranks that there are no more.
  std::int64_t write(torch::serialize::OutputArchive& archive, std::int64_t step);
  /// Says that every writer has written its file of the last step. Without it that part is not
  /// kept at the end, but the one before, of which there are all.
  void all_have_written() { last_is_complete_ = true; }

  const std::filesystem::path& path() const { return folder_; }

 private:
  void remove_all_but(std::size_t newest);
  void remove_superseded(std::int64_t step) const;
  void leave() noexcept;

  std::filesystem::path folder_;
  CheckpointWriter writer_;
  bool asked_for_;
  std::unique_ptr<FileLock> lock_;
  std::deque<std::filesystem::path> written_;  ///< files that still exist, oldest first
  bool last_is_complete_ = true;               ///< of the last one of them, see all_have_written()
};

}  // namespace scalemark

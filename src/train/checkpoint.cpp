// Collects the content of checkpoints, decides when one is written, writes them to disk atomically,
// and manages their folder.
#include "train/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "error.hpp"
#include "measure/clock.hpp"
#include "platform/posix_file.hpp"
#include "streams.hpp"
#include "train/measured_loop.hpp"

namespace scalemark {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKept = 2;
constexpr std::int64_t kArchiveBytes = 1 << 18;  ///< names and padding of an archive, about
constexpr std::size_t kProbeBytes = 1 << 16;

[[noreturn]] void refuse(const fs::path& path, const std::string& what, int error) {
  if (error == EFBIG)
    throw ResultError(
        fmt::format("checkpoint {}: {}: {}", path.string(), what, write_error_words(error)));
  const bool full = error == ENOSPC || error == EDQUOT;
  throw ResultError(fmt::format(
      "checkpoint {}: {}: {}; {} with --checkpoint_dir", path.string(), what, std::strerror(error),
      full ? "free some space or choose another folder" : "choose a folder that you may write to"));
}

/// Returns the requested folder, or makes a private one.
fs::path make_folder(const std::optional<std::string>& asked_for) {
  std::error_code error;
  if (asked_for) {
    fs::create_directories(*asked_for, error);
    if (error) refuse(*asked_for, "the folder cannot be made", error.value());
    return *asked_for;
  }
  fs::path temporary = fs::temp_directory_path(error);
  if (error) temporary = "/tmp";
  std::string path = (temporary / "scalemark-checkpoints-XXXXXX").string();
  if (!mkdtemp(path.data())) refuse(path, "the folder cannot be made", errno);
  return path;
}

/// Takes the lock of the folder. Rank 0 is alone in a folder; another rank is alone with its file
/// names.
std::unique_ptr<FileLock> take_lock(const fs::path& folder, const CheckpointWriter& writer) {
  std::unique_ptr<FileLock> lock;
  try {
    lock = FileLock::try_take(
        folder / (".scalemark-checkpoints" + (writer.rank == 0 ? "" : writer.suffix()) + ".lock"));
  } catch (const std::system_error& error) {
    refuse(folder, "no file can be made there", error.code().value());
  }
  if (!lock)
    throw ResultError(fmt::format(
        "checkpoint {}: another run writes its checkpoints there; give each run a folder of its "
        "own with --checkpoint_dir",
        folder.string()));
  return lock;
}

/// A hidden file that gets the name of a checkpoint when it is complete, and is removed otherwise.
class PendingFile {
 public:
  explicit PendingFile(const fs::path& path)
      : path_(path), temporary_(path.parent_path() / ("." + path.filename().string() + ".tmp")) {
    unlink(temporary_.c_str());  // left by a run that was killed
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) refuse(path_, "no file can be made there", errno);
  }
  ~PendingFile() {
    close(fd_);
    if (!in_place_) unlink(temporary_.c_str());
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  /// Keeps the first error for put_in_place(), since the writer of the archive must not be
  /// interrupted.
  std::size_t write(const void* data, std::size_t size) noexcept {
    if (error_ == 0) error_ = write_whole(fd_, {static_cast<const char*>(data), size});
    if (error_ == 0) bytes_ += static_cast<std::int64_t>(size);
    return size;
  }
  void put_in_place() {
    if (error_ == 0 && fsync(fd_) != 0) error_ = errno;
    if (error_ != 0) refuse(path_, "it cannot be written", error_);
    if (rename(temporary_.c_str(), path_.c_str()) != 0)
      refuse(path_, "it cannot be put in place", errno);
    in_place_ = true;
    sync_folder(path_.parent_path());
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  fs::path path_, temporary_;
  int fd_ = -1;
  int error_ = 0;
  bool in_place_ = false;
  std::int64_t bytes_ = 0;
};

/// Writes a small file in the same way, then compares the free space.
void probe(const fs::path& folder, std::int64_t bytes, const CheckpointWriter& writer) {
  const fs::path path = folder / ("checkpoint-probe" + writer.suffix());
  {
    PendingFile file(path);
    const std::string data(kProbeBytes, '\x5a');
    file.write(data.data(), data.size());
    file.put_in_place();
  }
  unlink(path.c_str());
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  const auto needed = static_cast<std::uintmax_t>(static_cast<std::int64_t>(kKept + 1) *
                                                  writer.files_of_node * (bytes + kArchiveBytes));
  if (!error && space.available < needed)
    refuse(folder,
           fmt::format(
               "{:.1f} MB are free, and three checkpoints take {:.1f} MB{}",
               static_cast<double>(space.available) / 1e6, static_cast<double>(needed) / 1e6,
               writer.files_of_node == 1 ? ""
                                         : fmt::format(" in {} files each", writer.files_of_node)),
           ENOSPC);
}

/// Removes temporary files of this writer from runs that were killed. The lock guarantees that none
/// is being written.
void remove_leftovers(const fs::path& folder, const std::string& suffix) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool of_a_rank = name.find("-rank") != name.npos;
    if (name.starts_with(".checkpoint-") && name.ends_with(suffix + ".pt.tmp") &&
        of_a_rank == !suffix.empty())
      fs::remove(entry.path(), ignored);
  }
}

/// Returns the slice of every parameter, by its number.
std::unordered_map<int, Slice> slices_by_parameter(const FlatParameters& parameters) {
  std::unordered_map<int, Slice> slices;
  for (const Slice& slice : parameters.slices()) slices[slice.parameter] = slice;
  return slices;
}

}  // namespace

CheckpointFolder::CheckpointFolder(const std::optional<std::string>& asked_for, std::int64_t bytes,
                                   const CheckpointWriter& writer)
    : folder_(make_folder(asked_for)), suffix_(writer.suffix()), asked_for_(asked_for.has_value()) {
  try {
    lock_ = take_lock(folder_, writer);
    remove_leftovers(folder_, suffix_);
    probe(folder_, bytes, writer);
  } catch (...) {
    leave();
    throw;
  }
}

CheckpointFolder::~CheckpointFolder() {
  remove_all_but(asked_for_ ? 1 : 0);
  leave();
}

void CheckpointFolder::leave() noexcept {
  lock_ = nullptr;
  if (asked_for_) return;
  std::error_code ignored;
  fs::remove(folder_, ignored);
}

void CheckpointFolder::remove_all_but(std::size_t newest) {
  while (written_.size() > newest) {
    unlink(written_.front().c_str());
    written_.pop_front();
  }
}

std::int64_t CheckpointFolder::write(torch::serialize::OutputArchive& archive, std::int64_t step) {
  const fs::path path = folder_ / fmt::format("checkpoint-{:08}{}.pt", step, suffix_);
  PendingFile file(path);
  archive.save_to([&file](const void* data, std::size_t size) { return file.write(data, size); });
  file.put_in_place();
  std::erase(written_, path);  // may be of an earlier measurement of the same run
  written_.push_back(path);
  remove_all_but(kKept);
  return file.bytes();
}

void write_training_state(torch::serialize::OutputArchive& archive, const Model& model,
                          FlatParameters& parameters, const TrainingState& state) {
  const at::NoGradGuard no_grad;
  // Leaves and states are views of buckets. The serialiser writes a bucket once, whatever its
  // views.
  model.save(archive);
  torch::serialize::OutputArchive optimizer(archive.compilation_unit());
  const auto slices = slices_by_parameter(parameters);
  const std::vector<at::Tensor> leaves = model.parameters();
  const std::vector<Bucket>& buckets = parameters.buckets();
  for (std::size_t i = 0; i < buckets.front().state.size(); ++i) {
    c10::List<at::Tensor> tensors;
    for (int parameter = 0; parameter < static_cast<int>(leaves.size()); ++parameter) {
      const Slice& slice = slices.at(parameter);
      tensors.push_back(view_of(buckets[static_cast<std::size_t>(slice.bucket)].state[i], slice,
                                leaves[static_cast<std::size_t>(parameter)]));
    }
    optimizer.write("state" + std::to_string(i), c10::IValue(tensors));
  }
  archive.write("optimizer", optimizer);
  torch::serialize::OutputArchive training(archive.compilation_unit());
  training.write("steps", c10::IValue(state.steps));
  training.write("optimizer_steps", c10::IValue(state.optimizer_steps));
  training.write("learning_rate", c10::IValue(state.learning_rate));
  training.write("loss_scale", c10::IValue(state.loss_scale));
  archive.write("training_state", training);
}

std::int64_t checkpoint_tensor_bytes(const Model& model, FlatParameters& parameters) {
  std::int64_t bytes = 0;
  for (const Bucket& bucket : parameters.buckets()) {
    bytes += static_cast<std::int64_t>(bucket.weights.nbytes());
    for (const at::Tensor& state : bucket.state) bytes += static_cast<std::int64_t>(state.nbytes());
  }
  for (const at::Tensor& buffer : model.buffers())
    bytes += static_cast<std::int64_t>(buffer.nbytes());
  return bytes;
}

std::function<void(long)> checkpoint_writer(Trainer::Impl& trainer, RankGroup& group,
                                            CheckpointSamples& samples, MeasuredLoop& loop) {
  if (trainer.config.checkpoint_every == 0) return [](long) {};
  const std::int64_t every = trainer.config.checkpoint_every;
  if (trainer.checkpoints) samples.every = every;
  const auto write = [&trainer, &samples, &loop](long number) {
    if (!trainer.checkpoints) return;
    trainer.device.synchronize();  // excludes the step's own work from the time of the checkpoint
    const double begin = steady_seconds();
    const UpdateRule& rule = *trainer.optimizer;
    torch::serialize::OutputArchive archive;
    write_training_state(archive, *trainer.model, *trainer.parameters,
                         {number + 1, rule.steps(), rule.learning_rate(), loop.loss_scale()});
    samples.bytes = trainer.checkpoints->write(archive, number + 1);
    samples.write_seconds.push_back(steady_seconds() - begin);
  };
  return [&trainer, &group, &loop, every, write](long number) {
    const long measured = number + 1 - static_cast<long>(trainer.config.num_warmup_batches);
    if (measured % every != 0) return;
    group.watchdog().enter("checkpoint", number);
    loop.complete_updates(StepPhase::checkpoint);
    // The next step waits for the slowest rank anyway; a disk that is full ends all ranks alike.
    try {
      group.agree_on([&] { write(number); });
    } catch (const AgreedError& error) {
      throw AgreedWhileMeasuring(error.code(), error.what());
    }
  };
}

}  // namespace scalemark

// Collects the content of checkpoints, decides when one is written, writes them to disk atomically,
// manages their folder, and puts the parts of a divided training together.
#include "train/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <unordered_map>
#include <utility>

#include "config/names.hpp"
#include "config/text.hpp"
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

[[noreturn]] void refuse(const fs::path& path, const std::string& what, int error,
                         const char* flag = "--checkpoint_dir") {
  if (error == EFBIG)
    throw ResultError(
        fmt::format("checkpoint {}: {}: {}", path.string(), what, write_error_words(error)));
  const bool full = error == ENOSPC || error == EDQUOT;
  throw ResultError(fmt::format(
      "checkpoint {}: {}: {}; {} with {}", path.string(), what, std::strerror(error),
      full ? "free some space or choose another folder" : "choose a folder that you may write to",
      flag));
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
  /// `flag` is what has chosen the folder.
  explicit PendingFile(const fs::path& path, const char* flag = "--checkpoint_dir")
      : path_(path),
        temporary_(path.parent_path() / ("." + path.filename().string() + ".tmp")),
        flag_(flag) {
    unlink(temporary_.c_str());  // left by a run that was killed
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) refuse(path_, "no file can be made there", errno, flag_);
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
    if (error_ != 0) refuse(path_, "it cannot be written", error_, flag_);
    if (rename(temporary_.c_str(), path_.c_str()) != 0)
      refuse(path_, "it cannot be put in place", errno, flag_);
    in_place_ = true;
    sync_folder(folder_of(path_));
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  fs::path path_, temporary_;
  const char* flag_;
  int fd_ = -1;
  int error_ = 0;
  bool in_place_ = false;
  std::int64_t bytes_ = 0;
};

/// Writes an archive to a file, completely or not at all. Returns its bytes.
std::int64_t write_archive(torch::serialize::OutputArchive& archive, PendingFile&& file) {
  archive.save_to([&file](const void* data, std::size_t size) { return file.write(data, size); });
  file.put_in_place();
  return file.bytes();
}

fs::path checkpoint_path(const fs::path& folder, std::int64_t step, const std::string& suffix) {
  return folder / fmt::format("checkpoint-{:08}{}.pt", step, suffix);
}

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
    : folder_(make_folder(asked_for)), writer_(writer), asked_for_(asked_for.has_value()) {
  try {
    lock_ = take_lock(folder_, writer);
    remove_leftovers(folder_, writer.suffix());
    probe(folder_, bytes, writer);
  } catch (...) {
    leave();
    throw;
  }
}

CheckpointFolder::~CheckpointFolder() {
  if (writer_.parts > 0 && !last_is_complete_) {  // some rank has no file of that step
    unlink(written_.back().c_str());
    written_.pop_back();
  }
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

/// Removes the files of a step that belong to no set any more, since rank 0's is of another one.
void CheckpointFolder::remove_superseded(std::int64_t step) const {
  CheckpointWriter gone = writer_;
  for (gone.rank = writer_.parts;
       unlink(checkpoint_path(folder_, step, gone.suffix()).c_str()) == 0; ++gone.rank) {
  }
}

std::int64_t CheckpointFolder::write(torch::serialize::OutputArchive& archive, std::int64_t step) {
  const fs::path path = checkpoint_path(folder_, step, writer_.suffix());
  const std::int64_t bytes = write_archive(archive, PendingFile(path));
  std::erase(written_, path);  // may be of an earlier measurement of the same run
  written_.push_back(path);
  last_is_complete_ = false;
  if (writer_.parts > 0 && writer_.rank == 0) remove_superseded(step);
  remove_all_but(kKept);
  return bytes;
}

namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

void write_scalars(OutputArchive& archive, const TrainingState& state) {
  OutputArchive training(archive.compilation_unit());
  training.write("steps", c10::IValue(state.steps));
  training.write("optimizer_steps", c10::IValue(state.optimizer_steps));
  training.write("learning_rate", c10::IValue(state.learning_rate));
  training.write("loss_scale", c10::IValue(state.loss_scale));
  archive.write("training_state", training);
}

std::string state_key(std::size_t i) { return "state" + std::to_string(i); }

/// Writes the states of the optimizer, each of `count` tensors.
void write_states(OutputArchive& archive, std::size_t states, std::size_t count,
                  const std::function<at::Tensor(std::size_t state, std::size_t parameter)>& of) {
  OutputArchive optimizer(archive.compilation_unit());
  for (std::size_t i = 0; i < states; ++i) {
    c10::List<at::Tensor> tensors;
    for (std::size_t parameter = 0; parameter < count; ++parameter)
      tensors.push_back(of(i, parameter));
    optimizer.write(state_key(i), c10::IValue(tensors));
  }
  archive.write("optimizer", optimizer);
}

}  // namespace

void write_training_state(torch::serialize::OutputArchive& archive, const Model& model,
                          FlatParameters& parameters, const TrainingState& state) {
  const at::NoGradGuard no_grad;
  // Leaves and states are views of buckets. The serialiser writes a bucket once, whatever its
  // views.
  model.save(archive);
  const auto slices = slices_by_parameter(parameters);
  const std::vector<at::Tensor> leaves = model.parameters();
  const std::vector<Bucket>& buckets = parameters.buckets();
  write_states(archive, buckets.front().state.size(), leaves.size(),
               [&](std::size_t i, std::size_t parameter) {
                 const Slice& slice = slices.at(static_cast<int>(parameter));
                 return view_of(buckets[static_cast<std::size_t>(slice.bucket)].state[i], slice,
                                leaves[parameter]);
               });
  write_scalars(archive, state);
}

namespace {

/// Returns the same memory as a tensor that owns no more than what it shows: the serialiser writes
/// whole storages, and that of a block may be the bucket of all ranks.
at::Tensor alone(const at::Tensor& flat) {
  return at::from_blob(flat.data_ptr(), flat.sizes(), flat.options());
}

/// Pieces of parameters, each of elements that follow one another in memory.
struct Pieces {
  c10::List<std::int64_t> numbers, firsts;
  c10::List<std::string> names;
  c10::List<c10::List<std::int64_t>> shapes, strides;
  c10::List<at::Tensor> weights;
  std::vector<c10::List<at::Tensor>> states;

  /// Adds the pieces of this rank's block of a bucket. `whole` holds the slices of all parameters.
  void add(const Bucket& bucket, int rank, const std::unordered_map<int, Slice>& whole,
           const torch::OrderedDict<std::string, at::Tensor>& leaves) {
    const at::Tensor block = alone(bucket.weights);
    states.resize(bucket.state.size());
    for (const Slice& slice : bucket.slices) {
      const auto& leaf = leaves[static_cast<std::size_t>(slice.parameter)];
      numbers.push_back(slice.parameter);
      names.push_back(leaf.key());
      shapes.push_back(c10::List<std::int64_t>(leaf->sizes()));
      strides.push_back(c10::List<std::int64_t>(leaf->strides()));
      firsts.push_back(bucket.count * rank + slice.offset - whole.at(slice.parameter).offset);
      weights.push_back(block.narrow(0, slice.offset, slice.count));
      for (std::size_t i = 0; i < states.size(); ++i)
        states[i].push_back(bucket.state[i].narrow(0, slice.offset, slice.count));
    }
  }
};

/// Writes what no rank holds a part of.
void write_undivided(OutputArchive& archive, const Model& model) {
  c10::List<std::string> modules, buffers;
  c10::List<at::Tensor> tensors;
  for (const auto& module : model.named_modules("", /*include_self=*/false))
    if (module.value()->is_serializable()) modules.push_back(module.key());
  for (const auto& buffer : model.named_buffers()) {
    buffers.push_back(buffer.key());
    tensors.push_back(buffer.value());
  }
  OutputArchive whole(archive.compilation_unit());
  whole.write("parameters", c10::IValue(static_cast<std::int64_t>(model.parameters().size())));
  whole.write("modules", c10::IValue(modules));
  whole.write("buffers", c10::IValue(buffers));
  whole.write("buffer_tensors", c10::IValue(tensors));
  archive.write("whole", whole);
}

}  // namespace

void write_training_part(OutputArchive& archive, const Model& model, FlatParameters& parameters,
                         const CheckpointSet& set, const TrainingState& state) {
  const at::NoGradGuard no_grad;
  const Division& division = parameters.division();
  const auto slices = slices_by_parameter(parameters);
  const auto leaves = model.named_parameters();
  Pieces pieces;
  for (const Bucket& bucket : parameters.buckets())
    pieces.add(bucket, division.rank, slices, leaves);
  OutputArchive part(archive.compilation_unit());
  part.write("shard", c10::IValue(to_string(set.shard)));
  part.write("measurement", c10::IValue(set.measurement));
  part.write("step", c10::IValue(state.steps));
  part.write("ranks", c10::IValue(static_cast<std::int64_t>(division.ranks)));
  part.write("rank", c10::IValue(static_cast<std::int64_t>(division.rank)));
  part.write("numbers", c10::IValue(pieces.numbers));
  part.write("names", c10::IValue(pieces.names));
  part.write("shapes", c10::IValue(pieces.shapes));
  part.write("strides", c10::IValue(pieces.strides));
  part.write("firsts", c10::IValue(pieces.firsts));
  part.write("weights", c10::IValue(pieces.weights));
  part.write("states", c10::IValue(static_cast<std::int64_t>(pieces.states.size())));
  for (std::size_t i = 0; i < pieces.states.size(); ++i)
    part.write(state_key(i), c10::IValue(pieces.states[i]));
  archive.write("part", part);
  if (division.rank != 0) return;
  write_undivided(archive, model);
  write_scalars(archive, state);
}

namespace {

fs::path part_path(const fs::path& folder, std::int64_t step, int rank) {
  return checkpoint_path(folder, step, CheckpointWriter{rank, false}.suffix());
}

/// Returns the steps of which there is any part.
std::set<std::int64_t> steps_in(const fs::path& folder) {
  std::set<std::int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const auto number_behind = [&](std::string_view words, auto number) {
      const std::size_t at = name.find(words);
      if (at != name.npos)
        std::from_chars(name.data() + at + words.size(), name.data() + name.size(), number);
      return number;
    };
    const auto step = number_behind("checkpoint-", std::int64_t{-1});
    const int rank = number_behind("-rank", -1);
    if (step >= 0 && rank >= 0 && name == part_path("", step, rank).string()) steps.insert(step);
  }
  if (error)
    throw ConfigError(fmt::format("{}: {}; give the folder of --checkpoint_dir", folder.string(),
                                  error.message()));
  return steps;
}

[[noreturn]] void refuse_part(const fs::path& path, const std::string& what) {
  throw ResultError(
      fmt::format("checkpoint {}: {}; the files of all ranks are needed as one run wrote them: "
                  "bring them into this folder, or take another step with --step",
                  path.string(), what));
}

c10::IValue value_of(InputArchive& archive, const std::string& key) {
  c10::IValue value;
  archive.read(key, value);
  return value;
}

std::vector<std::string> words_in(InputArchive& archive, const std::string& key) {
  std::vector<std::string> words;
  for (const c10::IValue& word : value_of(archive, key).toListRef())
    words.push_back(word.toStringRef());
  return words;
}

/// A file of a set.
struct PartFile {
  fs::path path;
  InputArchive archive, part;
  std::int64_t step = 0, ranks = 0, rank = 0;
  std::string shard, measurement;
};

/// Puts parts together, in the order of ranks, in which the pieces of a parameter follow one
/// another.
class PartJoiner {
 public:
  PartJoiner(const fs::path& folder, std::int64_t step) : folder_(folder), step_(step) {}

  WholeCheckpoint join() {
    for (int rank = 0; rank < whole_.ranks; ++rank) {
      const fs::path path = part_path(folder_, step_, rank);
      std::error_code error;
      if (!fs::exists(path, error))
        refuse_part(path, rank == 0 ? "it is not there"
                                    : fmt::format("it is not there, and step {} is of {} ranks",
                                                  step_, whole_.ranks));
      try {
        PartFile file = read(path);
        check(file, rank);
        if (rank == 0) take_undivided(file);
        take_pieces(file);
      } catch (const ResultError&) {
        throw;
      } catch (const std::exception& error) {
        const std::string words = words_of(error);
        refuse_part(path, "it cannot be read (" + words.substr(0, words.find('\n')) + ")");
      }
    }
    for (std::size_t i = 0; i < elements_.size(); ++i)
      if (!whole_.weights[i].tensor.defined() || elements_[i] != whole_.weights[i].tensor.numel())
        refuse_part(
            part_path(folder_, step_, 0),
            fmt::format("the parts do not make up parameter {} of {}", i + 1, elements_.size()));
    return std::move(whole_);
  }

 private:
  static PartFile read(const fs::path& path) {
    PartFile file;
    file.path = path;
    file.archive.load_from(path.string(), at::kCPU);
    if (!file.archive.try_read("part", file.part))
      refuse_part(path,
                  "it holds no part of a run with --shard, but a whole checkpoint, which "
                  "torch::load() reads as it is");
    file.step = value_of(file.part, "step").toInt();
    file.ranks = value_of(file.part, "ranks").toInt();
    file.rank = value_of(file.part, "rank").toInt();
    file.shard = value_of(file.part, "shard").toStringRef();
    file.measurement = value_of(file.part, "measurement").toStringRef();
    return file;
  }

  void check(const PartFile& file, int rank) {
    if (file.step != step_ || file.rank != rank)
      refuse_part(file.path, fmt::format("it holds rank {} of step {}", file.rank, file.step));
    if (rank == 0) {
      measurement_ = file.measurement;
      whole_.shard = file.shard;
      whole_.ranks = static_cast<int>(file.ranks);
    }
    if (file.ranks != whole_.ranks)
      refuse_part(file.path, fmt::format("it is of {} ranks, and rank 0's is of {}", file.ranks,
                                         whole_.ranks));
    if (file.measurement != measurement_ || file.shard != whole_.shard)
      refuse_part(file.path, "it is of another measurement than rank 0's");
  }

  void take_undivided(PartFile& file) {
    InputArchive whole, training;
    file.archive.read("whole", whole);
    file.archive.read("training_state", training);
    const auto count = static_cast<std::size_t>(value_of(whole, "parameters").toInt());
    elements_.resize(count);
    whole_.weights.resize(count);
    whole_.states.resize(static_cast<std::size_t>(value_of(file.part, "states").toInt()));
    for (auto& state : whole_.states) state.resize(count);
    whole_.modules = words_in(whole, "modules");
    const std::vector<at::Tensor> tensors = value_of(whole, "buffer_tensors").toTensorVector();
    const std::vector<std::string> names = words_in(whole, "buffers");
    for (std::size_t i = 0; i < names.size(); ++i)
      whole_.buffers.push_back({names[i], tensors.at(i)});
    whole_.training = {value_of(training, "steps").toInt(),
                       value_of(training, "optimizer_steps").toInt(),
                       value_of(training, "learning_rate").toDouble(),
                       value_of(training, "loss_scale").toDouble()};
  }

  void take_pieces(PartFile& file) {
    InputArchive& part = file.part;
    const std::vector<std::int64_t> numbers = value_of(part, "numbers").toIntVector();
    const std::vector<std::int64_t> firsts = value_of(part, "firsts").toIntVector();
    const std::vector<std::string> names = words_in(part, "names");
    const c10::List<c10::IValue> shapes = value_of(part, "shapes").toList();
    const c10::List<c10::IValue> strides = value_of(part, "strides").toList();
    const std::vector<at::Tensor> weights = value_of(part, "weights").toTensorVector();
    std::vector<std::vector<at::Tensor>> states;
    for (std::size_t i = 0; i < whole_.states.size(); ++i)
      states.push_back(value_of(part, state_key(i)).toTensorVector());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto number = static_cast<std::size_t>(numbers[i]);
      WholeCheckpoint::Named& whole = whole_.weights.at(number);
      if (!whole.tensor.defined()) {
        whole.name = names.at(i);
        whole.tensor = at::empty_strided(shapes.get(i).toIntVector(), strides.get(i).toIntVector());
        for (auto& state : whole_.states) state[number] = at::empty_like(whole.tensor);
      }
      const at::Tensor& piece = weights.at(i);
      const std::int64_t first = std::exchange(elements_[number], firsts.at(i) + piece.numel());
      if (firsts[i] != first || elements_[number] > whole.tensor.numel() ||
          names.at(i) != whole.name)
        refuse_part(
            file.path,
            fmt::format("its piece of {} does not follow that of the rank before", names[i]));
      put(piece, first, whole.tensor);
      for (std::size_t state = 0; state < states.size(); ++state)
        put(states[state].at(i), first, whole_.states[state][number]);
    }
  }

  /// Copies a piece to the elements of `whole` from `first` on, in memory order.
  static void put(const at::Tensor& piece, std::int64_t first, const at::Tensor& whole) {
    whole.as_strided({whole.numel()}, {1}).narrow(0, first, piece.numel()).copy_(piece);
  }

  fs::path folder_;
  std::int64_t step_;
  std::string measurement_;
  WholeCheckpoint whole_;
  std::vector<std::int64_t> elements_;  ///< by parameter: those that have come
};

/// Returns what follows the name of a module in the name of something that it holds itself.
std::optional<std::string> key_within(const std::string& module, const std::string& name) {
  const std::string before = module.empty() ? "" : module + ".";
  if (!name.starts_with(before)) return std::nullopt;
  std::string key = name.substr(before.size());
  if (key.find('.') != key.npos) return std::nullopt;
  return key;
}

/// Writes a module as Module::save() does.
void write_module(OutputArchive& archive, const WholeCheckpoint& whole, const std::string& module) {
  for (const auto& [name, tensor] : whole.weights)
    if (const auto key = key_within(module, name))
      archive.write(*key, tensor.detach().set_requires_grad(true));
  for (const auto& [name, tensor] : whole.buffers)
    if (const auto key = key_within(module, name)) archive.write(*key, tensor, /*is_buffer=*/true);
  for (const std::string& name : whole.modules)
    if (const auto key = key_within(module, name)) {
      OutputArchive child(archive.compilation_unit());
      write_module(child, whole, name);
      archive.write(*key, child);
    }
}

}  // namespace

void WholeCheckpoint::write(OutputArchive& archive) const {
  write_module(archive, *this, "");
  write_states(archive, states.size(), weights.size(),
               [&](std::size_t i, std::size_t parameter) { return states[i][parameter]; });
  write_scalars(archive, training);
}

WholeCheckpoint read_sharded_checkpoint(const fs::path& folder, std::optional<std::int64_t> step) {
  const at::NoGradGuard no_grad;
  const std::set<std::int64_t> steps = steps_in(folder);
  if (steps.empty())
    throw ConfigError(
        fmt::format("{}: no parts of a checkpoint, which a run with --shard writes as {}; give its "
                    "--checkpoint_dir",
                    folder.string(), part_path("", 0, 0).string()));
  if (step && !steps.contains(*step))
    throw ConfigError(fmt::format("--step {}: {} has no such checkpoint, but of step {}", *step,
                                  folder.string(), fmt::join(steps, ", ")));
  if (step) return PartJoiner(folder, *step).join();
  std::vector<std::string> passed_over;
  for (const std::int64_t newest : std::vector(steps.rbegin(), steps.rend())) try {
      WholeCheckpoint whole = PartJoiner(folder, newest).join();
      whole.passed_over = std::move(passed_over);
      return whole;
    } catch (const ResultError& error) {
      passed_over.emplace_back(error.what());
    }
  throw ResultError(join(passed_over, "\n"));
}

std::int64_t write_whole_checkpoint(const WholeCheckpoint& whole, const fs::path& file) {
  OutputArchive archive;
  whole.write(archive);
  return write_archive(archive, PendingFile(file, "--output"));
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

namespace {

std::string random_text() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace

std::function<void(long)> checkpoint_writer(Trainer::Impl& trainer, RankGroup& group,
                                            CheckpointSamples& samples, MeasuredLoop& loop) {
  if (trainer.config.checkpoint_every == 0) return [](long) {};
  const std::int64_t every = trainer.config.checkpoint_every;
  if (trainer.checkpoints) samples.every = every;
  CheckpointSet set{trainer.config.shard};
  if (set.shard != Shard::none) set.measurement = group.broadcast(random_text());
  const auto write = [&trainer, &samples, &loop, set](long number) {
    if (!trainer.checkpoints) return;
    trainer.device.synchronize();  // excludes the step's own work from the time of the checkpoint
    const double begin = steady_seconds();
    const UpdateRule& rule = *trainer.optimizer;
    const TrainingState state{number + 1, rule.steps(), rule.learning_rate(), loop.loss_scale()};
    OutputArchive archive;
    if (set.shard == Shard::none)
      write_training_state(archive, *trainer.model, *trainer.parameters, state);
    else
      write_training_part(archive, *trainer.model, *trainer.parameters, set, state);
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
    if (trainer.checkpoints) trainer.checkpoints->all_have_written();
  };
}

}  // namespace scalemark

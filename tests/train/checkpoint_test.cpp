// Checkpoints: what they hold, bit for bit, and that none is ever seen half written.
#include "train/checkpoint.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/script.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <numeric>

#include "config/names.hpp"
#include "error.hpp"
#include "platform/tree.hpp"
#include "support/in_child.hpp"
#include "train/optimizer.hpp"

namespace scalemark::checkpoint_test {
namespace {

namespace fs = std::filesystem;
using test::Tree;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> checkpoints_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename() != ".scalemark-checkpoints.lock")  // of a folder in use
      names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

/// A model after a step, with the optimizer's states.
struct Trained {
  std::shared_ptr<Model> model;
  std::shared_ptr<FlatParameters> parameters;
};

Trained train(const std::string& name, at::ScalarType dtype = at::kFloat) {
  torch::manual_seed(3);
  ModelOptions options{name, 32, 10, true};
  options.sequence_length = 8;
  RunConfig config;
  config.model = name;
  const auto rule = make_update_rule(config);
  Trained made{make_model(options), nullptr};
  made.parameters =
      std::make_shared<FlatParameters>(*made.model, gradient_ready_order(*made.model, at::kCPU),
                                       FlatLayout{1 << 16, 1 << 14, rule->states(), dtype});
  made.model->set_gate(made.parameters);
  const Batch batch = made.model->synthetic_batch(4, 1, at::kCPU, dtype);
  made.model->loss_sum(batch).backward(at::full({}, 1 / batch.loss_count));
  rule->begin_step();
  for (Bucket& bucket : made.parameters->buckets()) rule->update(bucket);
  return made;
}

std::int64_t write(CheckpointFolder& folder, Trained& trained, std::int64_t step) {
  torch::serialize::OutputArchive archive;
  write_training_state(archive, *trained.model, *trained.parameters, {step, step, 0.5, 1024});
  return folder.write(archive, step);
}

std::shared_ptr<Model> untrained(const std::string& name) {
  torch::manual_seed(99);
  ModelOptions options{name, 32, 10, true};
  options.sequence_length = 8;
  return make_model(options);
}

class Contents : public ::testing::TestWithParam<std::string> {};

TEST_P(Contents, AreReadByTorchLoadBitForBit) {
  Tree tree;
  Trained trained = train(GetParam());
  CheckpointFolder folder(tree.root() / "c", 1);
  const std::int64_t bytes = write(folder, trained, 7);
  const fs::path path = tree.root() / "c" / "checkpoint-00000007.pt";
  EXPECT_EQ(static_cast<std::int64_t>(fs::file_size(path)), bytes);
  // Every bucket once, though many tensors are views of it.
  const std::int64_t tensors = checkpoint_tensor_bytes(*trained.model, *trained.parameters);
  EXPECT_GT(bytes, tensors);
  EXPECT_LT(bytes, tensors + (1 << 20));

  auto loaded = untrained(GetParam());
  torch::load(loaded, path.string());
  const auto expected = trained.model->named_parameters(), found = loaded->named_parameters();
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& parameter : expected)
    EXPECT_TRUE(at::equal(*found.find(parameter.key()), parameter.value())) << parameter.key();
  const auto buffers = trained.model->named_buffers(), found_buffers = loaded->named_buffers();
  for (const auto& buffer : buffers)
    EXPECT_TRUE(at::equal(*found_buffers.find(buffer.key()), buffer.value())) << buffer.key();
}

TEST_P(Contents, HoldTheOptimizersStatesAndTheScalars) {
  Tree tree;
  Trained trained = train(GetParam(), at::kBFloat16);
  CheckpointFolder folder(tree.root() / "c", 1);
  write(folder, trained, 12);
  torch::serialize::InputArchive archive, optimizer, training;
  archive.load_from((folder.path() / "checkpoint-00000012.pt").string());
  archive.read("optimizer", optimizer);
  archive.read("training_state", training);
  const auto& buckets = trained.parameters->buckets();
  ASSERT_FALSE(buckets.front().state.empty());
  for (std::size_t i = 0; i < buckets.front().state.size(); ++i) {
    c10::IValue value;
    optimizer.read("state" + std::to_string(i), value);
    const std::vector<at::Tensor> states = value.toTensorVector();
    ASSERT_EQ(states.size(), trained.model->parameters().size());
    double norm = 0;
    for (const Slice& slice : trained.parameters->slices()) {
      const at::Tensor leaf =
          trained.model->parameters()[static_cast<std::size_t>(slice.parameter)];
      const at::Tensor expected =
          buckets[static_cast<std::size_t>(slice.bucket)].state[i].as_strided(
              leaf.sizes(), leaf.strides(), slice.offset);
      EXPECT_TRUE(at::equal(states[static_cast<std::size_t>(slice.parameter)], expected));
      norm += expected.norm().item<double>();
    }
    EXPECT_GT(norm, 0);
  }
  c10::IValue value;
  training.read("steps", value);
  EXPECT_EQ(value.toInt(), 12);
  training.read("optimizer_steps", value);
  EXPECT_EQ(value.toInt(), 12);
  training.read("learning_rate", value);
  EXPECT_EQ(value.toDouble(), 0.5);
  training.read("loss_scale", value);
  EXPECT_EQ(value.toDouble(), 1024);
}

INSTANTIATE_TEST_SUITE_P(Models, Contents,
                         ::testing::Values("smallnet", "resnet18", "transformer_tiny", "bert_tiny"),
                         [](const auto& info) { return info.param; });

TEST(CheckpointFolder, KeepsTwoAndThenTheLast) {
  Tree tree;
  Trained trained = train("trivial");
  {
    CheckpointFolder folder(tree.root() / "a" / "b", 1);
    EXPECT_THAT(checkpoints_in(folder.path()), IsEmpty());  // a probe leaves nothing
    for (const std::int64_t step : {10, 20, 30, 40}) write(folder, trained, step);
    EXPECT_THAT(checkpoints_in(folder.path()),
                ElementsAre("checkpoint-00000030.pt", "checkpoint-00000040.pt"));
    for (const std::int64_t step : {10, 20, 30, 40}) write(folder, trained, step);
    EXPECT_THAT(checkpoints_in(folder.path()),
                ElementsAre("checkpoint-00000030.pt", "checkpoint-00000040.pt"));
  }
  EXPECT_THAT(checkpoints_in(tree.root() / "a" / "b"), ElementsAre("checkpoint-00000040.pt"));
}

TEST(CheckpointFolder, OneOfItsOwnGoesWithAllItHolds) {
  Trained trained = train("trivial");
  fs::path path;
  {
    CheckpointFolder folder(std::nullopt, 1);
    path = folder.path();
    write(folder, trained, 1);
    EXPECT_TRUE(fs::exists(path / "checkpoint-00000001.pt"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(CheckpointFolder, IsOneRunsAtATime) {
  Tree tree;
  {
    CheckpointFolder first(tree.root().string(), 1);
    try {
      CheckpointFolder second(tree.root().string(), 1);
      ADD_FAILURE() << "two runs share a folder";
    } catch (const ResultError& error) {
      EXPECT_THAT(error.what(), HasSubstr(tree.root().string()));
      EXPECT_THAT(error.what(), HasSubstr("--checkpoint_dir"));
    }
  }
  CheckpointFolder third(tree.root().string(), 1);
}

TEST(CheckpointFolder, WritersOfOneRunShareItAndTidyTheirOwn) {
  Tree tree;
  for (const char* left : {".checkpoint-00000003.pt.tmp", ".checkpoint-00000003-rank1.pt.tmp",
                           ".checkpoint-00000003-rank11.pt.tmp"})
    tree.file(left, "x");
  Trained trained = train("smallnet");
  {
    CheckpointFolder first(tree.root().string(), 1, {0, false, 2});
    CheckpointFolder second(tree.root().string(), 1, {1, false, 2});
    EXPECT_TRUE(fs::exists(tree.root() / ".checkpoint-00000003.pt.tmp"));
    EXPECT_FALSE(fs::exists(tree.root() / ".checkpoint-00000003-rank1.pt.tmp"));
    EXPECT_TRUE(fs::exists(tree.root() / ".checkpoint-00000003-rank11.pt.tmp"));
    write(first, trained, 7);
    write(second, trained, 7);
    // Of another run: rank 0 finds the folder taken, rank 1 its names.
    for (const CheckpointWriter& writer :
         {CheckpointWriter{}, CheckpointWriter{0, false, 2}, CheckpointWriter{1, false, 2}})
      EXPECT_THROW(CheckpointFolder(tree.root().string(), 1, writer), ResultError);
  }
  EXPECT_TRUE(fs::exists(tree.root() / "checkpoint-00000007-rank0.pt"));
  EXPECT_TRUE(fs::exists(tree.root() / "checkpoint-00000007-rank1.pt"));
  // Room is needed for all files of the node.
  const auto bytes = static_cast<std::int64_t>(fs::space(tree.root()).available / 4);
  EXPECT_NO_THROW(CheckpointFolder(tree.root().string(), bytes, {0, false, 1}));
  EXPECT_THROW(CheckpointFolder(tree.root().string(), bytes, {0, false, 2}), ResultError);
}

TEST(CheckpointFolder, RefusesAFileAndAFullDisk) {
  Tree tree;
  tree.file("file", "x");
  for (const auto& [path, bytes] : {std::pair{tree.root() / "file", std::int64_t{1}},
                                    std::pair{tree.root() / "c", std::int64_t{1} << 60}}) {
    try {
      CheckpointFolder folder(path.string(), bytes);
      ADD_FAILURE() << path << " was not refused";
    } catch (const ResultError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path.string()));
      EXPECT_THAT(error.what(), HasSubstr("--checkpoint_dir"));
    }
  }
  EXPECT_THAT(checkpoints_in(tree.root() / "c"), IsEmpty());
}

TEST(CheckpointFolder, APartThatOthersHaveNotWrittenIsNotKept) {
  Tree tree;
  Trained trained = train("trivial");
  for (const bool all : {true, false}) {
    {
      CheckpointFolder folder(tree.root().string(), 1, {0, false, 2, 2});
      for (const std::int64_t step : {10, 20, 30}) {
        write(folder, trained, step);
        if (all || step < 30) folder.all_have_written();
      }
    }
    EXPECT_THAT(checkpoints_in(tree.root()),
                ElementsAre(all ? "checkpoint-00000030-rank0.pt" : "checkpoint-00000020-rank0.pt"));
    fs::remove(tree.root() / "checkpoint-00000030-rank0.pt");
  }
}

TEST(CheckpointFolder, PartsOfMoreRanksDoNotOutliveRankZeros) {
  Tree tree;
  for (const int rank : {2, 3})
    tree.file("checkpoint-00000010-rank" + std::to_string(rank) + ".pt", "x");
  tree.file("checkpoint-00000005-rank2.pt", "x");  // of another step, and perhaps of a set
  Trained trained = train("trivial");
  CheckpointFolder second(tree.root().string(), 1, {1, false, 2, 2});
  write(second, trained, 10);
  EXPECT_TRUE(fs::exists(tree.root() / "checkpoint-00000010-rank2.pt"));
  CheckpointFolder first(tree.root().string(), 1, {0, false, 2, 2});
  write(first, trained, 10);
  EXPECT_FALSE(fs::exists(tree.root() / "checkpoint-00000010-rank2.pt"));
  EXPECT_FALSE(fs::exists(tree.root() / "checkpoint-00000010-rank3.pt"));
  EXPECT_TRUE(fs::exists(tree.root() / "checkpoint-00000005-rank2.pt"));
  EXPECT_TRUE(fs::exists(tree.root() / "checkpoint-00000010-rank1.pt"));
}

/// What one rank of several holds of a trained model. Buckets are others than those of the whole.
Trained part_of(const Trained& whole, const std::string& name, const Division& division,
                at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  Trained part{untrained(name), nullptr};
  const std::vector<at::Tensor> leaves = part.model->parameters();
  const std::size_t count = leaves.size();
  for (std::size_t i = 0; i < count; ++i) at::Tensor(leaves[i]).copy_(whole.model->parameters()[i]);
  for (std::size_t i = 0; i < part.model->buffers().size(); ++i)
    part.model->buffers()[i].copy_(whole.model->buffers()[i]);
  FlatLayout layout{1 << 15, 1 << 13, 0, dtype, {}, {}, division};
  layout.states = static_cast<int>(whole.parameters->buckets().front().state.size());
  for (std::size_t i = 0; i < count; ++i) {
    layout.computed_with.push_back(leaves[i].dim() > 1);
    layout.blocks.push_back(leaves[i].dim() > 1 ? static_cast<int>(i % 3) - 1 : -1);
  }
  std::vector<int> order(count);
  std::iota(order.rbegin(), order.rend(), 0);
  part.parameters = std::make_shared<FlatParameters>(*part.model, order, layout);
  std::map<int, Slice> in_whole, in_part;
  for (const Slice& slice : whole.parameters->slices()) in_whole[slice.parameter] = slice;
  for (const Slice& slice : part.parameters->slices()) in_part[slice.parameter] = slice;
  for (Bucket& bucket : part.parameters->buckets())
    for (const Slice& piece : bucket.slices) {
      const Slice& from = in_whole.at(piece.parameter);
      const std::int64_t first =
          bucket.count * division.rank + piece.offset - in_part.at(piece.parameter).offset;
      const Bucket& of = whole.parameters->buckets()[static_cast<std::size_t>(from.bucket)];
      for (std::size_t i = 0; i < bucket.state.size(); ++i)
        bucket.state[i]
            .narrow(0, piece.offset, piece.count)
            .copy_(of.state[i].narrow(0, from.offset + first, piece.count));
    }
  return part;
}

/// A part, and its archive, which shows the part's memory.
struct ArchivedPart {
  Trained part;
  torch::serialize::OutputArchive archive{};
};

ArchivedPart archive_part(const Trained& whole, const std::string& name, const Division& division,
                          std::int64_t step, const std::string& measurement,
                          at::ScalarType dtype = at::kFloat) {
  ArchivedPart made{part_of(whole, name, division, dtype)};
  write_training_part(made.archive, *made.part.model, *made.part.parameters,
                      {division.shard, measurement}, {step, step, 0.5, 1024});
  return made;
}

std::int64_t write_part(const fs::path& folder, ArchivedPart& made, std::int64_t step) {
  const Division& division = made.part.parameters->division();
  CheckpointFolder place(folder.string(), 1, {division.rank, false, 1, division.ranks});
  const std::int64_t bytes = place.write(made.archive, step);
  place.all_have_written();
  return bytes;
}

void expect_same_tensor(const at::Tensor& found, const at::Tensor& right, const std::string& what) {
  EXPECT_TRUE(at::equal(found, right)) << what;
  EXPECT_EQ(found.strides(), right.strides()) << what;
  EXPECT_EQ(found.requires_grad(), right.requires_grad()) << what;
}

/// Compares two archives: every module, tensor and scalar of either.
void expect_same(const torch::jit::Module& found, const torch::jit::Module& right,
                 const std::string& place = "") {
  std::vector<std::string> names, right_names;
  for (std::size_t i = 0; i < found.type()->numAttributes(); ++i)
    names.push_back(found.type()->getAttributeName(i));
  for (std::size_t i = 0; i < right.type()->numAttributes(); ++i)
    right_names.push_back(right.type()->getAttributeName(i));
  ASSERT_EQ(names, right_names) << place;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const c10::IValue mine = found.attr(names[i]), other = right.attr(names[i]);
    const std::string what = place + "." + names[i];
    EXPECT_EQ(found.type()->is_parameter(i), right.type()->is_parameter(i)) << what;
    EXPECT_EQ(found.type()->is_buffer(i), right.type()->is_buffer(i)) << what;
    if (mine.isModule()) {
      expect_same(mine.toModule(), other.toModule(), what);
    } else if (mine.isTensor()) {
      expect_same_tensor(mine.toTensor(), other.toTensor(), what);
    } else if (mine.isTensorList()) {
      const auto tensors = mine.toTensorVector(), others = other.toTensorVector();
      ASSERT_EQ(tensors.size(), others.size()) << what;
      for (std::size_t k = 0; k < tensors.size(); ++k)
        expect_same_tensor(tensors[k], others[k], what);
    } else {
      EXPECT_EQ(mine, other) << what;
    }
  }
}

class Joined : public ::testing::TestWithParam<std::string> {};

TEST_P(Joined, PartsOfAnyNumberOfRanksAreTheWholeCheckpoint) {
  const std::string name = GetParam();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    Tree tree;
    Trained trained = train(name, dtype);
    {
      CheckpointFolder folder(tree.root() / "whole", 1);
      write(folder, trained, 7);
    }
    const auto whole = torch::jit::load((tree.root() / "whole/checkpoint-00000007.pt").string());
    for (const Shard shard : {Shard::optimizer, Shard::gradients, Shard::parameters})
      for (const int ranks : {1, 2, 3, 5}) {
        SCOPED_TRACE(to_string(shard) + " " + std::to_string(ranks));
        const fs::path folder = tree.root() / to_string(shard) / std::to_string(ranks);
        const bool divides = ranks > 1;
        for (int rank = 0; rank < ranks; ++rank) {
          const Division division{divides ? shard : Shard::none, ranks, rank};
          ArchivedPart made = archive_part(trained, name, division, 7, "m", dtype);
          // The block alone, and not the bucket in which it may lie.
          EXPECT_LT(write_part(folder, made, 7),
                    checkpoint_tensor_bytes(*made.part.model, *made.part.parameters) + (1 << 18));
        }
        const WholeCheckpoint joined = read_sharded_checkpoint(folder);
        EXPECT_EQ(joined.ranks, ranks);
        const fs::path file = folder / "joined.pt";
        const std::int64_t bytes = write_whole_checkpoint(joined, file);
        EXPECT_EQ(bytes, static_cast<std::int64_t>(fs::file_size(file)));
        expect_same(torch::jit::load(file.string()), whole);
        auto loaded = untrained(name);
        torch::load(loaded, file.string());
        EXPECT_TRUE(at::equal(loaded->parameters().back(), trained.model->parameters().back()));
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Joined, ::testing::Values("smallnet", "resnet18", "llama_tiny"),
                         [](const auto& info) { return info.param; });

/// A set of three files for each of two steps.
class PartsThatDoNotFit : public ::testing::Test {
 protected:
  PartsThatDoNotFit() {
    for (const std::int64_t step : {5, 7})
      for (int rank = 0; rank < 3; ++rank) write_one(rank, step);
  }
  void write_one(int rank, std::int64_t step, int ranks = 3, const std::string& measurement = "m") {
    ArchivedPart made =
        archive_part(trained_, "smallnet", {Shard::parameters, ranks, rank}, step, measurement);
    write_part(folder_, made, step);
  }
  fs::path file(std::int64_t step, int rank) const {
    return folder_ /
           ("checkpoint-0000000" + std::to_string(step) + "-rank" + std::to_string(rank) + ".pt");
  }
  /// Step 7 is refused with the file's name and these words, and without a step 5 is taken.
  void expect_refused(const fs::path& named, const std::string& words) {
    try {
      read_sharded_checkpoint(folder_, 7);
      ADD_FAILURE() << "was read";
    } catch (const ResultError& error) {
      EXPECT_THAT(error.what(), HasSubstr(named.string()));
      EXPECT_THAT(error.what(), HasSubstr(words));
      EXPECT_THAT(error.what(), HasSubstr("--step"));
    }
    const WholeCheckpoint older = read_sharded_checkpoint(folder_);
    EXPECT_EQ(older.training.steps, 5);
    ASSERT_EQ(older.passed_over.size(), 1u);
    EXPECT_THAT(older.passed_over.front(), HasSubstr(words));
  }

  Tree tree_;
  fs::path folder_ = tree_.root();
  Trained trained_ = train("smallnet");
};

TEST_F(PartsThatDoNotFit, TheNewestIsRead) {
  EXPECT_EQ(read_sharded_checkpoint(folder_).training.steps, 7);
  EXPECT_EQ(read_sharded_checkpoint(folder_, 5).training.steps, 5);
}

TEST_F(PartsThatDoNotFit, AFileIsMissing) {
  fs::remove(file(7, 2));
  expect_refused(file(7, 2), "is of 3 ranks");
  fs::remove(file(7, 0));
  expect_refused(file(7, 0), "it is not there");
}

TEST_F(PartsThatDoNotFit, AFileIsCutShortOrEmpty) {
  const auto size = fs::file_size(file(7, 1));
  for (const auto left : {size - 1, size / 2, std::uintmax_t{0}}) {
    fs::resize_file(file(7, 1), left);
    expect_refused(file(7, 1), "it cannot be read");
  }
}

TEST_F(PartsThatDoNotFit, AFileIsOfAnotherStepOrRank) {
  fs::copy_file(file(5, 1), file(7, 1), fs::copy_options::overwrite_existing);
  expect_refused(file(7, 1), "it holds rank 1 of step 5");
  fs::copy_file(file(7, 2), file(7, 1), fs::copy_options::overwrite_existing);
  expect_refused(file(7, 1), "it holds rank 2 of step 7");
}

TEST_F(PartsThatDoNotFit, AFileIsOfAnotherNumberOfRanks) {
  write_one(1, 7, 4);
  expect_refused(file(7, 1), "it is of 4 ranks, and rank 0's is of 3");
}

TEST_F(PartsThatDoNotFit, AFileIsOfAnotherMeasurement) {
  write_one(2, 7, 3, "other");
  expect_refused(file(7, 2), "another measurement");
}

TEST_F(PartsThatDoNotFit, AFileIsAWholeCheckpoint) {
  {
    CheckpointFolder folder(folder_.string(), 1);
    write(folder, trained_, 7);
  }
  fs::rename(folder_ / "checkpoint-00000007.pt", file(7, 1));
  expect_refused(file(7, 1), "whole checkpoint");
}

TEST_F(PartsThatDoNotFit, NoStepIsComplete) {
  fs::remove(file(5, 1));
  fs::remove(file(7, 2));
  try {
    read_sharded_checkpoint(folder_);
    ADD_FAILURE() << "was read";
  } catch (const ResultError& error) {
    EXPECT_THAT(error.what(), HasSubstr(file(5, 1).string()));
    EXPECT_THAT(error.what(), HasSubstr(file(7, 2).string()));
  }
  EXPECT_THROW(read_sharded_checkpoint(folder_, 6), ConfigError);
  EXPECT_THROW(read_sharded_checkpoint(folder_ / "none"), ConfigError);
  fs::create_directory(folder_ / "empty");
  EXPECT_THROW(read_sharded_checkpoint(folder_ / "empty"), ConfigError);
}

/// Limits what this process may write to a file; beyond it the kernel kills the writer, or, where
/// the signal is ignored, write(2) fails.
void limit_files(rlim_t bytes, bool kill) {
  const rlimit limit{bytes, bytes}, no_core{0, 0};
  if (!kill) std::signal(SIGXFSZ, SIG_IGN);
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || setrlimit(RLIMIT_CORE, &no_core) != 0) _exit(1);
}

TEST(CheckpointFolder, KilledOrRefusedAtAnyByteNothingLiesUnderTheName) {
  Tree tree;
  at::set_num_threads(1);
  Trained trained = train("smallnet");
  std::int64_t bytes = 0;
  {
    CheckpointFolder folder(tree.root().string(), 1);
    bytes = write(folder, trained, 1);
  }
  const fs::path older = tree.root() / "checkpoint-00000001.pt";
  for (std::int64_t byte = 0; byte < bytes; byte += bytes / 10)
    for (const bool kill : {true, false}) {
      // LibTorch's threads do not come along: the child only writes.
      const int status = in_child([&] {
        try {
          CheckpointFolder folder(tree.root().string(), 1);
          limit_files(static_cast<rlim_t>(byte), kill);
          write(folder, trained, 1);
        } catch (const ResultError&) {
          return 6;
        }
        return 0;
      });
      ASSERT_EQ(status, kill ? 128 + SIGXFSZ : 6) << "at byte " << byte;
      ASSERT_EQ(static_cast<std::int64_t>(fs::file_size(older)), bytes);
      auto loaded = untrained("smallnet");
      torch::load(loaded, older.string());
      if (kill) continue;  // what a killed writer left is hidden
      EXPECT_THAT(checkpoints_in(tree.root()), ElementsAre("checkpoint-00000001.pt"));
    }
  { CheckpointFolder tidies(tree.root().string(), 1); }
  EXPECT_THAT(checkpoints_in(tree.root()), ElementsAre("checkpoint-00000001.pt"));
}

TEST_F(PartsThatDoNotFit, KilledAtAnyByteTheOlderSetIsThere) {
  at::set_num_threads(1);
  const auto bytes = static_cast<std::int64_t>(fs::file_size(file(7, 1)));
  fs::remove(file(7, 1));
  ArchivedPart made = archive_part(trained_, "smallnet", {Shard::parameters, 3, 1}, 7, "m");
  for (std::int64_t byte = 0; byte < bytes; byte += bytes / 5) {
    const int status = in_child([&] {
      CheckpointFolder place(folder_.string(), 1, {1, false, 1, 3});
      limit_files(static_cast<rlim_t>(byte), /*kill=*/true);
      place.write(made.archive, 7);
      return 0;
    });
    ASSERT_EQ(status, 128 + SIGXFSZ);
    expect_refused(file(7, 1), "it is not there");
  }
  write_one(1, 7);
  EXPECT_EQ(read_sharded_checkpoint(folder_).training.steps, 7);
}

}  // namespace
}  // namespace scalemark::checkpoint_test

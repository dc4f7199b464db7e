// Checkpoints: what they hold, bit for bit, and that none is ever seen half written.
#include "train/checkpoint.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

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

}  // namespace
}  // namespace scalemark::checkpoint_test

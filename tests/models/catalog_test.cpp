// Holds every line of the catalog against the network itself: parameters, FLOPs of the operators
// that really run, and one training step.
#include "models/catalog.hpp"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <optional>

#include "models/model.hpp"
#include "models/operator_flops.hpp"
#include "models/operator_set.hpp"
#include "tests/models/recorded_operators.hpp"

namespace scalemark {

void PrintTo(const ModelFacts& facts, std::ostream* stream) { *stream << facts.name; }

}  // namespace scalemark

namespace scalemark::catalog_test {
namespace {

/// At the catalog's image size and sequence length, or at smaller ones.
std::shared_ptr<Model> make(const ModelFacts& facts, std::int64_t largest = 1 << 20,
                            double dropout = 0) {
  torch::manual_seed(1);
  ModelOptions options;
  options.name = facts.name;
  options.image_size = std::min(facts.image_size, largest);
  options.sequence_length = std::min(facts.sequence_length, largest);
  options.dropout = dropout;
  return make_model(options);
}

void expect_parameters(const ModelFacts& facts, const Model& model) {
  std::int64_t parameters = 0, width = 0;
  for (const auto& leaf : model.named_parameters()) {
    EXPECT_EQ(leaf.value().scalar_type(), at::kFloat);
    parameters += leaf.value().numel();
    if (leaf.key() == "embedding.weight" || leaf.key() == "word_embedding.weight")
      width = leaf.value().size(1);
  }
  EXPECT_EQ(facts.parameters, parameters);
  EXPECT_EQ(facts.width, width);
}

/// Counts the bytes of tensors that exist, during its lifetime.
class CountedMemory : public c10::Allocator {
 public:
  CountedMemory() { c10::SetCPUAllocator(this); }
  ~CountedMemory() override { c10::SetCPUAllocator(inner_); }
  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr data = inner_->allocate(bytes);
    void* const place = data.get();
    const std::scoped_lock lock(mutex_);
    held_ += static_cast<std::int64_t>(bytes);
    blocks_[place] = {std::move(data), static_cast<std::int64_t>(bytes)};
    return {place, place, &CountedMemory::free_block, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &CountedMemory::free_block; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }
  static std::int64_t held() { return held_; }

 private:
  static void free_block(void* place) {
    const std::scoped_lock lock(mutex_);
    const auto block = blocks_.find(place);
    if (block == blocks_.end()) return;
    held_ -= block->second.second;
    blocks_.erase(block);
  }

  c10::Allocator* inner_ = c10::GetCPUAllocator();
  inline static std::mutex mutex_;
  inline static std::map<void*, std::pair<c10::DataPtr, std::int64_t>> blocks_;
  inline static std::int64_t held_ = 0;
};

/// Sees a network's blocks as training does, which takes the gradients of matrices from layers.
class BlockProbe : public ParameterGate {
 public:
  explicit BlockProbe(bool recomputes) : recomputes_(recomputes) {}
  std::int64_t blocks = 0, largest = 0;  ///< elements of matrices of the largest block
  bool recomputes() const override { return recomputes_; }
  void begin_block() override {
    ++blocks;
    inside_ = 0;
  }
  void end_block(const at::Tensor&) override {
    largest = std::max(largest, *inside_);
    inside_.reset();
  }
  at::Tensor compute_weight(const at::Tensor& leaf) override {
    if (inside_) *inside_ += leaf.numel();
    return leaf;
  }
  bool takes_gradient(const at::Tensor&) override { return true; }

 private:
  bool recomputes_;
  std::optional<std::int64_t> inside_;
};

struct Kept {
  std::int64_t blocks, block_parameters;
  double bytes;  ///< that the graph of one sample holds
};

Kept kept_by(Model& model, bool recomputes) {
  const auto probe = std::make_shared<BlockProbe>(recomputes);
  model.set_gate(probe);
  const std::int64_t samples = model.possible_batch(1);
  const Batch batch = model.synthetic_batch(samples, 1, at::kCPU, at::kFloat);
  const CountedMemory memory;
  const std::int64_t before = CountedMemory::held();
  const at::Tensor loss = model.loss_sum(batch);
  return {probe->blocks, probe->largest,
          static_cast<double>(CountedMemory::held() - before) / static_cast<double>(samples)};
}

class Catalog : public ::testing::TestWithParam<ModelFacts> {};
class LargeCatalog : public ::testing::TestWithParam<ModelFacts> {};

// One test for all three, since most of its time goes into the weights of the largest models.
TEST_P(Catalog, ParametersWidthAndFlopsAreThoseOfTheNetwork) {
  const auto model = make(GetParam());
  expect_parameters(GetParam(), *model);
  const auto counted = [](Model& counted_model) {
    return count_forward_flops(counted_model,
                               counted_model.synthetic_batch(1, 1, at::kCPU, at::kFloat));
  };
  EXPECT_EQ(std::llround(GetParam().forward_flops_per_sample), counted(*model));
  if (GetParam().sequence_length == 0) return;
  const auto shorter = make(GetParam(), 8);
  EXPECT_EQ(std::llround(forward_flops_at(GetParam(), 8)), counted(*shorter));
}

/// Every matrix is multiplied with every token, but for tables that are looked up alone; attention
/// multiplies twice with every source.
TEST_P(LargeCatalog, ParametersWidthAndFlopsFollowFromShapes) {
  const ShapesOnly shapes;
  const auto model = make(GetParam());
  expect_parameters(GetParam(), *model);
  const std::int64_t length = GetParam().sequence_length;
  std::int64_t matrices = 0, layers = 0, block = 0;
  for (const auto& leaf : model->named_parameters()) {
    const bool looked_up = leaf.key() == "position_embedding.weight" ||
                           (leaf.key() == "word_embedding.weight" && !GetParam().tied);
    if (leaf.value().dim() == 2 && !looked_up) matrices += leaf.value().numel();
    layers += leaf.key().ends_with("attention.input.weight");
    if (leaf.value().dim() == 2 && leaf.key().starts_with("layer1.")) block += leaf.value().numel();
  }
  EXPECT_EQ(GetParam().blocks, layers);
  EXPECT_EQ(GetParam().block_parameters, block);
  const std::int64_t attention = 4 * layers * length * length * GetParam().width;
  EXPECT_EQ(std::llround(GetParam().attention_flops), attention);
  EXPECT_EQ(std::llround(GetParam().forward_flops_per_sample), 2 * matrices * length + attention);
}

/// All gradients as one; the leaves lose them.
at::Tensor take_gradients(Model& model) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& leaf : model.parameters()) {
    flat.push_back(leaf.grad().flatten());
    leaf.mutable_grad().reset();
  }
  return at::cat(flat);
}

/// Loss and gradients of one pass with these operators.
std::pair<double, at::Tensor> pass(Model& model, const Batch& batch, const OperatorSet& operators) {
  model.set_operators(operators);
  const at::Tensor loss = model.loss_sum(batch);
  loss.backward();
  return {loss.item<double>(), take_gradients(model)};
}

/// LibTorch's operators alone run none of ours, and compute the same. Compared with the running
/// statistics: those of a batch of two make a sign of every rounding.
void expect_plain_passes(Model& model, const Batch& batch) {
  model.set_operators(torch_operators());
  {
    const RecordedOperators record;
    model.loss_sum(batch).backward();
    EXPECT_TRUE(record.own().empty()) << *record.own().begin();
  }
  constexpr std::int64_t kMostCompared = 30'000'000;  // of which copies take a GB
  std::int64_t parameters = 0;
  for (const at::Tensor& leaf : model.parameters()) parameters += leaf.numel();
  if (parameters > kMostCompared) return;
  model.zero_grad();
  model.eval();
  const auto [loss, gradients] = pass(model, batch, standard_operators());
  const auto [plain_loss, plain_gradients] = pass(model, batch, torch_operators());
  EXPECT_NEAR(loss, plain_loss, 1e-3 * plain_loss);
  EXPECT_LT((gradients - plain_gradients).norm().item<double>(),
            2e-2 * plain_gradients.norm().item<double>());
}

TEST_P(Catalog, KeepsTheActivationsOfItsBlocks) {
  const ModelFacts& facts = GetParam();
  if (facts.blocks == 0) GTEST_SKIP() << "no row of blocks";
  const auto model = make(facts, 1 << 20, facts.dropout);
  const Kept all = kept_by(*model, false), inputs = kept_by(*model, true);
  EXPECT_EQ(all.blocks, facts.blocks);
  EXPECT_EQ(all.block_parameters, facts.block_parameters);
  EXPECT_GE(facts.activation_bytes, 0.99 * all.bytes);  // and what the backward pass begins with
  EXPECT_LE(facts.activation_bytes, 2 * all.bytes);
  const double freed = (all.bytes - inputs.bytes) / static_cast<double>(facts.blocks);
  EXPECT_NEAR(freed, facts.recomputed_bytes, 0.05 * freed);
}

TEST_P(Catalog, TakesATrainingStep) {
  constexpr std::int64_t kMost = 200'000'000;
  if (GetParam().parameters > kMost) GTEST_SKIP() << "a smaller one of the same layers does";
  const auto model = make(GetParam(), std::max<std::int64_t>(4, GetParam().smallest));
  const Batch batch = model->synthetic_batch(2, 1, at::kCPU, at::kFloat);
  EXPECT_EQ(batch.units, GetParam().unit == "tokens/sec" ? 2 * 4 : 2);
  EXPECT_EQ(batch.loss_count, GetParam().masked_flops > 0 ? 2 * masked_positions(4) : batch.units);
  const at::Tensor loss = model->loss_sum(batch);
  EXPECT_EQ(loss.dim(), 0);
  loss.backward();
  for (const auto& leaf : model->named_parameters()) {
    ASSERT_TRUE(leaf.value().grad().defined()) << leaf.key();
    EXPECT_TRUE(at::isfinite(leaf.value().grad()).all().item<bool>()) << leaf.key();
    EXPECT_GT(leaf.value().grad().norm().item<double>(), 0) << leaf.key();
  }
  expect_plain_passes(*model, batch);
}

TEST(Dropout, IsLibTorchsWithItsOperators) {
  for (const char* name : {"transformer_tiny", "bert_tiny", "alexnet"}) {
    ModelOptions options{name, find_model(name)->smallest, 10, true};
    options.dropout = 0.1;
    options.operators = &torch_operators();
    const auto model = make_model(options);
    const RecordedOperators record;
    model->loss_sum(model->synthetic_batch(2, 1, at::kCPU, at::kFloat)).backward();
    EXPECT_TRUE(record.all().contains("aten::dropout")) << name;
    EXPECT_TRUE(record.own().empty()) << name << " " << *record.own().begin();
  }
}

/// Networks whose weights and gradients take more memory than a test has are told by their shapes;
/// smaller ones of the same kind are computed.
std::vector<ModelFacts> some_models(bool large) {
  std::vector<ModelFacts> models;
  for (const ModelFacts& facts : kModels)
    if ((facts.parameters > 500'000'000) == large) models.push_back(facts);
  return models;
}
const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(EveryModel, Catalog, ::testing::ValuesIn(some_models(false)), kNameOf);
INSTANTIATE_TEST_SUITE_P(EveryModel, LargeCatalog, ::testing::ValuesIn(some_models(true)), kNameOf);

TEST(MaskedPositions, AreThoseOfPublishedPretraining) {
  EXPECT_EQ(masked_positions(128), 20);
  EXPECT_EQ(masked_positions(512), 80);
  for (std::int64_t length = 4; length <= kBertPositions; ++length) {
    EXPECT_GE(masked_positions(length), 0.15 * static_cast<double>(length));
    EXPECT_LE(masked_positions(length), length - 3);  // special tokens are never masked
  }
}

TEST(MakeModel, RefusesAnUnknownNameAndSaysWhatThereIs) {
  ModelOptions options;
  options.name = "resnet51";
  try {
    make_model(options);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("'resnet51'"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("resnet152, vgg16"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace scalemark::catalog_test

// Holds the embedding tables that the front door knows against the networks: names, sizes, ties and
// how many rows a pass looks up.
namespace scalemark {

void PrintTo(const ModelFacts& facts, std::ostream* stream);  // in catalog_test.cpp

}  // namespace scalemark

namespace scalemark::embedding_tables_test {
namespace {

/// Takes every row and counts them; counts uses that are no lookups.
class CountingGate : public ParameterGate {
 public:
  struct Counts {
    std::int64_t rows = 0, lookups = 0, uses = 0;
  };
  std::map<const c10::TensorImpl*, Counts> counts;

  at::Tensor compute_weight(const at::Tensor& leaf) override {
    ++counts[leaf.unsafeGetTensorImpl()].uses;
    return leaf;
  }
  bool takes_rows(const at::Tensor& leaf) override {
    ++counts[leaf.unsafeGetTensorImpl()].lookups;
    return true;
  }
  void put_rows(const at::Tensor& leaf, const at::Tensor& indices,
                const at::Tensor& rows) override {
    EXPECT_EQ(indices.numel(), rows.size(0));
    EXPECT_EQ(rows.size(1), leaf.size(1));
    counts[leaf.unsafeGetTensorImpl()].rows += indices.numel();
  }
};

class EmbeddingTables : public ::testing::TestWithParam<ModelFacts> {};

TEST_P(EmbeddingTables, AreThoseOfTheNetwork) {
  const std::int64_t samples = 2, length = 8;
  torch::manual_seed(1);
  ModelOptions options{std::string(GetParam().name), GetParam().smallest, 10, true};
  options.sequence_length = length;
  const auto model = make_model(options);
  const auto gate = std::make_shared<CountingGate>();
  model->set_gate(gate);
  model->loss_sum(model->synthetic_batch(samples, 1, at::kCPU, at::kFloat)).backward();
  std::size_t found = 0;
  const auto tables = embedding_tables(GetParam(), samples, length);
  for (const auto& leaf : model->named_parameters()) {
    const auto& counts = gate->counts[leaf.value().unsafeGetTensorImpl()];
    if (counts.lookups == 0) continue;
    ASSERT_LT(found, tables.size()) << leaf.key() << " is a table that the catalog lacks";
    const TableFacts& table = tables[found++];
    EXPECT_EQ(leaf.key(), std::string(table.name) + ".weight");
    EXPECT_EQ(leaf.value().sizes().vec(), (std::vector<std::int64_t>{table.rows, table.width}));
    EXPECT_EQ(table.tied, counts.uses > counts.lookups) << leaf.key();
    EXPECT_EQ(table.lookups, counts.rows) << leaf.key();
  }
  EXPECT_EQ(found, tables.size());
}

std::vector<ModelFacts> small_ones() {
  std::vector<ModelFacts> models;
  for (const ModelFacts& facts : kModels)
    if (facts.parameters < 150'000'000 && facts.name.substr(0, 6) != "resnet")
      models.push_back(facts);
  return models;
}

INSTANTIATE_TEST_SUITE_P(Catalog, EmbeddingTables, ::testing::ValuesIn(small_ones()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(LargeEmbeddingTables, AreAsLargeAsPublished) {
  EXPECT_EQ(embedding_tables(*find_model("transformer_big"), 50, 100)[0].rows, 32'768);
  EXPECT_EQ(embedding_tables(*find_model("transformer_big"), 50, 100)[0].lookups, 10'000);
  const auto bert = embedding_tables(*find_model("bert_large"), 4, 128);
  ASSERT_EQ(bert.size(), 3u);
  EXPECT_EQ(bert[0].rows, 30'522);
  EXPECT_EQ(bert[1].lookups, 128);
}

}  // namespace
}  // namespace scalemark::embedding_tables_test

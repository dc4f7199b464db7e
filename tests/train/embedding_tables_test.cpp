// The tables that are found in networks, what each strategy makes of them, and their buckets.
#include "train/embedding_tables.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "train/flat_parameters.hpp"

namespace scalemark::embedding_tables_test {
namespace {

std::shared_ptr<Model> network(const std::string& name) {
  torch::manual_seed(1);
  ModelOptions options{name, 32, 10, true};
  options.sequence_length = 8;
  return make_model(options);
}

struct Found {
  std::vector<int> order;
  std::vector<EmbeddingTable> tables;
};

Found probed(Model& model) {
  const auto probe = std::make_shared<UseProbe>();
  model.set_gate(probe);
  auto order = gradient_ready_order(model, at::kCPU);
  return {std::move(order), probe->tables(model)};
}

RunConfig strategy(EmbeddingGradients gradients, TiedGradient tied = TiedGradient::dense) {
  RunConfig config;
  config.embedding_gradients = gradients;
  config.tied_gradient = tied;
  return config;
}

TEST(UseProbe, FindsTablesAndWhichAreTied) {
  const auto bert = network("bert_tiny");
  const auto tables = probed(*bert).tables;
  ASSERT_EQ(tables.size(), 3u);
  const auto names = bert->named_parameters();
  for (const EmbeddingTable& table : tables) {
    EXPECT_EQ(names[static_cast<std::size_t>(table.parameter)].key(), table.name + ".weight");
    EXPECT_EQ(table.tied, table.name == "word_embedding");
    EXPECT_EQ(table.width, 128);
  }
  EXPECT_EQ(tables[0].rows, 1024);
  const auto transformer = network("transformer_tiny");
  const auto only = probed(*transformer).tables;
  ASSERT_EQ(only.size(), 1u);
  EXPECT_EQ(only[0].name, "embedding");
  EXPECT_TRUE(only[0].tied);
  const auto images = network("smallnet");
  EXPECT_TRUE(probed(*images).tables.empty());
}

TEST(Strategy, DecidesByTableWhatTravels) {
  const auto bert = network("bert_tiny");
  const auto tables = probed(*bert).tables;
  const auto kinds = [&](const RunConfig& config) {
    std::vector<TableGradient> how;
    for (const auto& table : with_strategy(tables, config)) how.push_back(table.how);
    return how;
  };
  using T = TableGradient;
  using Kinds = std::vector<T>;
  EXPECT_EQ(kinds(strategy(EmbeddingGradients::dense)), (Kinds{T::dense, T::dense, T::dense}));
  EXPECT_EQ(kinds(strategy(EmbeddingGradients::sparse)),
            (Kinds{T::beside, T::gathered, T::gathered}));
  EXPECT_EQ(kinds(strategy(EmbeddingGradients::sparse, TiedGradient::sparse)),
            (Kinds{T::gathered, T::gathered, T::gathered}));
  EXPECT_EQ(kinds(strategy(EmbeddingGradients::sparse_as_dense)),
            (Kinds{T::converted, T::converted, T::converted}));
}

TEST(FlatParametersOfTables, AGatheredTableIsAloneInABucketThatIsNotReduced) {
  const auto bert = network("bert_tiny");
  const Found found = probed(*bert);
  FlatLayout layout;
  layout.tables = with_strategy(found.tables, strategy(EmbeddingGradients::sparse));
  FlatParameters flat(*bert, found.order, layout);
  const auto buffers = flat.gradient_buffers();
  for (const TableRows& rows : flat.tables()) {
    const auto bucket = static_cast<std::size_t>(rows.bucket);
    const bool gathered = rows.table.how == TableGradient::gathered;
    EXPECT_EQ(flat.buckets()[bucket].reduced, !gathered) << rows.table.name;
    if (!gathered) continue;
    EXPECT_EQ(flat.buckets()[bucket].slices.size(), 1u);
    EXPECT_EQ(buffers[bucket].count, 0u);
  }
  std::size_t elements = 0;
  for (const Buffer& buffer : buffers) elements += buffer.count;
  EXPECT_EQ(static_cast<std::int64_t>(4 * elements), flat.gradient_bytes() - 4 * (512 + 2) * 128);
}

/// All strategies leave the same rows and dense parts, however many passes bring them.
TEST(FlatParametersOfTables, CollectWhatAutogradWouldSum) {
  for (const char* name : {"transformer_tiny", "bert_tiny"})
    for (const std::int64_t micro_batch : {4, 1}) {
      const auto model = network(name);
      const Found found = probed(*model);
      const Batch batch = model->synthetic_batch(4, 1, at::kCPU, at::kFloat);
      model->set_gate(std::make_shared<ParameterGate>());
      model->loss_sum(batch).backward();
      std::vector<at::Tensor> expected;
      for (const at::Tensor& leaf : model->parameters()) {
        expected.push_back(leaf.grad().clone());
        leaf.mutable_grad().reset();
      }
      for (const auto& config : {strategy(EmbeddingGradients::sparse),
                                 strategy(EmbeddingGradients::sparse, TiedGradient::sparse),
                                 strategy(EmbeddingGradients::sparse_as_dense)}) {
        FlatLayout layout;
        layout.tables = with_strategy(found.tables, config);
        const auto flat = std::make_shared<FlatParameters>(*model, found.order, layout);
        model->set_gate(flat);
        for (int step = 0; step < 2; ++step) {  // the second must overwrite, not accumulate
          const auto parts = split(batch, micro_batch);
          for (std::size_t i = 0; i < parts.size(); ++i) {
            flat->begin_pass(i == 0, i + 1 == parts.size());
            model->loss_sum(parts[i]).backward();
          }
        }
        for (const TableRows& rows : flat->tables()) {
          at::Tensor sum = rows.gradient.clone();
          if (rows.table.how == TableGradient::gathered) sum.zero_();
          if (rows.table.gathered())
            flat->operators().add_rows(sum, rows.rows.indices(), rows.rows.rows());
          const at::Tensor& wanted = expected[static_cast<std::size_t>(rows.table.parameter)];
          EXPECT_LT((sum - wanted).norm().item<double>(), 1e-6 * wanted.norm().item<double>())
              << name << " " << rows.table.name << " in micro-batches of " << micro_batch;
        }
      }
    }
}

}  // namespace
}  // namespace scalemark::embedding_tables_test

// Rows of embedding gradients: collecting them.
namespace scalemark::row_gradients_test {
namespace {

TEST(RowBuffer, HoldsWhatWasAppendedBehindTheDenseRows) {
  RowBuffer buffer(3, 2, at::TensorOptions(at::kFloat));
  for (int step = 0; step < 2; ++step) {
    buffer.clear();
    EXPECT_EQ(buffer.count(), 2);
    buffer.dense().fill_(7);
    buffer.append(at::tensor({1, 0, 1}, at::kLong), at::full({3, 3}, 2, at::kBFloat16));
    buffer.append(at::tensor({1}, at::kLong), at::full({1, 3}, 5.f));  // grows
    EXPECT_EQ(buffer.count(), 6);
    EXPECT_TRUE(at::equal(buffer.indices(), at::tensor({0, 1, 1, 0, 1, 1}, at::kLong)));
    EXPECT_EQ(buffer.rows().scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(buffer.rows().select(1, 2), at::tensor({7.f, 7.f, 2.f, 2.f, 2.f, 5.f})));
  }
  const void* const memory = buffer.rows().data_ptr();
  buffer.clear();
  buffer.append(at::zeros({4}, at::kLong), at::zeros({4, 3}));
  EXPECT_EQ(buffer.rows().data_ptr(), memory);  // of steps before
}

}  // namespace
}  // namespace scalemark::row_gradients_test

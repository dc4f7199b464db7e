// Holds the embedding tables that the front door knows against the networks: names, sizes, ties and
// how many rows a pass looks up.
#include "models/embedding_tables.hpp"

#include <gtest/gtest.h>

#include <map>

#include "models/model.hpp"

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

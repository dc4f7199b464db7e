// The closed forms of embedding gradients, by hand-computed values and the published figure.
#include <gtest/gtest.h>

#include "analysis/run_plan.hpp"

namespace scalemark::embedding_bytes_test {
namespace {

using E = EmbeddingGradients;
using T = TiedGradient;

TEST(EmbeddingBytes, OfOneTiedTable) {
  const std::vector<TableLookups> table{{1000, 16, true, 60}};  // 64,000 bytes; 72 a row
  const EmbeddingBytes dense = embedding_bytes(table, E::dense, T::dense, 4);
  EXPECT_EQ(dense.rows_per_rank, 0);
  EXPECT_EQ(dense.buffer_bytes(), 64'000);
  EXPECT_EQ(dense.wire_bytes, 96'000);  // 2 x 3/4
  const EmbeddingBytes beside = embedding_bytes(table, E::sparse, T::dense, 4);
  EXPECT_EQ(beside.rows_per_rank, 60);
  EXPECT_EQ(beside.own_bytes, 60 * 72);
  EXPECT_EQ(beside.gathered_bytes, 4 * 60 * 72);
  EXPECT_EQ(beside.buffer_bytes(), 4 * 60 * 72 + 64'000);
  EXPECT_EQ(beside.wire_bytes, 3 * 60 * 72 + 96'000);
  const EmbeddingBytes carried = embedding_bytes(table, E::sparse, T::sparse, 4);
  EXPECT_EQ(carried.rows_per_rank, 1060);
  EXPECT_EQ(carried.buffer_bytes(), 4 * 1060 * 72);
  EXPECT_EQ(carried.wire_bytes, 3 * 1060 * 72);
  const EmbeddingBytes converted = embedding_bytes(table, E::sparse_as_dense, T::dense, 4);
  EXPECT_EQ(converted.rows_per_rank, 1060);
  EXPECT_EQ(converted.own_bytes, 1060 * 72);
  EXPECT_EQ(converted.buffer_bytes(), dense.buffer_bytes());
  EXPECT_EQ(converted.wire_bytes, dense.wire_bytes);
}

TEST(EmbeddingBytes, AnUntiedTableNeedsNoAllreduce) {
  const std::vector<TableLookups> table{{1000, 16, false, 60}};
  for (const T tied : {T::dense, T::sparse}) {
    const EmbeddingBytes bytes = embedding_bytes(table, E::sparse, tied, 2);
    EXPECT_EQ(bytes.dense_bytes, 0);
    EXPECT_EQ(bytes.buffer_bytes(), 2 * 60 * 72);
    EXPECT_EQ(bytes.wire_bytes, 60 * 72);
  }
}

TEST(EmbeddingBytes, TablesAddUpAndOneRankSendsNothing) {
  const TableLookups a{1000, 16, true, 60}, b{10, 4, false, 7};
  const auto of = [](std::vector<TableLookups> tables, std::int64_t ranks) {
    return embedding_bytes(tables, E::sparse, T::sparse, ranks);
  };
  EXPECT_EQ(of({a, b}, 4).buffer_bytes(), of({a}, 4).buffer_bytes() + of({b}, 4).buffer_bytes());
  EXPECT_EQ(of({a, b}, 1).wire_bytes, 0);
  EXPECT_EQ(of({}, 4).buffer_bytes(), 0);
}

/// 64 ranks x 5,000 tokens of source and target each, V = 32,768: 64 (1 + 10,000 / 32,768) = 83.5
/// times the rows of the dense gradient.
TEST(EmbeddingBytes, OfThePublishedAccumulation) {
  const std::vector<TableLookups> big{{32'768, 1024, true, 10'000}};
  const EmbeddingBytes sparse = embedding_bytes(big, E::sparse, T::sparse, 64);
  const double rows = 64. * static_cast<double>(sparse.rows_per_rank) / 32'768;
  EXPECT_NEAR(rows, 83.5, 0.05);
  const auto dense =
      static_cast<double>(embedding_bytes(big, E::dense, T::dense, 64).buffer_bytes());
  // An index is 8 bytes beside 4,096 of its row.
  EXPECT_DOUBLE_EQ(static_cast<double>(sparse.buffer_bytes()) / dense, rows * (1 + 8. / 4096));
}

}  // namespace
}  // namespace scalemark::embedding_bytes_test

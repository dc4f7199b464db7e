// What a run record says of embedding gradients: exact values of hand-made reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "result/support.hpp"

namespace scalemark::run_embedding_test {
namespace {

using test::make_facts;
using test::make_report;
using ::testing::HasSubstr;

RunFacts facts_of(const std::string& strategy, const std::string& tied = "dense") {
  RunFacts facts = make_facts(2);
  facts.messages_per_step = 3;
  facts.embedding = EmbeddingFacts{
      strategy, tied, {{"word", 100, 8, true}, {"position", 10, 8, false}}, 3200, 3200};
  return facts;
}

/// Two ranks of two steps: 30 and 34 rows a step of the first table, 5 of the second.
std::vector<RankReport> two_reports() {
  std::vector<RankReport> reports{make_report(0, {1, 1}, {0, 0}), make_report(1, {1, 1}, {0, 0})};
  reports[0].samples.embedding = {{60, 10}, 5920, 2800, 1480, 8, 0.5, 0.25};
  reports[1].samples.embedding = {{68, 10}, 5920, 3120, 1480, 8, 0.7, 0.35};
  return reports;
}

Json record_of(const RunFacts& facts, const std::vector<RankReport>& reports) {
  return test::make_run_record(test::make_context(), facts, reports);
}

TEST(RunEmbedding, MeansOverRanksAndSteps) {
  const Json record = record_of(facts_of("sparse"), two_reports());
  const Json& embedding = record["communication"]["embedding"];
  EXPECT_EQ(embedding["strategy"], "sparse");
  EXPECT_EQ(embedding["tied_gradient"], "dense");
  EXPECT_EQ(embedding["rows_per_rank"], 37.0);
  ASSERT_EQ(embedding["tables"].size(), 2u);
  EXPECT_EQ(embedding["tables"][0]["rows_per_rank"], 32.0);
  EXPECT_EQ(embedding["tables"][1]["rows_per_rank"], 5.0);
  EXPECT_EQ(embedding["tables"][0]["rows"], 100);
  EXPECT_EQ(embedding["buffer_bytes_per_rank"], 2960 + 3200);
  EXPECT_EQ(embedding["wire_bytes_per_step"], 740 + 3200);
  EXPECT_DOUBLE_EQ(embedding["exchange_seconds"].get<double>(), 0.3);
  EXPECT_DOUBLE_EQ(embedding["densify_seconds"].get<double>(), 0.15);
}

TEST(RunEmbedding, RowsAreAmongTheBytesOfAStep) {
  RunFacts facts = facts_of("sparse");
  const Json with_rows = record_of(facts, two_reports())["communication"];
  facts.embedding.reset();
  const Json without = record_of(facts, two_reports())["communication"];
  const auto more = [&](const char* key) {
    return with_rows[key].get<std::int64_t>() - without[key].get<std::int64_t>();
  };
  EXPECT_EQ(more("bytes_per_step"), 1480);
  EXPECT_EQ(more("wire_bytes_per_step"), 740);
  EXPECT_EQ(more("messages_per_step"), 4);
}

TEST(RunEmbedding, DenseGradientsHaveNoRows) {
  auto reports = two_reports();
  for (RankReport& report : reports) report.samples.embedding = {{0, 0}, 0, 0, 0, 0, 0.4, 0};
  const Json record = record_of(facts_of("dense"), reports);
  const Json& embedding = record["communication"]["embedding"];
  EXPECT_EQ(embedding["buffer_bytes_per_rank"], 3200);
  EXPECT_DOUBLE_EQ(embedding["exchange_seconds"].get<double>(), 0.2);
  for (const char* key : {"rows_per_rank", "densify_seconds"}) {
    EXPECT_TRUE(embedding[key].is_null()) << key;
    EXPECT_TRUE(record["unavailable"].contains(std::string("communication.embedding.") + key));
  }
}

TEST(RunEmbedding, IsNullWithoutTablesOrSteps) {
  const Json images = record_of(make_facts(2), two_reports());
  EXPECT_TRUE(images["communication"]["embedding"].is_null());
  EXPECT_THAT(images["unavailable"]["communication.embedding"].get<std::string>(),
              HasSubstr("no gradients of an embedding table"));
  std::vector<RankReport> stopped{make_report(0, {}, {}), make_report(1, {}, {})};
  for (auto& report : stopped) report.samples.stop_reason = StopReason::signal;
  const Json early = record_of(facts_of("sparse"), stopped);
  EXPECT_TRUE(early["communication"]["embedding"].is_null());
}

}  // namespace
}  // namespace scalemark::run_embedding_test

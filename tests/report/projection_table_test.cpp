// The console says what the projection record says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/projection/curve_support.hpp"
#include "analysis/projection/projection.hpp"
#include "report/tables.hpp"

namespace scalemark::projection_table_test {
namespace {
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

ProjectionResult record(bool budget) {
  const auto curve = test::curve_of_throughputs({{1, 100}, {2, 190}, {4, 360}, {8, 680}});
  ProjectionQuestions questions;
  questions.fit.fit_ranks = {1, 2};
  questions.ranks = {1, 4, 8, 64};
  if (budget) questions.budget = Budget{Budget::Unit::steps, 1e6};
  const ModelFit fit = fit_model(curve, questions.fit);
  return make_projection_record(curve, fit, questions, project(curve, fit, questions));
}

TEST(ProjectionTable, SaysWhatTheRecordSays) {
  const std::string table = projection_table(record(false));
  EXPECT_THAT(table, HasSubstr("resnet50 of made.json, weak scaling, fitted to 1, 2 ranks\n"));
  EXPECT_THAT(table,
              ContainsRegex(" 4 +32 +0\\.[0-9]+ +3[0-9.]+ \\[[0-9.]+, [0-9.]+\\] +[0-9.]+ % .* "
                            "unseen [+-][0-9.]+ %\n"));
  EXPECT_THAT(table, ContainsRegex(" 1 +32 .* fitted [+-][0-9.]+ %\n"));
  EXPECT_THAT(table, ContainsRegex(" 64 +32 .* -\n"));
  EXPECT_THAT(table,
              ContainsRegex("unseen points: 2, mean error [0-9.]+ %; constant efficiency 8\\.7 "
                            "%, linear 14\\.4 %; in the band [0-2] of 2\n"));
  EXPECT_THAT(table, AllOf(HasSubstr("straggler_deviation"), HasSubstr("link_rate, Gbit/s"),
                           HasSubstr("no promise"), Not(HasSubstr("time to solution"))));
}

TEST(ProjectionTable, OfShardsItShowsBothCollectives) {
  EXPECT_THAT(projection_table(record(false)), HasSubstr("  allreduce  "));
  const auto curve =
      test::curve_from(test::truth(), {1, 2, 4}, Hiding::backward, test::blocks_of_ten());
  ProjectionQuestions questions;
  questions.ranks = {1, 8};
  const ModelFit fit = fit_model(curve, {});
  const std::string table = projection_table(
      make_projection_record(curve, fit, questions, project(curve, fit, questions)));
  EXPECT_THAT(table, HasSubstr("resnet50 of made.json, shard parameters, weak scaling"));
  EXPECT_THAT(table, ContainsRegex("exposed +of reduce-scatter +of all-gather +algorithm"));
  EXPECT_THAT(table, ContainsRegex(" 8 +32 .* [0-9.]+ ms of [0-9.]+ ms +[0-9.]+ ms of [0-9.]+ ms "
                                   "+ring +-\n"));
  EXPECT_THAT(table, ContainsRegex(" 1 +32 .* 0 us +- +- +- +fitted"));
}

TEST(ProjectionTable, WithABudgetItSaysHowLong) {
  const std::string table = projection_table(record(true));
  EXPECT_THAT(table, HasSubstr("time to solution"));
  EXPECT_THAT(table, ContainsRegex(" 1 +32 .* 3\\.[67][0-9]* days \\["));
  const std::string markdown = projection_markdown(record(true));
  EXPECT_THAT(markdown, AllOf(HasSubstr("| ranks | batch |"), HasSubstr("- unseen points: 2")));
}

TEST(ProjectionTable, SpeaksOfTimesAsPeopleDo) {
  EXPECT_EQ(spoken_seconds(6.2 * 3600), "6.2 h");
  EXPECT_EQ(spoken_seconds(30.3 * 86400), "30.3 days");
  EXPECT_EQ(spoken_seconds(40 * 3600), "40 h");
  EXPECT_EQ(spoken_seconds(90), "1.5 min");
  EXPECT_EQ(spoken_seconds(0.85), "850 ms");
  EXPECT_EQ(spoken_seconds(2e-5), "20 us");
  EXPECT_EQ(spoken_seconds(0), "0 us");
  EXPECT_EQ(spoken_seconds(2 * 365.25 * 86400), "2 years");
}

}  // namespace
}  // namespace scalemark::projection_table_test

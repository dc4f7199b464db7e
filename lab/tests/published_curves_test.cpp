// The promise of docs/projection.md: fitted to the first half of published and measured curves, the
// model predicts the second better than constant efficiency does.
#include <gtest/gtest.h>

#include "commands/requests.hpp"
#include "lab/simulation/projection_check.hpp"

namespace scalemark::projection::published_curves_test {
namespace {
namespace fs = std::filesystem;

const fs::path kSource = SCALEMARK_SOURCE_DIR;

Tally tally_of(const std::vector<fs::path>& paths) {
  Tally tally;
  for (const fs::path& path : paths) {
    const Projection made = check_half(read_curve(path.string()));
    if (made.errors) tally.add(*made.errors);
  }
  return tally;
}

TEST(PublishedCurves, ArePredictedBetterThanByConstantEfficiency) {
  const Tally tally = tally_of(files_of(kSource / "configs/published"));
  EXPECT_GE(tally.curves, 42);
  EXPECT_LT(tally.model, 0.65 * tally.constant_efficiency);
  EXPECT_GE(tally.better, tally.curves * 4 / 5);
  EXPECT_GE(tally.within_one_point, tally.curves * 9 / 10);
  EXPECT_LT(tally.farthest_behind, 3);
  EXPECT_GE(tally.in_band, tally.points * 9 / 10);
}

TEST(MeasuredCurves, MoreHostsArePredictedFromFew) {
  const fs::path baselines = kSource / "results/baselines";
  const Tally tally = tally_of({baselines / "resnet50-1gbit-4hosts.json",
                                baselines / "resnet18-200mbit-8hosts.json",
                                baselines / "smallnet-10mbit-8hosts.json"});
  EXPECT_EQ(tally.curves, 3);
  EXPECT_EQ(tally.better, 3);
  EXPECT_LT(tally.model, 0.3 * tally.constant_efficiency);
}

TEST(MeasuredCurves, AFourthHostOfShardsIsPredicted) {
  const fs::path baselines = kSource / "results/baselines";
  for (const std::string shard : {"optimizer", "parameters"}) {
    const auto curve =
        read_curve((baselines / ("llama_tiny-400mbit-4hosts-" + shard + ".json")).string());
    EXPECT_EQ(*curve.shard, shard);
    ProjectionQuestions questions;
    questions.fit.fit_ranks = {1, 2, 3};
    const Projection made = check_half(curve, questions);
    EXPECT_EQ(made.errors->points, 1u);
    EXPECT_EQ(made.errors->in_band, 1u) << shard;
    EXPECT_LT(made.errors->model, made.errors->constant_efficiency) << shard;
  }
}

TEST(MeasuredCurves, AnotherLinkIsPredicted) {
  const fs::path baselines = kSource / "results/baselines";
  const auto slow = read_curve((baselines / "smallnet-10mbit-8hosts.json").string());
  const auto fast = read_curve((baselines / "smallnet-40mbit-8hosts.json").string());
  ProjectionQuestions questions;
  questions.fit.link_gbit = 0.01;
  questions.link_gbit = 0.04;
  questions.ranks = {2, 4, 8};
  const Projection made = project(slow, fit_model(slow, questions.fit), questions);
  for (std::size_t i = 0; i < 3; ++i) {
    const CurvePoint& measured = fast.points[i + 1];
    ASSERT_EQ(made.points[i].ranks, measured.ranks);
    EXPECT_NEAR(made.points[i].step_seconds.value / step_seconds_of(measured), 1, 0.1);
  }
}

}  // namespace
}  // namespace scalemark::projection::published_curves_test

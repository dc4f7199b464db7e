// Fits of curves whose parameters are known, and of curves that tell too little.
#include "analysis/projection/model_fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/projection/curve_support.hpp"
#include "analysis/projection/projection.hpp"
#include "error.hpp"

namespace scalemark::model_fit_test {
namespace {
using testing::HasSubstr;

const FittedParameter& parameter(const ModelFit& fit, const std::string& name) {
  for (const FittedParameter& one : fit.parameters)
    if (one.name == name) return one;
  throw std::out_of_range(name);
}

TEST(ModelFit, RecoversWhatMadeTheCurve) {
  const auto truth = test::truth();
  const ModelFit fit =
      fit_model(test::curve_from(truth, {1, 2, 3, 4, 6, 8, 12, 16}, Hiding::none), {});
  const auto& compute = parameter(fit, "compute");
  EXPECT_NEAR(compute.value, truth.compute_seconds, 0.02 * truth.compute_seconds);
  const auto& link = parameter(fit, "link_rate");
  EXPECT_TRUE(link.fitted);
  EXPECT_NEAR(link.value, 2.5, 0.3);
  EXPECT_LT(link.range.lo, 2.5);
  EXPECT_GT(link.range.hi, 2.5);
  const auto& straggler = parameter(fit, "straggler_deviation");
  EXPECT_LT(straggler.range.lo, 0.02);
  EXPECT_GT(straggler.range.hi, 0.02);
}

TEST(ModelFit, PredictsTheCurveThatMadeIt) {
  const auto truth = test::truth();
  const auto curve = test::curve_from(truth, {1, 2, 4, 8, 64});
  FitQuestions questions;
  questions.fit_ranks = {1, 2, 4, 8};
  const ModelFit fit = fit_model(curve, questions);
  const Predicted step = predict_step(fit, {32, curve.buckets}, 64);
  const double made = curve.points.back().step_seconds[0];
  EXPECT_NEAR(step.value, made, 0.04 * made);
  EXPECT_LT(step.band.lo, made);
  EXPECT_GT(step.band.hi, made);
}

TEST(ModelFit, PredictsTheShardedCurveThatMadeIt) {
  const auto curve =
      test::curve_from(test::truth(), {1, 2, 4, 8, 64}, Hiding::backward, test::blocks_of_ten());
  FitQuestions questions;
  questions.fit_ranks = {1, 2, 4, 8};
  const Predicted step = predict_step(fit_model(curve, questions), {32, curve.buckets}, 64);
  const double made = curve.points.back().step_seconds[0];
  EXPECT_NEAR(step.value, made, 0.04 * made);
  EXPECT_LT(step.band.lo, made);
  EXPECT_GT(step.band.hi, made);
}

TEST(ModelFit, IsTheSameTwice) {
  const auto curve = test::curve_from(test::truth(), {1, 2, 4});
  const StepWork work{32, curve.buckets};
  const Predicted a = predict_step(fit_model(curve, {}), work, 8),
                  b = predict_step(fit_model(curve, {}), work, 8);
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.band.hi, b.band.hi);
}

TEST(ModelFit, BandsWidenWithTheDistanceFromTheData) {
  const auto curve = test::curve_from(test::truth(), {1, 2, 4});
  const ModelFit fit = fit_model(curve, {});
  double before = 0;
  for (const std::int64_t ranks : {4, 8, 32, 512, 100'000}) {
    const Predicted step = predict_step(fit, {32, curve.buckets}, ranks);
    const double width = step.band.hi / step.band.lo;
    EXPECT_GT(width, before) << ranks;
    before = width;
  }
}

TEST(ModelFit, SaysWhatTheCurveDoesNotTell) {
  auto curve = test::curve_from(test::truth(), {1, 2});
  curve.ranks_per_node = 8;  // no point leaves the node
  curve.link_gbit = 100;
  const ModelFit fit = fit_model(curve, {});
  const auto& link = parameter(fit, "link_rate");
  EXPECT_FALSE(link.fitted);
  EXPECT_NEAR(link.value, 50, 10);
  EXPECT_THAT(link.origin, HasSubstr("nominal 100 Gbit/s"));
  EXPECT_THAT(fit.warnings, testing::Contains(HasSubstr("do not tell the rate between nodes")));
  EXPECT_FALSE(parameter(fit, "link_latency").fitted);
}

TEST(ModelFit, TheBaselineTellsComputationFromCommunication) {
  // Two ranks take twice as long; with nothing to communicate hardly less.
  auto curve = test::empty_curve();
  curve.points = {{1, 32, {1.0}, std::nullopt}, {2, 32, {2.0}, 1.9}};
  const ModelFit fit = fit_model(curve, {});
  EXPECT_NEAR(compute_factor(fit, fit.draws.front(), 2), 1.9, 0.1);
  EXPECT_EQ(compute_factor(fit, fit.draws.front(), 1), 1);
  const Predicted more = predict_step(fit, {32, curve.buckets}, 4);
  EXPECT_GT(more.value, 1.95);
  EXPECT_LT(more.value, 2.3);
}

TEST(ModelFit, RepeatsThatDifferWidenTheBand) {
  auto quiet = test::curve_from(test::truth(), {1, 2, 4}), noisy = quiet;
  for (CurvePoint& point : noisy.points)
    point.step_seconds = {0.9 * point.step_seconds[0], 1.1 * point.step_seconds[0]};
  const StepWork work{32, quiet.buckets};
  const auto width = [&work](const MeasuredCurve& curve) {
    const Predicted step = predict_step(fit_model(curve, {}), work, 4);
    return step.band.hi / step.band.lo;
  };
  EXPECT_GT(width(noisy), 1.03 * width(quiet));
}

std::string refusal(const MeasuredCurve& curve, std::vector<std::int64_t> fit_ranks = {}) {
  FitQuestions questions;
  questions.fit_ranks = std::move(fit_ranks);
  try {
    fit_model(curve, questions);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ModelFit, OneRankCountIsRefused) {
  const auto curve = test::curve_from(test::truth(), {1, 2, 4});
  EXPECT_THAT(refusal(test::curve_from(test::truth(), {4})), HasSubstr("says nothing of scaling"));
  EXPECT_THAT(refusal(curve, {2}), HasSubstr("says nothing of scaling"));
  EXPECT_THAT(refusal(curve, {1, 3}), HasSubstr("no point of 3 ranks; it has 1, 2, 4"));
}

TEST(ModelFit, ShardsHaveNoTrees) {
  const auto curve =
      test::curve_from(test::truth(), {1, 2, 4}, Hiding::backward, test::blocks_of_ten());
  FitQuestions questions;
  for (const Allreduce algorithm : {Allreduce::tree, Allreduce::doubling}) {
    questions.algorithm = algorithm;
    try {
      fit_model(curve, questions);
      ADD_FAILURE() << to_string(algorithm);
    } catch (const ConfigError& error) {
      EXPECT_THAT(
          error.what(),
          testing::AllOf(HasSubstr("--algorithm " + to_string(algorithm) + ": made.json"),
                         HasSubstr("--shard parameters"), HasSubstr("auto, ring or hierarchical")));
    }
  }
  questions.algorithm = Allreduce::hierarchical;
  EXPECT_FALSE(fit_model(curve, questions).draws.empty());
}

}  // namespace
}  // namespace scalemark::model_fit_test

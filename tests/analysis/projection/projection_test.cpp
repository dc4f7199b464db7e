// Predictions, budgets and what is held against them, by hand where the model leaves a choice.
#include "analysis/projection/projection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "analysis/projection/curve_support.hpp"
#include "error.hpp"
#include "record/write.hpp"

namespace scalemark::projection_test {
namespace {
using testing::HasSubstr;

Projection projected(const MeasuredCurve& curve, const ProjectionQuestions& questions) {
  return project(curve, fit_model(curve, questions.fit), questions);
}

ProjectionQuestions at(std::vector<std::int64_t> ranks) {
  ProjectionQuestions questions;
  questions.ranks = std::move(ranks);
  return questions;
}

/// Nothing but computation: 100 images/sec a rank, batch 32.
MeasuredCurve perfect() { return test::curve_of_throughputs({{1, 100}, {2, 200}, {4, 400}}); }

TEST(Projection, NumbersOfAPointBelongTogether) {
  const auto curve = test::curve_from(test::truth(), {1, 2, 4});
  for (const ProjectedPoint& point : projected(curve, at({1, 2, 16, 100'000})).points) {
    EXPECT_NEAR(point.compute_seconds + point.straggler_seconds + point.exposed_seconds +
                    *point.trend_seconds,
                point.step_seconds.value, 1e-12);
    EXPECT_LE(point.step_seconds.band.lo, point.step_seconds.value);
    EXPECT_GE(point.step_seconds.band.hi, point.step_seconds.value);
    EXPECT_NEAR(point.throughput.value * point.step_seconds.value, 32. * point.ranks, 1e-6);
    EXPECT_NEAR(point.throughput.band.lo * point.step_seconds.band.hi, 32. * point.ranks, 1e-6);
    EXPECT_NEAR(point.efficiency.value * point.ranks, point.speedup, 1e-9 * point.speedup);
    if (point.ranks == 1) {
      EXPECT_EQ(point.exposed_seconds + point.straggler_seconds, 0);
    }
  }
}

TEST(Projection, CollectivesAreThePartsOfCommunication) {
  for (const ShardPlan& shard : {ShardPlan{}, test::blocks_of_ten()}) {
    const auto curve = test::curve_from(test::truth(), {1, 2, 4}, Hiding::backward, shard);
    for (const ProjectedPoint& point : projected(curve, at({1, 2, 64})).points) {
      EXPECT_EQ(point.collectives->front().collective,
                shard.divides ? "reduce_scatter" : "allreduce");
      double seconds = 0, exposed = 0;
      for (const auto& one : *point.collectives) {
        EXPECT_EQ(one.seconds > 0, point.ranks > 1);
        seconds += one.seconds;
        exposed += one.exposed_seconds;
      }
      EXPECT_NEAR(seconds, point.communication_seconds, 1e-12);
      EXPECT_NEAR(exposed, point.exposed_seconds, 1e-12);
    }
  }
}

TEST(Projection, StepsOnlyGetLongerWithRanks) {
  const auto curve = test::curve_from(test::truth(), {1, 2, 4});
  double before = 0;
  for (const auto& point : projected(curve, at({1, 2, 4, 8, 100, 1000, 100'000})).points) {
    EXPECT_GT(point.step_seconds.value, before);
    before = point.step_seconds.value;
  }
}

TEST(Projection, ByDefaultItDoublesWhatWasMeasured) {
  const Projection made = projected(perfect(), {});
  std::vector<std::int64_t> ranks;
  for (const auto& point : made.points) ranks.push_back(point.ranks);
  EXPECT_THAT(ranks, testing::ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256));
  EXPECT_THAT(made.warnings, testing::Contains(HasSubstr("checked up to 8 x")));
}

TEST(Projection, AFasterLinkExposesLess) {
  auto curve = test::curve_from(test::truth(), {1, 2, 4, 8}, Hiding::none);
  curve.link_gbit = 5;
  ProjectionQuestions questions = at({16});
  const double same = projected(curve, questions).points[0].exposed_seconds;
  questions.link_gbit = 50;
  const auto fast = projected(curve, questions).points[0];
  EXPECT_LT(fast.exposed_seconds, 0.3 * same);
  EXPECT_FALSE(fast.measured_throughput);
  questions.link_gbit = 5;
  EXPECT_NEAR(projected(curve, questions).points[0].exposed_seconds, same, 1e-9);
}

TEST(Projection, AnUnknownNominalRateIsSaid) {
  ProjectionQuestions questions = at({16});
  questions.link_gbit = 50;
  const auto made = projected(test::curve_from(test::truth(), {1, 2, 4, 8}), questions);
  EXPECT_THAT(made.warnings, testing::Contains(HasSubstr("--measured_link_gbit keeps the share")));
}

TEST(Projection, OtherBatches) {
  ProjectionQuestions questions = at({4});
  questions.batch_per_rank = 64;
  const double large = projected(perfect(), questions).points[0].step_seconds.value;
  EXPECT_GT(large, 0.32 * 1.8);
  EXPECT_LT(large, 0.32 * 2.1);
  questions.batch_per_rank = std::nullopt;
  questions.global_batch = 256;
  EXPECT_NEAR(projected(perfect(), questions).points[0].step_seconds.value, large, 1e-9);
  EXPECT_EQ(projected(perfect(), questions).points[0].batch_size_per_rank, 64);
}

TEST(Projection, AStrongCurveKeepsItsGlobalBatch) {
  auto curve = perfect();
  curve.scaling = Scaling::strong;
  for (CurvePoint& point : curve.points) {
    point.batch_per_rank = 32. / static_cast<double>(point.ranks);
    point.step_seconds = {0.32 / static_cast<double>(point.ranks)};
  }
  const Projection made = projected(curve, {});
  for (const auto& point : made.points) EXPECT_EQ(point.global_batch_size, 32);
  EXPECT_EQ(made.points.back().ranks, 32);  // of more ranks some would have no sample
  EXPECT_THROW(projected(curve, at({64})), ConfigError);
}

TEST(Projection, ErrorsAreThoseOfUnseenPoints) {
  auto curve = test::curve_of_throughputs({{1, 100}, {2, 190}, {4, 360}, {8, 680}});
  ProjectionQuestions questions;
  questions.fit.fit_ranks = {1, 2};
  const Projection made = projected(curve, questions);
  ASSERT_TRUE(made.errors);
  EXPECT_EQ(made.errors->points, 2u);
  // 190 x 2 against 360, 190 x 4 against 680; 400 and 800 against the same.
  EXPECT_NEAR(made.errors->constant_efficiency, 100 * (20. / 360 + 80. / 680) / 2, 1e-9);
  EXPECT_NEAR(made.errors->linear, 100 * (40. / 360 + 120. / 680) / 2, 1e-9);
  EXPECT_LT(made.errors->model, made.errors->constant_efficiency);
  EXPECT_FALSE(projected(curve, {}).errors);
}

TEST(Projection, AMonthBecomesSixHours) {
  // Transformer-big: a node of 2 ranks with 25,600 tokens each, 6.3 s a step, takes a month for the
  // tokens that 200 nodes with 2,048 a rank see in 26,000 steps of 819,200.
  auto curve = test::empty_curve();
  curve.unit = "tokens/sec";
  curve.units_per_sample = 64;
  curve.parameters = 209'915'904;
  curve.buckets.gradient_bytes = 4 * curve.parameters;
  curve.ranks_per_node = 2;
  curve.link_gbit = 100;
  curve.points = {{2, 400, {6.3}, std::nullopt}, {4, 400, {6.4}, std::nullopt}};
  ProjectionQuestions questions = at({400});
  questions.global_batch = 12'800;
  questions.budget = Budget{Budget::Unit::units, 26'000. * 819'200};
  const auto point = projected(curve, questions).points[0];
  const double month = 16 * 26'000 * 6.3;
  EXPECT_NEAR(month / 86400, 30.3, 0.1);
  EXPECT_EQ(point.nodes, 200);
  EXPECT_EQ(point.batch_size_per_rank * 64, 2048);
  EXPECT_DOUBLE_EQ(*point.solution_steps, 26'000);
  EXPECT_NEAR(*point.time_to_solution_seconds.value, 26'000 * point.step_seconds.value, 1e-6);
  EXPECT_GT(*point.time_to_solution_seconds.value, 3.6 * 3600);  // all 200 nodes without a loss
  EXPECT_LT(*point.time_to_solution_seconds.value, 9 * 3600);
  EXPECT_NEAR(*point.time_to_solution_speedup.value, month / *point.time_to_solution_seconds.value,
              1e-6);
  EXPECT_NEAR(point.time_to_solution_speedup.band->lo,
              month / point.time_to_solution_seconds.band->hi, 1e-6);
  // A base that needs other steps.
  questions.base_budget = Budget{Budget::Unit::steps, 1000};
  EXPECT_NEAR(*projected(curve, questions).points[0].time_to_solution_speedup.value,
              6300 / *point.time_to_solution_seconds.value, 1e-6);
}

TEST(Projection, BudgetsInEpochsSamplesAndTokens) {
  auto curve = perfect();
  const auto steps = [&curve](Budget::Unit unit, double amount) {
    ProjectionQuestions questions = at({4});
    questions.budget = Budget{unit, amount};
    questions.samples_per_epoch = 1280;
    return *projected(curve, questions).points[0].solution_steps;
  };
  EXPECT_DOUBLE_EQ(steps(Budget::Unit::epochs, 90), 90 * 1280 / 128.);
  EXPECT_DOUBLE_EQ(steps(Budget::Unit::samples, 1e6), 1e6 / 128);
  EXPECT_THROW(steps(Budget::Unit::units, 1e6), ConfigError);  // images are no tokens
  curve.unit = "tokens/sec";
  curve.units_per_sample = 64;
  EXPECT_DOUBLE_EQ(steps(Budget::Unit::units, 1e6), 1e6 / 128 / 64);
}

TEST(Projection, StepsOfAWeakCurveAreUnlikeTraining) {
  const auto warnings = [](const MeasuredCurve& curve, Budget::Unit unit) {
    ProjectionQuestions questions = at({1, 4});
    questions.budget = Budget{unit, 1000};
    return projected(curve, questions).warnings;
  };
  const auto said = testing::Contains(
      HasSubstr("a step of 4 ranks has 128 samples, one of 1 measured has 32, so as many steps are "
                "4 x the training"));
  auto curve = perfect();
  EXPECT_THAT(warnings(curve, Budget::Unit::steps), said);
  EXPECT_THAT(warnings(curve, Budget::Unit::samples), testing::Not(said));
  curve.scaling = Scaling::strong;
  for (CurvePoint& point : curve.points) {
    point.batch_per_rank = 32. / static_cast<double>(point.ranks);
    point.step_seconds = {0.32 / static_cast<double>(point.ranks)};
  }
  EXPECT_THAT(warnings(curve, Budget::Unit::steps),
              testing::Not(testing::Contains(HasSubstr("--budget in steps"))));
}

TEST(Projection, ConstantEfficiencyStandsBesideEveryPoint) {
  const auto curve = test::curve_of_throughputs({{1, 100}, {2, 190}});
  ProjectionQuestions questions = at({2, 64});
  questions.link_gbit = 100;
  for (const auto& point : projected(curve, questions).points)
    EXPECT_NEAR(point.constant_efficiency_throughput, 95. * static_cast<double>(point.ranks), 1e-9);
}

TEST(Projection, QuestionsThatLackSomethingAreRefused) {
  ProjectionQuestions questions = at({4});
  questions.budget = Budget{Budget::Unit::epochs, 90};
  EXPECT_THROW(projected(perfect(), questions), ConfigError);
  questions = at({4});
  questions.base_budget = Budget{};
  EXPECT_THROW(projected(perfect(), questions), ConfigError);
  questions = at({4});
  questions.batch_per_rank = questions.global_batch = 32;
  EXPECT_THROW(projected(perfect(), questions), ConfigError);
}

void expect_valid(const Json& record, const std::string& name) {
  const auto folder = std::filesystem::path(SCALEMARK_BINARY_DIR) / "projection_records";
  std::filesystem::create_directories(folder);
  const auto path = folder / (name + ".json");
  std::ofstream(path) << record_text(record);
  const std::string root = SCALEMARK_SOURCE_DIR;
  const std::string command = "'" + root + "/.venv/bin/python' '" + root +
                              "/tests/result/validate_records.py' '" + path.string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << path;
}

TEST(Projection, RecordsAreValid) {
  const auto write = [](const MeasuredCurve& curve, const ProjectionQuestions& questions,
                        const std::string& name) {
    const ModelFit fit = fit_model(curve, questions.fit);
    expect_valid(
        record_json(make_projection_record(curve, fit, questions, project(curve, fit, questions))),
        name);
  };
  auto curve = perfect();
  write(curve, {}, "plain");
  curve.points[1].baseline_step_seconds = 0.32;
  curve.link_gbit = 10;
  curve.source = std::string("made");
  curve.kind = "published";
  ProjectionQuestions questions;
  questions.fit.fit_ranks = {1, 2};
  questions.budget = Budget{Budget::Unit::epochs, 90};
  questions.base_budget = Budget{Budget::Unit::steps, 100};
  questions.samples_per_epoch = 1'281'167;
  write(curve, questions, "held_out");
  questions = at({100'000});
  questions.link_gbit = 100;
  questions.link_latency_seconds = 2e-6;
  questions.ranks_per_node = 8;
  questions.batch_per_rank = 64;
  write(curve, questions, "changed");
}

}  // namespace
}  // namespace scalemark::projection_test

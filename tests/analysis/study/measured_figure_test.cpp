// Figures from rows, with hand-computed numbers; what does not show an effect, or the opposite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/study/study_record.hpp"

namespace scalemark::measured_figure_test {
namespace {
using testing::HasSubstr;

StepRow launch(int ranks, std::int64_t repeat, double throughput) {
  StepRow row;
  row.settings = {{"ranks", ranks}};
  row.columns = {{"throughput", throughput}, {"model", "resnet50"}};
  row.part = {{"loss", {{"diverged", ranks > 1}}}};
  row.repeat = repeat;
  return row;
}

RowsOfSteps two_by_two() {
  return {{"s", {launch(1, 1, 10), launch(2, 1, 16), launch(1, 2, 5), launch(2, 2, 10)}}};
}

Figure figure(const std::string& unit, const std::optional<Reading>& reading) {
  return {"f", unit, {}, reading};
}

Reading ratio() {
  return {"s", "throughput", {{"ranks", 2}}, Where{{"ranks", 1}}, "s", "throughput"};
}

TEST(MeasuredFigure, ARatioIsPairedByRepeat) {
  // 1.6 and 2, although both halve from one repeat to the next.
  const auto measured = measure_figure(figure("ratio", ratio()), two_by_two());
  const double half = 12.70620474 * std::log(2 / 1.6) / 2, center = std::sqrt(1.6 * 2);
  EXPECT_NEAR(measured->value, center, 1e-12);
  ASSERT_TRUE(measured->ci95);
  EXPECT_NEAR(measured->ci95->lo, center * std::exp(-half), 1e-6);
  EXPECT_NEAR(measured->ci95->hi, center * std::exp(half), 1e-6);
  EXPECT_EQ(measured->repeats, 2U);
}

TEST(MeasuredFigure, ARatioOfTwoStepsHasNoPairs) {
  // Each side rises by 44 % from one repeat to the next, in the opposite order of the other: pairs
  // by number would say 1 and 2.0736, and another order another interval.
  const auto steps = [](double first, double second) {
    return RowsOfSteps{{"a", {launch(2, 1, first), launch(2, 2, second)}},
                       {"b", {launch(1, 1, 10), launch(1, 2, 14.4)}}};
  };
  const Figure over = figure("ratio", Reading{"a", "throughput", {}, Where{}, "b", "throughput"});
  const auto measured = measure_figure(over, steps(14.4, 10 * 1.44 * 1.44));
  const auto turned = measure_figure(over, steps(10 * 1.44 * 1.44, 14.4));
  EXPECT_NEAR(measured->value, 1.44, 1e-12);
  EXPECT_EQ(measured->value, turned->value);
  // Welch: both sides have the variance log(1.44)^2 / 2 of one value, so 2 degrees of freedom.
  const double half = 4.30265273 * std::log(1.44) / std::sqrt(2.0);
  for (const auto& found : {measured, turned}) {
    ASSERT_TRUE(found->ci95);
    EXPECT_NEAR(found->ci95->lo, 1.44 * std::exp(-half), 1e-6);
    EXPECT_NEAR(found->ci95->hi, 1.44 * std::exp(half), 1e-6);
    EXPECT_EQ(found->repeats, 2U);
  }
  RowsOfSteps one = steps(14.4, 20);
  one["b"].pop_back();
  EXPECT_FALSE(measure_figure(over, one)->ci95) << "one value has no spread";
}

TEST(MeasuredFigure, OfTwoStepsWarnsOfDrift) {
  const RowsOfSteps rows{{"a", {launch(2, 1, 14), launch(2, 2, 15)}},
                         {"b", {launch(1, 1, 10), launch(1, 2, 10)}}};
  StudyProfile profile;
  profile.figures = {figure("ratio", Reading{"a", "throughput", {}, Where{}, "b", "throughput"})};
  EXPECT_THAT(make_study_record({}, profile, "here", {}, rows).warnings,
              testing::ElementsAre(HasSubstr("f: a and b were measured one after the other")));
  profile.figures = {figure("ratio", ratio())};
  EXPECT_TRUE(make_study_record({}, profile, "here", {}, two_by_two()).warnings.empty());
}

TEST(MeasuredFigure, PercentAndFactorsChangeTheIntervalToo) {
  Reading half = ratio();
  half.times = 0.5;
  const auto share = measure_figure(figure("share", half), two_by_two());
  EXPECT_NEAR(share->value, std::sqrt(3.2) / 2, 1e-12);
  const auto percent = measure_figure(figure("percent", ratio()), two_by_two());
  EXPECT_NEAR(percent->value, 100 * (std::sqrt(3.2) - 1), 1e-9);
  EXPECT_NEAR(percent->ci95->lo, 100 * (2 * share->ci95->lo - 1), 1e-9);
}

TEST(MeasuredFigure, AValueIsTheGeometricMeanOfItsRepeats) {
  Reading value{"s", "throughput", {{"ranks", 1}}};
  EXPECT_NEAR(measure_figure(figure("images/sec", value), two_by_two())->value, std::sqrt(50),
              1e-12);
}

TEST(MeasuredFigure, AFailedLaunchLeavesItsPairOut) {
  RowsOfSteps rows = two_by_two();
  rows["s"][3].columns["throughput"] = nullptr;
  const auto measured = measure_figure(figure("ratio", ratio()), rows);
  EXPECT_NEAR(measured->value, 1.6, 1e-12);
  EXPECT_EQ(measured->repeats, 1U);
  EXPECT_FALSE(measured->ci95);
}

Figure expecting(const std::string& unit, Reading reading, double above) {
  reading.expect = Expectation{.above = above};
  return figure(unit, reading);
}

record::StudyFigure judged(const Figure& asked, const RowsOfSteps& rows) {
  Study study;
  study.name = study.title = study.publication = study.published_on = "s";
  StudyProfile profile;
  profile.name = "laptop";
  profile.figures = {asked};
  return make_study_record(study, profile, "here", {}, rows).figures.front();
}

TEST(LoneValue, OfAMeasurementIsNotShown) {
  const RowsOfSteps rows{{"s", {launch(1, 1, 10), launch(2, 1, 16)}}};
  const Figure faster = expecting("ratio", ratio(), 1);
  const auto one = judged(faster, rows);
  EXPECT_EQ(one.verdict, FigureVerdict::not_shown) << "1.6 is above 1, but it is one value";
  EXPECT_TRUE(is_lone_value(one));
  EXPECT_EQ(judged(expecting("ratio", ratio(), 2), rows).verdict, FigureVerdict::not_shown)
      << "nor is the opposite shown";
  RowsOfSteps again = rows;
  again["s"].push_back(launch(1, 2, 10));
  again["s"].push_back(launch(2, 2, 16.1));
  EXPECT_EQ(judged(faster, again).verdict, FigureVerdict::shown);
  EXPECT_FALSE(is_lone_value(judged(faster, again)));
}

TEST(LoneValue, IsToldWithItsRemedy) {
  const RowsOfSteps rows{{"s", {launch(1, 1, 10), launch(2, 1, 16)}}};
  StudyProfile profile;
  profile.figures = {expecting("ratio", ratio(), 1)};
  EXPECT_THAT(make_study_record({}, profile, "here", {}, rows).warnings,
              testing::ElementsAre(
                  testing::AllOf(HasSubstr("f: one value: not shown"), HasSubstr("--repeats"))));
}

TEST(LoneValue, IsShownWhereNoRepeatWouldChangeIt) {
  StepRow run = launch(1, 1, 10);
  run.columns.update({{"wire_bytes_per_step", 12}, {"loss_last", 0.5}, {"peak_rss_bytes", 7}});
  run.part = {{"checkpoint", {{"total_bytes_per_second", 9}}},
              {"loss", {{"target", {{"seconds", 3}}}}}};
  StepRow plan = launch(1, 1, 10);
  plan.planned = true;
  const RowsOfSteps rows{{"run", {run}}, {"plan", {plan}}};
  const auto verdict = [&](const char* step, const char* of) {
    return judged(expecting("number", {step, of}, 0), rows).verdict;
  };
  for (const char* counted : {"wire_bytes_per_step", "loss_last"})
    EXPECT_EQ(verdict("run", counted), FigureVerdict::shown) << counted;
  EXPECT_EQ(verdict("plan", "throughput"), FigureVerdict::shown) << "it is arithmetic";
  for (const char* measured : {"throughput", "peak_rss_bytes", "/checkpoint/total_bytes_per_second",
                               "/loss/target/seconds"})
    EXPECT_EQ(verdict("run", measured), FigureVerdict::not_shown) << measured;
  Reading over_a_run{"plan", "throughput", {}, Where{}, "run", "throughput"};
  EXPECT_EQ(judged(expecting("ratio", over_a_run, 0), rows).verdict, FigureVerdict::not_shown)
      << "one side is measured";
}

TEST(LoneValue, HasTheIntervalThatItsRecordHas) {
  StepRow point = launch(2, 1, 16);
  point.repeat = {};
  point.part = {{"time_to_solution_speedup", 1.6}, {"time_to_solution_speedup_ci95", {1.5, 1.7}}};
  const RowsOfSteps rows{{"s", {point}}};
  const auto speedup = judged(expecting("ratio", {"s", "/time_to_solution_speedup"}, 1), rows);
  EXPECT_EQ(speedup.verdict, FigureVerdict::shown);
  EXPECT_EQ(speedup.measured->ci95->lo, 1.5);
  EXPECT_EQ(judged(expecting("ratio", {"s", "/time_to_solution_speedup"}, 1.55), rows).verdict,
            FigureVerdict::not_shown);
}

TEST(MeasuredFigure, WordsAndTruthValues) {
  Reading reading{"s", "/loss/diverged", {{"ranks", 2}}};
  const auto measured = measure_figure(figure("verdict", reading), two_by_two());
  EXPECT_EQ(measured->value, true);
  EXPECT_EQ(judge(Expectation{.equals = true}, measured), FigureVerdict::shown);
  EXPECT_EQ(judge(Expectation{.equals = false}, measured), FigureVerdict::opposite);
  reading.where.clear();
  RowsOfSteps mixed{{"s", {launch(1, 1, 1), launch(2, 2, 1)}}};
  EXPECT_THAT(measure_figure(figure("verdict", reading), mixed).why(),
              HasSubstr("not the same in every repeat"));
}

TEST(MeasuredFigure, SaysWhyThereIsNone) {
  const auto reason = [](const Reading& reading) {
    const auto measured = measure_figure(figure("ratio", reading), two_by_two());
    EXPECT_FALSE(measured);
    return measured.why();
  };
  EXPECT_EQ(measure_figure(figure("ratio", {}), {}).why(), "not of this profile");
  EXPECT_THAT(reason({"other", "throughput"}), HasSubstr("other has no result"));
  EXPECT_THAT(reason({"s", "throughput", {{"ranks", 3}}}),
              HasSubstr("no throughput where ranks 3"));
  EXPECT_THAT(reason({"s", "throughput"}), HasSubstr("more than one point"));
  EXPECT_THAT(reason({"s", "model", {{"ranks", 1}}, Where{{"ranks", 2}}, "s", "model"}),
              HasSubstr("no number"));
}

TEST(MeasuredFigure, TheWholeIntervalDecides) {
  const auto of = [](double value, double lo, double hi) {
    return MeasuredFigure{.value = value, .ci95 = Interval{lo, hi}, .repeats = 5};
  };
  const Expectation above{.above = 0}, alike{.within_percent = 5};
  EXPECT_EQ(judge(above, of(3, 1, 5)), FigureVerdict::shown);
  EXPECT_EQ(judge(above, of(3, -1, 7)), FigureVerdict::not_shown);
  EXPECT_EQ(judge(above, of(-3, -5, -1)), FigureVerdict::opposite);
  EXPECT_EQ(judge(alike, of(1, -2, 4)), FigureVerdict::shown);
  EXPECT_EQ(judge(alike, of(1, -2, 6)), FigureVerdict::not_shown);
  EXPECT_EQ(judge(alike, of(9, 7, 11)), FigureVerdict::opposite);
  EXPECT_EQ(judge(Expectation{.above = 80, .below = 85}, of(83.5, 83.4, 83.6)),
            FigureVerdict::shown);
  EXPECT_EQ(judge({}, of(1, 0, 2)), std::nullopt);
  EXPECT_EQ(judge(above, {}), std::nullopt);
  EXPECT_EQ(
      judge(Expectation{.equals = 12.5}, MeasuredFigure{.value = 12.500000000001, .repeats = 1}),
      FigureVerdict::shown);
}

}  // namespace
}  // namespace scalemark::measured_figure_test

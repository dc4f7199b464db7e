// Golden text of the table, with and without baselines, intervals and a result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/console.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark::scaling_table_test {
namespace {

record::CurveRepeat repeat(bool baseline, double rate = 0) {
  record::CurveRepeat made;
  made.baseline = baseline;
  made.throughput = rate;
  return made;
}

record::ScalingPoint point(int ranks, double throughput, double speedup, double efficiency) {
  record::ScalingPoint made;
  made.ranks = ranks;
  made.batch_size_per_rank = 16;
  made.global_batch_size = std::int64_t{16} * ranks;
  made.throughput = throughput;
  made.speedup = speedup;
  made.efficiency = efficiency;
  return made;
}

void set(ScalingCurve& curve, const std::string& key, const Json& value) {
  curve.config.emplace_back(key, record::Setting{value, "command_line"});
}

/// Without baselines and intervals.
ScalingCurve plain_curve() {
  ScalingCurve made;
  made.unit = "images/sec";
  set(made, "model", "resnet50");
  set(made, "precision", "fp32");
  made.points = {point(1, 3.9123, 1, 1), point(16, 60.05, 15.349, 0.9593)};
  for (record::ScalingPoint& one : made.points) one.repeats = {repeat(false)};
  made.points[1].exposed_seconds = 0.1342;
  made.points[1].exposed_method = std::string("wait");
  return made;
}

ScalingCurve curve() {
  ScalingCurve made = plain_curve();
  record::ScalingPoint &base = made.points[0], &last = made.points[1];
  base.ci95 = Interval{3.85, 3.97};
  base.repeats = {repeat(false), repeat(false), repeat(false)};
  last.ci95 = Interval{59.1, 61.02};
  last.speedup_ci95 = Interval{15.1, 15.6};
  last.efficiency_ci95 = Interval{0.944, 0.975};
  last.baseline_throughput = 62;
  last.exposed_ci95 = Interval{0.1311, 0.1373};
  last.exposed_method = std::string("baseline");
  last.repeats = {repeat(false), repeat(false), repeat(false),
                  repeat(true),  repeat(true),  repeat(true)};
  return made;
}

TEST(ScalingTable, NamesADip) {
  ScalingCurve record = curve();
  record.points[1].trend = record::Trend{0.97, false};
  EXPECT_THAT(scaling_table(record), testing::Not(testing::HasSubstr("dip")));
  record.points[1].trend->dip = true;
  EXPECT_THAT(scaling_table(record),
              testing::HasSubstr(
                  "\ndip: 16 ranks reach 95.9 % where the points beside them let expect 97.0 %\n"));
}

TEST(ScalingTable, SaysWhereExposedCommunicationMayBeNone) {
  ScalingCurve record = curve();
  record.points[1].exposed_ci95 = Interval{-0.0012, 0.2};
  EXPECT_THAT(scaling_table(record),
              testing::HasSubstr("  not distinguishable from 0 [-1.2, 200.0] ms\n"));
  record.points[1].exposed_ci95 = Unknown{};
  EXPECT_THAT(scaling_table(record), testing::HasSubstr("  134.2 ms (3.1 %)\n"));
  record.points[1].exposed_seconds = -0.272;
  record.points[1].exposed_ci95 = Interval{-0.3, -0.25};
  EXPECT_THAT(scaling_table(record),
              testing::HasSubstr("  -272.0 [-300.0, -250.0] ms: noise, the baseline is slower\n"));
}

TEST(ScalingTable, OfACurveWithBaselines) {
  EXPECT_EQ(scaling_table(curve()),
            R"(Weak scaling of resnet50, fp32

ranks            images/sec               speedup               efficiency            exposed communication
    1  3.912 [3.850, 3.970]                  1.00                  100.0 %                                -
   16  60.05 [59.10, 61.02]  15.35 [15.10, 15.60]  95.9 % [94.4 %, 97.5 %]  134.2 [131.1, 137.3] ms (3.1 %)

[ ]: 95 % interval, Student's t over 3 repeats in one launch; speedup and efficiency paired by round.
It says nothing of other launches.
Exposed communication: mean step minus that of the same ranks without communication (share of the step).
)");
}

TEST(ScalingTable, ListsWhatEachCollectiveAdds) {
  ScalingCurve record = curve();
  EXPECT_THAT(scaling_table(record), testing::Not(testing::HasSubstr("By collective")));
  record::ExposedCollective gather;
  gather.collective = "allgather";
  gather.exposed_seconds = 0.0123;
  gather.exposed_ci95 = Interval{0.011, 0.0136};
  record.points[1].exposed_collectives = std::vector{gather};
  EXPECT_THAT(
      scaling_table(record),
      testing::HasSubstr("By collective: mean step minus that of the same ranks without it.\n"
                         "  16 ranks, allgather: 12.3 [11.0, 13.6] ms\n"));
}

TEST(ScalingTable, EndsWithWhyTheCurveFallsShort) {
  ScalingCurve record = curve();
  const std::string before = scaling_table(record);
  record::Finding link;
  link.rule = "link";
  link.what = "The link: ranks wait for gradients.";
  link.why = "3.1 % of it, at 16 ranks.";
  link.tries = {"a faster link"};
  link.sure = "sure";
  record.findings = {link};
  EXPECT_EQ(scaling_table(record), before +
                                       "\nThe link: ranks wait for gradients. (sure)\n"
                                       "  why: 3.1 % of it, at 16 ranks.\n"
                                       "  try: a faster link\n");
}

TEST(ScalingTable, OfOneRepeatWithoutBaselines) {
  ScalingCurve record = plain_curve();
  record.scaling = Scaling::strong;
  EXPECT_EQ(scaling_table(record),
            R"(Strong scaling of resnet50, fp32

ranks  images/sec  speedup  efficiency  exposed communication
    1       3.912     1.00     100.0 %                      -
   16       60.05    15.35      95.9 %               134.2 ms

No intervals: one repeat only (--repeats).
Exposed communication: waiting time per step, mean over ranks; no baseline was measured.
)");
}

TEST(ScalingTable, NamesTheResourceAndTheGlobalBatch) {
  ScalingCurve record = curve();
  record.resource = Resource::node;
  set(record, "global_batch_size", 256);
  const std::string text = scaling_table(record);
  EXPECT_TRUE(text.starts_with("Weak scaling of resnet50, fp32, global batch 256\n")) << text;
  EXPECT_NE(text.find("efficiency by node            exposed"), std::string::npos) << text;
}

TEST(ScalingTable, OfATimeToSolutionAndATargetLoss) {
  ScalingCurve record = plain_curve();
  set(record, "solution_steps", 1000);
  set(record, "base_solution_steps", 16000);
  set(record, "target_loss", 0.3);
  record::ScalingPoint &base = record.points[0], &last = record.points[1];
  base.batch_size_per_rank = 400;
  base.time_to_solution_seconds = 8000;
  base.time_to_solution_speedup = base.time_to_solution_efficiency = 1;
  base.target = record::PointTarget{true, 57., 12.345};
  last.time_to_solution_seconds = 500;
  last.time_to_solution_speedup = 16;
  last.time_to_solution_speedup_ci95 = Interval{15.5, 16.5};
  last.target = record::PointTarget{};
  EXPECT_EQ(scaling_table(record),
            R"(Weak scaling of resnet50, fp32

ranks  batch  images/sec  speedup  efficiency  exposed communication  time to solution  its speedup (efficiency)  steps to 0.3  seconds to 0.3
    1    400       3.912     1.00     100.0 %                      -            8000 s            1.00 (100.0 %)            57           12.35
   16     16       60.05    15.35      95.9 %               134.2 ms           500.0 s      16.00 [15.50, 16.50]             -     not reached

No intervals: one repeat only (--repeats).
Exposed communication: waiting time per step, mean over ranks; no baseline was measured.
Batch: samples of a rank. Time to solution: 1000 steps of the mean step (16000 of the base); its speedup is that of these times.
)");
}

ScalingCurve complete(double rate, std::initializer_list<double> rounds) {
  ScalingCurve record = plain_curve();
  record.points = {point(1, rate, 1, 1)};
  for (const double round : rounds) record.points[0].repeats.push_back(repeat(false, round));
  return record;
}

TEST(FamilyTable, PutsCurvesSideBySide) {
  EXPECT_EQ(family_table({"fp32", "bf16"}, {complete(4, {4, 4}), complete(7.6, {7.6, 7.6})}),
            R"(Curves side by side, images/sec

ranks   fp32   bf16        bf16 over fp32
    1  4.000  7.600  1.900 [1.900, 1.900]

[ ]: 95 % interval, Student's t over the rounds, paired. The curves ran one after the other:
a drift of the machine between them is not in it.
)");
}

TEST(FamilyTable, OfLaunchesThatDoNotHaveAllPoints) {
  std::vector<ScalingCurve> records{complete(4, {4, 4}), complete(7.6, {7.6, 7.6})};
  for (ScalingCurve& record : records) record.repeat_unit = RepeatUnit::launch;
  record::ScalingPoint more = records[1].points[0];
  more.ranks = 4;
  records[1].points.push_back(more);
  EXPECT_EQ(family_table({"fp32", "bf16"}, records), R"(Curves side by side, images/sec

ranks   fp32   bf16        bf16 over fp32
    1  4.000  7.600  1.900 [1.900, 1.900]
    4      -  7.600                     -

[ ]: 95 % interval, Student's t over launches, paired by repeat of the sweep.
)");
}

TEST(FamilyTable, RatesOfOtherUnitsAreNotDivided) {
  std::vector<ScalingCurve> records{complete(4, {4}), complete(7, {7}), complete(5, {5})};
  records[1].unit = "tokens/sec";
  const std::string table = family_table({"a", "b", "c"}, records);
  EXPECT_THAT(table, testing::HasSubstr("c over a"));
  EXPECT_THAT(table, testing::Not(testing::HasSubstr("b over")));
  EXPECT_EQ(family_table({"a", "b"}, {records[0], records[1]}), "");
}

TEST(ScalingTable, NamesTheKernelsInItsTitle) {
  ScalingCurve record = curve();
  set(record, "kernels", "torch");
  EXPECT_THAT(scaling_table(record),
              testing::StartsWith("Weak scaling of resnet50, fp32, torch kernels\n"));
}

TEST(ScalingTable, OfLaunchesSaysWhatTheIntervalIsOver) {
  ScalingCurve record = curve();
  record.repeat_unit = RepeatUnit::launch;
  record.settings = {{"model", Json("resnet50")}, {"env.NCCL_ALGO", Json("Ring")}};
  record.points[1].repeats.erase(record.points[1].repeats.begin());
  const std::string table = scaling_table(record);
  EXPECT_THAT(table, testing::StartsWith("Weak scaling of resnet50, fp32, env.NCCL_ALGO Ring\n"));
  EXPECT_THAT(table, testing::HasSubstr("of 2 to 3 fresh launches of each point"));
  EXPECT_THAT(table, testing::HasSubstr("paired by repeat"));
}

TEST(FamilyTable, SaysWhatTheTargetLossTook) {
  std::vector<ScalingCurve> records{complete(4, {4}), complete(6, {6})};
  for (ScalingCurve& record : records) set(record, "target_loss", 0.3);
  records[0].points[0].target = record::PointTarget{true, 57., 1.5};
  records[1].points[0].target = record::PointTarget{};
  records[1].points[0].global_batch_size = 32;
  EXPECT_EQ(family_table({"b16", "b32"}, records),
            R"(Curves side by side, images/sec

ranks    b16    b32  b32 over b16
    1  4.000  6.000         1.500

Training until a loss of 0.3, mean of the repeats, warm-up included

curve  ranks  global batch  steps      seconds
  b16      1            16     57        1.500
  b32      1            32      -  not reached
)");
}

TEST(ScalingTable, EndsWithTheWarningsThatWereNotTold) {
  ScalingCurve record = curve();
  record.warnings = {"told", "first", "second"};
  const std::string text = scaling_table(record, 1);
  EXPECT_TRUE(text.ends_with("of the step).\nwarning: first\nwarning: second\n")) << text;
}

TEST(ScalingTable, OfACurveWithoutResultSaysWhy) {
  ScalingCurve record = curve();
  record.status = Status::interrupted;
  record.reason = "ended after 3 of 6 runs";
  EXPECT_EQ(scaling_table(record),
            "Weak scaling of resnet50, fp32: no table, the curve is interrupted: ended after 3 of "
            "6 runs\n");
}

TEST(FourDigits, KeepsFourSignificantDigits) {
  EXPECT_EQ(four_digits(139.6451), "139.6");
  EXPECT_EQ(four_digits(7.52), "7.520");
  EXPECT_EQ(four_digits(12345.6), "12346");
  EXPECT_EQ(four_digits(0.012345), "0.01235");
  EXPECT_EQ(four_digits(0), "0");
  EXPECT_EQ(four_digits(99.876, 100.3), "99.9") << "a bound has its centre's decimals";
}

}  // namespace
}  // namespace scalemark::scaling_table_test

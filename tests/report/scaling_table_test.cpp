// Golden text of the table, with and without baselines, intervals and a result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/console.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark::scaling_table_test {
namespace {

Json repeat(bool baseline) { return {{"run", "id"}, {"baseline", baseline}}; }

Json curve() {
  return {{"status", "ok"},
          {"reason", ""},
          {"warnings", Json::array()},
          {"unit", "images/sec"},
          {"scaling", "weak"},
          {"resource", "rank"},
          {"repeat_unit", "in_process"},
          {"config",
           {{"model", {{"value", "resnet50"}}},
            {"precision", {{"value", "fp32"}}},
            {"global_batch_size", {{"value", nullptr}}},
            {"target_loss", {{"value", nullptr}}},
            {"solution_steps", {{"value", nullptr}}},
            {"base_solution_steps", {{"value", nullptr}}}}},
          {"points",
           {{{"ranks", 1},
             {"batch_size_per_rank", 16},
             {"global_batch_size", 16},
             {"throughput", 3.9123},
             {"ci95", {3.85, 3.97}},
             {"speedup", 1.0},
             {"speedup_ci95", nullptr},
             {"efficiency", 1.0},
             {"efficiency_ci95", nullptr},
             {"trend", nullptr},
             {"baseline_throughput", nullptr},
             {"exposed_seconds", nullptr},
             {"exposed_ci95", nullptr},
             {"exposed_method", nullptr},
             {"time_to_solution_seconds", nullptr},
             {"target", nullptr},
             {"repeats", {repeat(false), repeat(false), repeat(false)}}},
            {{"ranks", 16},
             {"batch_size_per_rank", 16},
             {"global_batch_size", 256},
             {"throughput", 60.05},
             {"ci95", {59.1, 61.02}},
             {"speedup", 15.349},
             {"speedup_ci95", {15.1, 15.6}},
             {"efficiency", 0.9593},
             {"efficiency_ci95", {0.944, 0.975}},
             {"trend", nullptr},
             {"baseline_throughput", 62.0},
             {"exposed_seconds", 0.1342},
             {"exposed_ci95", {0.1311, 0.1373}},
             {"exposed_method", "baseline"},
             {"time_to_solution_seconds", nullptr},
             {"target", nullptr},
             {"repeats",
              {repeat(false), repeat(false), repeat(false), repeat(true), repeat(true),
               repeat(true)}}}}}};
}

TEST(ScalingTable, NamesADip) {
  Json record = curve();
  record["points"][1]["trend"] = {{"expected_efficiency", 0.97}, {"dip", false}};
  EXPECT_THAT(scaling_table(record), testing::Not(testing::HasSubstr("dip")));
  record["points"][1]["trend"]["dip"] = true;
  EXPECT_THAT(scaling_table(record),
              testing::HasSubstr(
                  "\ndip: 16 ranks reach 95.9 % where the points beside them let expect 97.0 %\n"));
}

TEST(ScalingTable, SaysWhereExposedCommunicationMayBeNone) {
  Json record = curve();
  record["points"][1]["exposed_ci95"] = {-0.0012, 0.2};
  EXPECT_THAT(scaling_table(record),
              testing::HasSubstr("  not distinguishable from 0 [-1.2, 200.0] ms\n"));
  record["points"][1]["exposed_ci95"] = nullptr;
  EXPECT_THAT(scaling_table(record), testing::HasSubstr("  134.2 ms (3.1 %)\n"));
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

TEST(ScalingTable, EndsWithWhyTheCurveFallsShort) {
  Json record = curve();
  const std::string before = scaling_table(record);
  record["findings"] = {{{"rule", "link"},
                         {"what", "The link: ranks wait for gradients."},
                         {"why", "3.1 % of it, at 16 ranks."},
                         {"try", {"a faster link"}},
                         {"sure", "sure"}}};
  EXPECT_EQ(scaling_table(record), before +
                                       "\nThe link: ranks wait for gradients. (sure)\n"
                                       "  why: 3.1 % of it, at 16 ranks.\n"
                                       "  try: a faster link\n");
}

TEST(ScalingTable, OfOneRepeatWithoutBaselines) {
  Json record = curve();
  record["scaling"] = "strong";
  for (Json& point : record["points"]) {
    for (const char* key :
         {"ci95", "speedup_ci95", "efficiency_ci95", "exposed_ci95", "baseline_throughput"})
      point[key] = nullptr;
    point["repeats"] = {repeat(false)};
  }
  record["points"][1]["exposed_method"] = "wait";
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
  Json record = curve();
  record["resource"] = "node";
  record["config"]["global_batch_size"]["value"] = 256;
  const std::string text = scaling_table(record);
  EXPECT_TRUE(text.starts_with("Weak scaling of resnet50, fp32, global batch 256\n")) << text;
  EXPECT_NE(text.find("efficiency by node            exposed"), std::string::npos) << text;
}

TEST(ScalingTable, OfATimeToSolutionAndATargetLoss) {
  Json record = curve();
  for (Json& point : record["points"]) {
    for (const char* key :
         {"ci95", "speedup_ci95", "efficiency_ci95", "exposed_ci95", "baseline_throughput"})
      point[key] = nullptr;
    point["repeats"] = {repeat(false)};
    point["exposed_method"] = "wait";
    point["time_to_solution_speedup_ci95"] = nullptr;
  }
  record["config"]["solution_steps"]["value"] = 1000;
  record["config"]["base_solution_steps"]["value"] = 16000;
  record["config"]["target_loss"]["value"] = 0.3;
  Json &base = record["points"][0], &point = record["points"][1];
  base.update({{"batch_size_per_rank", 400},
               {"time_to_solution_seconds", 8000.0},
               {"time_to_solution_speedup", 1.0},
               {"time_to_solution_efficiency", 1.0},
               {"target", {{"reached", true}, {"steps", 57.0}, {"seconds", 12.345}}}});
  point.update({{"time_to_solution_seconds", 500.0},
                {"time_to_solution_speedup", 16.0},
                {"time_to_solution_speedup_ci95", {15.5, 16.5}},
                {"time_to_solution_efficiency", nullptr},
                {"target", {{"reached", false}, {"steps", nullptr}, {"seconds", nullptr}}}});
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

Json complete(double rate, std::initializer_list<double> rounds) {
  Json record = curve();
  Json& points = record["points"];
  points.erase(1);
  points[0]["throughput"] = rate;
  points[0]["repeats"] = Json::array();
  for (const double round : rounds)
    points[0]["repeats"].push_back({{"baseline", false}, {"throughput", round}});
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
  std::vector<Json> records{complete(4, {4, 4}), complete(7.6, {7.6, 7.6})};
  for (Json& record : records) record["repeat_unit"] = "launch";
  Json more = records[1]["points"][0];
  more["ranks"] = 4;
  records[1]["points"].push_back(more);
  EXPECT_EQ(family_table({"fp32", "bf16"}, records), R"(Curves side by side, images/sec

ranks   fp32   bf16        bf16 over fp32
    1  4.000  7.600  1.900 [1.900, 1.900]
    4      -  7.600                     -

[ ]: 95 % interval, Student's t over launches, paired by repeat of the sweep.
)");
}

TEST(FamilyTable, RatesOfOtherUnitsAreNotDivided) {
  std::vector<Json> records{complete(4, {4}), complete(7, {7}), complete(5, {5})};
  records[1]["unit"] = "tokens/sec";
  const std::string table = family_table({"a", "b", "c"}, records);
  EXPECT_THAT(table, testing::HasSubstr("c over a"));
  EXPECT_THAT(table, testing::Not(testing::HasSubstr("b over")));
  EXPECT_EQ(family_table({"a", "b"}, {records[0], records[1]}), "");
}

TEST(ScalingTable, NamesTheKernelsInItsTitle) {
  Json record = curve();
  record["config"]["kernels"] = {{"value", "torch"}, {"origin", "command_line"}};
  EXPECT_THAT(scaling_table(record),
              testing::StartsWith("Weak scaling of resnet50, fp32, torch kernels\n"));
}

TEST(ScalingTable, OfLaunchesSaysWhatTheIntervalIsOver) {
  Json record = curve();
  record["repeat_unit"] = "launch";
  record["settings"] = {{"model", "resnet50"}, {"env.NCCL_ALGO", "Ring"}};
  record["points"][1]["repeats"].erase(0);
  const std::string table = scaling_table(record);
  EXPECT_THAT(table, testing::StartsWith("Weak scaling of resnet50, fp32, env.NCCL_ALGO Ring\n"));
  EXPECT_THAT(table, testing::HasSubstr("of 2 to 3 fresh launches of each point"));
  EXPECT_THAT(table, testing::HasSubstr("paired by repeat"));
}

TEST(FamilyTable, SaysWhatTheTargetLossTook) {
  std::vector<Json> records{complete(4, {4}), complete(6, {6})};
  for (Json& record : records) record["config"]["target_loss"]["value"] = 0.3;
  records[0]["points"][0]["target"] = {{"reached", true}, {"steps", 57.0}, {"seconds", 1.5}};
  records[1]["points"][0]["target"] = {
      {"reached", false}, {"steps", nullptr}, {"seconds", nullptr}};
  records[1]["points"][0]["global_batch_size"] = 32;
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
  Json record = curve();
  record["warnings"] = {"told", "first", "second"};
  const std::string text = scaling_table(record, 1);
  EXPECT_TRUE(text.ends_with("of the step).\nwarning: first\nwarning: second\n")) << text;
}

TEST(ScalingTable, OfACurveWithoutResultSaysWhy) {
  Json record = curve();
  record["status"] = "interrupted";
  record["reason"] = "ended after 3 of 6 runs";
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

// Golden text of the table, with and without baselines, intervals and a result.
#include <gtest/gtest.h>

#include "report/console.hpp"
#include "report/text_table.hpp"

namespace scalemark {
namespace {

Json repeat(bool baseline) { return {{"run", "id"}, {"baseline", baseline}}; }

Json curve() {
  return {{"status", "ok"},
          {"reason", ""},
          {"unit", "images/sec"},
          {"scaling", "weak"},
          {"repeat_unit", "in_process"},
          {"config", {{"model", {{"value", "resnet50"}}}, {"precision", {{"value", "fp32"}}}}},
          {"points",
           {{{"ranks", 1},
             {"throughput", 3.9123},
             {"ci95", {3.85, 3.97}},
             {"speedup", 1.0},
             {"speedup_ci95", nullptr},
             {"efficiency", 1.0},
             {"efficiency_ci95", nullptr},
             {"baseline_throughput", nullptr},
             {"exposed_seconds", nullptr},
             {"exposed_method", nullptr},
             {"repeats", {repeat(false), repeat(false), repeat(false)}}},
            {{"ranks", 16},
             {"throughput", 60.05},
             {"ci95", {59.1, 61.02}},
             {"speedup", 15.349},
             {"speedup_ci95", {15.1, 15.6}},
             {"efficiency", 0.9593},
             {"efficiency_ci95", {0.944, 0.975}},
             {"baseline_throughput", 62.0},
             {"exposed_seconds", 0.1342},
             {"exposed_method", "baseline"},
             {"repeats",
              {repeat(false), repeat(false), repeat(false), repeat(true), repeat(true),
               repeat(true)}}}}}};
}

TEST(ScalingTable, OfACurveWithBaselines) {
  EXPECT_EQ(scaling_table(curve()),
            R"(Weak scaling of resnet50, fp32

ranks            images/sec               speedup               efficiency  exposed communication
    1  3.912 [3.850, 3.970]                  1.00                  100.0 %                      -
   16  60.05 [59.10, 61.02]  15.35 [15.10, 15.60]  95.9 % [94.4 %, 97.5 %]       134.2 ms (3.1 %)

[ ]: 95 % interval, Student's t over 3 repeats in one launch; speedup and efficiency paired by round.
It says nothing of other launches.
Exposed communication: mean step minus that of the same ranks without communication (share of the step).
)");
}

TEST(ScalingTable, OfOneRepeatWithoutBaselines) {
  Json record = curve();
  record["scaling"] = "strong";
  for (Json& point : record["points"]) {
    for (const char* key : {"ci95", "speedup_ci95", "efficiency_ci95", "baseline_throughput"})
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

TEST(ScalingTable, EndsWithTheWarnings) {
  const std::string text = scaling_table(curve(), {"first", "second"});
  EXPECT_TRUE(text.ends_with("\nwarning: first\nwarning: second\n")) << text;
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
}  // namespace scalemark

// A curve as the plan of a sweep.
#include "config/curves.hpp"
#include "config/sweep_plan.hpp"
#include "config_support.hpp"
#include "json.hpp"

namespace scalemark::curve_plan_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

SweepPlan plan_of(const Words& words, const std::vector<std::int64_t>& ranks = {1, 2}) {
  return parse_sweep_plan(curve_plan(load_scale(words), ranks, 3), "plan", {}, 8);
}

std::vector<std::string> titles(const SweepPlan& plan) {
  std::vector<std::string> all;
  for (const SweepPoint& point : plan.points) all.push_back(point.title());
  return all;
}

TEST(CurvePlan, HasAPointARankCountAndItsBaseline) {
  const SweepPlan plan = plan_of({"--model=smallnet", "--batch_size=4", "--repeats=5"});
  EXPECT_THAT(titles(plan), ElementsAre("ranks=1", "ranks=2", "ranks=2 communicator=none"));
  EXPECT_EQ(plan.repeats, 5);
  for (const SweepPoint& point : plan.points) {
    EXPECT_EQ(point.launch.cpus_per_rank, 3);
    EXPECT_EQ(point.config.model, "smallnet");
    EXPECT_EQ(point.config.batch_size, 4);
  }
}

TEST(CurvePlan, OfAFamilyTellsItsCurvesApart) {
  const SweepPlan plan = plan_of(
      {"--model=smallnet,trivial", "--reducer=scalemark,c10d", "--precision=bf16", "--nobaseline"});
  EXPECT_THAT(titles(plan), Contains("ranks=2 model=trivial reducer=c10d"));
  EXPECT_EQ(plan.points.size(), 8u);
  EXPECT_THAT(plan.points[0].arguments, Contains("--precision=bf16"));
}

TEST(CurvePlan, ABaselineIsOfTheReducerThatHasOne) {
  const SweepPlan plan = plan_of({"--model=smallnet", "--reducer=c10d"});
  EXPECT_THAT(titles(plan),
              ElementsAre("ranks=1", "ranks=2", "ranks=2 communicator=none reducer=scalemark"));
}

TEST(CurvePlan, NodesAreFilledAsTheCurveAsks) {
  const SweepPlan plan =
      plan_of({"--model=trivial", "--ranks_per_node=2", "--nobaseline"}, {1, 2, 4});
  EXPECT_EQ(plan.points[0].launch.ranks_per_node, 1);
  EXPECT_EQ(plan.points[2].launch.ranks_per_node, 2);
}

TEST(CurvePlan, GroupsAreOfCurvesThatDivide) {
  const SweepPlan plan = plan_of(
      {"--model=smallnet", "--shard=none,parameters", "--shard_ranks=2", "--nobaseline"}, {4});
  ASSERT_THAT(titles(plan),
              ElementsAre("ranks=4 shard=none", "ranks=4 shard=parameters shard_ranks=2"));
  EXPECT_FALSE(plan.points[0].config.shard_ranks);
  EXPECT_EQ(plan.points[1].config.shard_ranks, 2);
}

TEST(CurvePlan, OutputIsNotItsLaunches) {
  const SweepPlan plan = plan_of({"--model=trivial", "--output=c.json", "--json", "--label=x",
                                  "--repeat_unit=launch", "--resource=node"});
  EXPECT_THAT(plan.points[0].arguments, Contains("--label=x"));
  for (const char* flag : {"--output", "--json", "--repeat_unit", "--resource"})
    EXPECT_THAT(plan.points[0].arguments, Not(Contains(HasSubstr(flag)))) << flag;
}

TEST(CurvePlan, RefusesWhatOnlyRoundsHave) {
  for (const Words& words :
       {Words{"--batch_size=max"}, Words{"--ranks=1,2", "--micro_batch_size=2,4"},
        Words{"--solution_steps=9", "--base_batch_size=2", "--ranks=1,2"}}) {
    Words all{"--model=smallnet"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_THAT(refusal([&] { plan_of(all); }), HasSubstr("--repeat_unit launch")) << words[0];
  }
}

}  // namespace
}  // namespace scalemark::curve_plan_test

// Commands of steps, what is done and goes on, and what cannot run here. Steps that run are those
// of tests/programs/study_test.py.
#include "launch/study_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "platform/posix_file.hpp"
#include "result/records.hpp"

namespace scalemark::study_run_test {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;

StudyStep step(const std::string& name, const std::vector<std::string>& words) {
  StudyStep made{name, "about " + name, words, 1};
  if (made.is_sweep()) made.plan = {{"settings", {{"model", "trivial"}}}};
  return made;
}

StudyProfile profile_of(std::vector<StudyStep> steps) {
  StudyProfile profile{"laptop", "effect", "it", "all", 2};
  profile.steps = std::move(steps);
  profile.figures.push_back({"f", "ratio", {}, {}});
  return profile;
}

StudyPlace place_in(const std::filesystem::path& folder) {
  return {"/bin/scalemark", "/share/netlab", folder, "abc", true, true};
}

TEST(StudyRun, CommandsNameTheResultsOfOthers) {
  StudyStep lab = step("links", {"sweep"});
  lab.netlab = VirtualHosts{4, "1gbit"};
  const StudyProfile profile =
      profile_of({lab, step("more", {"project", "{links}", "--ranks", "8"}),
                  step("plan", {"scale", "--dry_run", "--json"})});
  const StudyPlace place = place_in("out");
  EXPECT_THAT(
      step_command(profile.steps[0], profile, place),
      ElementsAre("/share/netlab", "--hosts", "4", "--rate", "1gbit", "--", "/bin/scalemark",
                  "sweep", "out/links.plan.json", "--retry_failed", "--output", "out/links"));
  EXPECT_THAT(step_command(profile.steps[1], profile, place),
              ElementsAre("/bin/scalemark", "project", "out/links", "--ranks", "8", "--output",
                          "out/more.json"));
  EXPECT_THAT(step_command(profile.steps[2], profile, place),
              ElementsAre("/bin/scalemark", "scale", "--dry_run", "--json"));
  EXPECT_EQ(step_result(profile.steps[2], place.folder), "out/plan.plan.json");
}

TEST(StudyRun, WhatCannotRunHereIsSkippedWithTheReason) {
  StudyStep lab = step("lab", {"run"}), gpu = step("gpu", {"run"});
  lab.netlab = VirtualHosts{};
  lab.needs_root = gpu.needs_gpu = true;
  StudyPlace place = place_in("out");
  place.is_root = place.has_gpu = false;
  const auto states = planned_states(profile_of({lab, gpu, step("plain", {"run"})}), place);
  EXPECT_EQ(states[0].status, StepStatus::skipped);
  EXPECT_THAT(states[0].reason, HasSubstr("root"));
  EXPECT_EQ(states[1].status, StepStatus::skipped);
  EXPECT_THAT(states[1].reason, HasSubstr("GPU"));
  EXPECT_EQ(states[2].status, StepStatus::waiting);
}

/// A study whose step has run, and its record.
class StudyGoesOn : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(place_.folder / "one.json") << "{}";
    auto states = planned_states(profile_, place_);
    states[0].status = StepStatus::ok;
    states[0].seconds = 3;
    record_ = make_study_record({"name", "T", "P", "a cluster", {}, {profile_}}, profile_, "here",
                                states, {});
    record_.build.revision = "abc";
  }
  StepStatus again() const { return planned_states(profile_, place_, record_)[0].status; }

  TemporaryFolder folder_;
  StudyPlace place_ = place_in(folder_.path());
  StudyProfile profile_ = profile_of({step("one", {"run", "--seed", "1"})});
  StudyResult record_;
};

TEST_F(StudyGoesOn, AfterWhatIsDone) {
  EXPECT_EQ(again(), StepStatus::ok);
  EXPECT_EQ(planned_states(profile_, place_, record_)[0].seconds, 3);
}
TEST_F(StudyGoesOn, NotWithoutTheResult) {
  std::filesystem::remove(place_.folder / "one.json");
  EXPECT_EQ(again(), StepStatus::waiting);
}
TEST_F(StudyGoesOn, NotWithAnotherCommandOrBuild) {
  place_.revision = "other";
  EXPECT_EQ(again(), StepStatus::waiting);
  place_.revision = "abc";
  profile_.steps[0].words.back() = "2";
  EXPECT_EQ(again(), StepStatus::waiting);
}

TEST(StudyRun, TheCodeIsThatOfTheMostSevereStep) {
  std::vector<StepState> states(2);
  states[0].status = states[1].status = StepStatus::ok;
  EXPECT_EQ(code_of(states), ExitCode::ok);
  states[0].status = StepStatus::skipped;
  EXPECT_EQ(code_of(states), ExitCode::ok);
  states[1].status = StepStatus::skipped;
  EXPECT_EQ(code_of(states), ExitCode::environment);
  states[1].status = StepStatus::failed;
  for (const auto& [status, code] : {std::pair{5, ExitCode::timeout},
                                     {7, ExitCode::environment},
                                     {2, ExitCode::usage},
                                     {137, ExitCode::failed}}) {
    states[1].exit_code = status;
    EXPECT_EQ(code_of(states), code) << status;
  }
  states[1].status = StepStatus::interrupted;
  EXPECT_EQ(code_of(states), ExitCode::failed);
}

}  // namespace
}  // namespace scalemark::study_run_test

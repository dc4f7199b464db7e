// Each rule of runs: data that triggers it and data that does not, of one run and of several.
#include "analysis/diagnosis/rules.hpp"
#include "diagnosis_support.hpp"

namespace scalemark::diagnosis {
namespace {

using testing::HasSubstr;

std::vector<RunEvidence> all_of(const std::vector<Json>& runs) {
  std::vector<RunEvidence> evidence;
  for (const Json& run : runs) evidence.push_back(run_evidence(run));
  return evidence;
}

TEST(Straggler, IsNamedWithItsTimes) {
  const Json slow = with_straggler(made_run(3), 2, 0.205, "n7");
  const auto finding = found(slow, "straggler").value();
  EXPECT_EQ(finding.about, "resnet50 fp32 3 ranks x 8");
  EXPECT_EQ(finding.what.text(), "A straggler: rank 2 on n7 holds the others up.");
  EXPECT_EQ(finding.why.text(), "It computes 200.0 ms a step, the fastest rank 95.00 ms.");
  EXPECT_EQ(finding.sure, Certainty::hint);
  EXPECT_FALSE(found(made_run(3), "straggler"));
  EXPECT_FALSE(found(with_straggler(made_run(1), 0, 0.2, "n0"), "straggler"))
      << "one rank holds nobody up";
}

TEST(Straggler, OfSeveralRunsIsNamedOnce) {
  const Json slow = with_straggler(made_run(3), 2, 0.205, "n7");
  const auto findings = straggler_findings(all_of({slow, made_run(3), slow}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].why.text(), HasSubstr("; in 2 of 3 runs with several ranks."));
  EXPECT_EQ(findings[0].sure, Certainty::likely);
}

Json beside_others(Json run, double cpus) {
  run["noise"]["foreign"] = {{"host", "n0"}, {"cpus", cpus}, {"of_cpus", 2}, {"seconds", 9.0}};
  return run;
}

TEST(Straggler, BesideOtherProcessesIsANote) {
  const Json slow = with_straggler(made_run(3), 2, 0.205, "n7");
  const auto excused = found(beside_others(slow, 1.2), "straggler").value();
  EXPECT_EQ(excused.tone, Tone::note);
  EXPECT_EQ(excused.sure, Certainty::hint);
  EXPECT_EQ(excused.what.text(),
            "Rank 2 on n7 was slower than the others, beside other processes.");
  EXPECT_THAT(excused.why.text(), HasSubstr("Others used 1.200 CPUs meanwhile."));
  EXPECT_THAT(excused.tries, testing::ElementsAre(HasSubstr("--wait_for_idle")));
  EXPECT_EQ(found(beside_others(slow, 0.01), "straggler")->tone, Tone::bad)
      << "what every host has";
  const auto both = straggler_findings(all_of({beside_others(slow, 1.2), slow}));
  EXPECT_EQ(both.at(0).tone, Tone::bad) << "one of the runs was undisturbed";
}

TEST(Straggler, WhereEachRankIsItInTurnIsNoise) {
  const std::vector<Json> runs{with_straggler(made_run(2, "a"), 0, 0.13, "n0"), made_run(2, "b"),
                               with_straggler(made_run(2, "c"), 1, 0.13, "n0")};
  const auto findings = straggler_findings(all_of(runs));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].tone, Tone::note);
  EXPECT_EQ(findings[0].what.text(),
            "Ranks take turns at being slower than the others: noise, no straggler.");
  EXPECT_EQ(findings[0].why.text(), "Each of 2 ranks is it in some of 3 runs; rank 0 on n0 in 1.");
  std::vector<Json> one_more_often = runs;
  for (const char* id : {"e", "f"})
    one_more_often.push_back(with_straggler(made_run(2, id), 1, 0.13, "n0"));
  EXPECT_EQ(straggler_findings(all_of(one_more_often)).at(0).tone, Tone::bad) << "3 runs against 1";
  std::vector<Json> wider = runs;
  wider.push_back(made_run(3, "d"));
  EXPECT_EQ(straggler_findings(all_of(wider)).size(), 2U) << "the third rank is never slow";
}

TEST(Straggler, OfAnInferenceHasNoTimes) {
  const Json replicas =
      made_record("inference", "i",
                  {{"model", "m"},
                   {"world_size", 2},
                   {"ranks", Json::array({{{"rank", 1}, {"host", "n7"}, {"straggler", true}}})}});
  EXPECT_EQ(found(replicas, "straggler")->why.text(), "In 1 of 1 run with several ranks.");
}

TEST(PhaseRules, NameTheRunWhereItIsMost) {
  for (const std::string rule : {"input", "checkpoint"}) {
    Json slow = made_run(2, "slow"), worse = made_run(4, "worse");
    slow["phases"]["fractions"][rule] = 0.2;
    worse["phases"]["fractions"][rule] = 0.3;
    EXPECT_EQ(found(slow, rule)->why.text(), "20.0 % of a step.");
    const auto of_all = found(runs_findings(all_of({slow, worse, made_run()})), rule).value();
    EXPECT_EQ(of_all.why.text(), "30.0 % of a step; above 5 % in 2 of 3 runs.");
    EXPECT_EQ(of_all.about, "resnet50 fp32 4 ranks x 8");
    EXPECT_FALSE(found(made_run(), rule));
  }
}

TEST(Drift, IsThatOfTheWindows) {
  Json run = made_run();
  run["windows"] = {
      {"drift", {{"verdict", "slower"}, {"change", -0.12}, {"ci95", {-0.2, -0.05}}, {"p", 0.001}}}};
  EXPECT_EQ(found(run, "drift")->what.text(), "The run became slower while it went on.");
  EXPECT_THAT(found(run, "drift")->why.text(), HasSubstr("By -12.0 %"));
  run["windows"]["drift"]["verdict"] = "steady";
  EXPECT_FALSE(found(run, "drift"));
}

TEST(Diverged, IsThatOfTheLoss) {
  Json run = made_run();
  run["loss"] = {{"first", 7.0}, {"last", 60.0}, {"diverged", true}};
  EXPECT_EQ(found(run, "diverged")->why.text(), "From 7.000 to 60.00.");
  run["status"] = "failed";
  EXPECT_FALSE(found(run, "diverged")) << "a run that failed has no result to explain";
  EXPECT_FALSE(found(made_run(), "diverged"));
}

TEST(RunName, TellsWhatASweepSetBesides) {
  const Settings settings{{"overlap", "none"}, {"ranks", "2"}, {"model", "resnet50"}};
  EXPECT_EQ(run_name(made_run(), settings), "resnet50 fp32 2 ranks x 8, overlap=none");
}

}  // namespace
}  // namespace scalemark::diagnosis

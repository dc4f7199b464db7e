// Each rule of a curve: data that triggers it and data that does not.
#include "analysis/diagnosis/rules.hpp"
#include "diagnosis_support.hpp"

namespace scalemark::diagnosis {
namespace {

using testing::HasSubstr;
using testing::Not;

const Json kBase = made_point(1, 100);

Json curve_to(const Json& last, const Json& keys = Json::object(),
              const Json& settings = Json::object()) {
  return made_curve({kBase, last}, keys, settings);
}

TEST(Scales, IsSaidWhereTheIntervalShowsIt) {
  const auto good = found(curve_to(made_point(4, 388)), "scales").value();
  EXPECT_EQ(good.tone, Tone::good);
  EXPECT_EQ(good.sure, Certainty::sure);
  EXPECT_EQ(good.about, "resnet50 fp32 weak");
  EXPECT_EQ(found(curve_to(made_point(4, 388), Json::object(), {{"kernels", "torch"}}), "scales")
                .value()
                .about,
            "resnet50 fp32 weak, torch kernels");
  EXPECT_EQ(good.what.text(), "Scales to 4 ranks.");
  EXPECT_THAT(good.why.text(), HasSubstr("efficiency 97.0 %, 95 % interval 96.0 % to 98.0 %."));
  const auto in_process = curve_to(made_point(4, 388), {{"repeat_unit", "in_process"}});
  EXPECT_EQ(found(in_process, "scales")->sure, Certainty::likely);
  const auto bad = found(curve_to(made_point(4, 240)), "scales").value();
  EXPECT_EQ(bad.tone, Tone::bad);
  EXPECT_EQ(bad.what.text(), "Does not scale well to 4 ranks: 40.0 % of the ideal is lost.");
}

TEST(Scales, IsOpenWhereNoIntervalShowsIt) {
  const Json none = with_keys(made_point(4, 388), {{"efficiency_ci95", nullptr}});
  for (const Json& last : {made_point(4, 388, 0.2), made_point(4, 340, 0.2), none}) {
    const auto finding = found(curve_to(last), "scales").value();
    EXPECT_EQ(finding.tone, Tone::note);
    EXPECT_EQ(finding.sure, Certainty::hint);
    EXPECT_THAT(finding.what.text(), HasSubstr("neither shown nor excluded"));
  }
  EXPECT_FALSE(found(made_curve({kBase}), "scales")) << "one point is no curve";
  const Json unknown = with_keys(made_point(4, 388), {{"efficiency", nullptr}});
  EXPECT_FALSE(found(curve_to(unknown), "scales"));
}

TEST(Scales, AsksForABaselineOnlyWhereNothingElseIsKnown) {
  EXPECT_THAT(found(curve_to(made_point(4, 240)), "scales")->tries,
              testing::ElementsAre(HasSubstr("a baseline on the same ranks")));
  const Json known = with_keys(made_point(4, 240), {{"baseline_throughput", 380.0}});
  EXPECT_TRUE(found(curve_to(known), "scales")->tries.empty());
}

Json exposed_point(double throughput, const Json& interval) {
  return with_keys(
      made_point(4, throughput),
      {{"baseline_throughput", 380.0}, {"exposed_seconds", 0.037}, {"exposed_ci95", interval}});
}

TEST(Link, IsTheCommunicationThatIsNotHidden) {
  const Json last = exposed_point(240, {0.03, 0.04});
  const auto finding = found(curve_to(last), "link").value();
  EXPECT_EQ(finding.tone, Tone::bad);
  EXPECT_EQ(finding.sure, Certainty::sure);
  EXPECT_EQ(
      finding.why.text(),
      "Exposed communication: 37.00 ms a step (95 % interval 30.00 ms to 40.00 ms), 36.8 % of "
      "it, at 4 ranks.");
  EXPECT_THAT(finding.tries.front(), HasSubstr("--wire_dtype bf16"));
  const auto other =
      found(curve_to(last, Json::object(), {{"wire_dtype", "bf16"}, {"overlap", "none"}}), "link");
  EXPECT_THAT(other->tries.front(), HasSubstr("--overlap backward"));
  EXPECT_THAT(other->tries, Not(testing::Contains(HasSubstr("--wire_dtype"))));
}

TEST(Link, IsAHintWhereItMayBeNothing) {
  const auto open = found(curve_to(exposed_point(240, {-0.01, 0.08})), "link").value();
  EXPECT_EQ(open.sure, Certainty::hint);
  EXPECT_EQ(open.tone, Tone::note);
  EXPECT_EQ(open.what.text(), "The link: ranks may wait for gradients; the interval includes 0.");
  EXPECT_FALSE(found(curve_to(exposed_point(375, {0.03, 0.04})), "link")) << "1 % of a step";
  EXPECT_FALSE(found(curve_to(made_point(4, 240)), "link")) << "nobody measured it";
}

Json collective(const char* name, double seconds, const Json& interval) {
  return {{"collective", name}, {"exposed_seconds", seconds}, {"exposed_ci95", interval}};
}

TEST(Link, NamesTheCollectiveThatIsTheLimit) {
  const Json settings{{"shard", "parameters"}};
  Json last = exposed_point(240, {0.03, 0.04});
  last["exposed_collectives"] = {collective("reduce_scatter", 0.008, {0.006, 0.01}),
                                 collective("allgather", 0.027, {0.02, 0.034})};
  const auto gather = found(curve_to(last, Json::object(), settings), "link").value();
  EXPECT_EQ(gather.what.text(), "The link: ranks wait for the all-gather of weights.");
  EXPECT_THAT(gather.why.text(),
              HasSubstr("Of it, as steps without it tell, the reduce-scatter of gradients adds "
                        "8.000 ms (6.000 ms to 10.00 ms), the all-gather of weights adds 27.00 ms "
                        "(20.00 ms to 34.00 ms)."));
  EXPECT_THAT(gather.tries.front(), HasSubstr("--shard gradients"));
  last["exposed_collectives"][1]["exposed_ci95"] = {0.009, 0.045};
  const auto open = found(curve_to(last, Json::object(), settings), "link").value();
  EXPECT_EQ(open.what.text(), "The link: ranks wait for gradients and weights.");
  EXPECT_THAT(open.why.text(), HasSubstr("none is shown to add more than another"));
}

TEST(Link, IsTheWaitingOfARunWithoutABaseline) {
  const auto last = [](double seconds) {
    return with_keys(made_point(2, 150),
                     {{"exposed_seconds", seconds}, {"exposed_ci95", {0.019, 0.021}}});
  };
  EXPECT_TRUE(found(diagnose_with(curve_to(last(0.02)), {made_run()}), "link"));
  EXPECT_FALSE(found(diagnose_with(curve_to(last(0.002)), {made_run()}), "link"));
  EXPECT_FALSE(found(diagnose(curve_to(last(0.02)), {run_evidence(made_run())}), "link"))
      << "a run that is none of the curve's tells nothing of it";
}

TEST(SmallBatch, IsCommunicationThatComputingCannotHide) {
  const Json curve = curve_to(with_keys(made_point(2, 100), {{"baseline_throughput", 190.0}}));
  Json longer = made_run(), shorter = made_run();
  longer["communication"] = {{"total_seconds", 0.08}, {"exposed_seconds", 0.05}};
  shorter["communication"] = {{"total_seconds", 0.03}, {"exposed_seconds", 0.02}};
  const auto finding = found(diagnose_with(curve, {longer}), "small_batch").value();
  EXPECT_THAT(finding.why.text(),
              HasSubstr("80.00 ms of a step of 100.0 ms, with 8 samples per rank"));
  EXPECT_FALSE(found(diagnose_with(curve, {shorter}), "small_batch"));
}

TEST(SmallBatch, IsReadFromTheRunOfMiddleThroughput) {
  const Json curve = curve_to(with_keys(made_point(2, 100), {{"baseline_throughput", 190.0}}));
  std::vector<Json> runs;
  for (const double total : {0.09, 0.07, 0.08}) {
    Json run = made_run(2, "run" + std::to_string(total));
    run["throughput"]["mean"] = 1000 * total;
    run["communication"] = {{"total_seconds", total}, {"exposed_seconds", 0.05}};
    runs.push_back(run);
  }
  const auto finding = found(diagnose_with(curve, runs), "small_batch").value();
  EXPECT_EQ(finding.why.quotes().front().record, runs[2]["id"]);
  EXPECT_EQ(finding.why.quotes().front().pointer, "/communication/total_seconds");
}

TEST(Host, IsWhatRanksLoseWithoutCommunicationInWeakScaling) {
  const auto last = [](double baseline) {
    return with_keys(made_point(4, 240), {{"baseline_throughput", baseline}});
  };
  const auto finding = found(curve_to(last(250)), "host").value();
  EXPECT_THAT(finding.why.text(), HasSubstr("62.5 % of what 1 rank alone would come to"));
  EXPECT_EQ(finding.sure, Certainty::likely);
  EXPECT_FALSE(found(curve_to(last(392)), "host"));
  const Json strong = curve_to(last(250), {{"scaling", "strong"}});
  EXPECT_FALSE(found(strong, "host"));
  EXPECT_TRUE(found(strong, "small_share"));
}

TEST(Baseline, ThatIsSlowerThanTheMeasurementIsNoise) {
  const auto last = [](double baseline) {
    return with_keys(made_point(4, 395.6),
                     {{"baseline_throughput", baseline}, {"exposed_seconds", -0.272}});
  };
  for (const char* scaling : {"weak", "strong"}) {
    const auto findings = diagnose(curve_to(last(332), {{"scaling", scaling}}));
    const auto noise = found(findings, "baseline").value();
    EXPECT_EQ(noise.tone, Tone::note);
    EXPECT_EQ(noise.what.text(),
              "The baseline at 4 ranks is slower than the measurement: noise or foreign load.");
    EXPECT_EQ(noise.why.text(), "Without communication 332.0, with it 395.6 images/sec.");
    for (const char* denied : {"host", "small_share", "link"})
      EXPECT_FALSE(found(findings, denied))
          << denied << ": 83 % without, 98.9 % with communication";
  }
  EXPECT_FALSE(found(curve_to(last(390)), "baseline")) << "1 % is not worth a word";
  EXPECT_FALSE(found(curve_to(made_point(4, 388)), "baseline")) << "nobody measured one";
}

TEST(SmallShare, IsOfStrongScalingAlone) {
  const Json last = with_keys(made_point(4, 240), {{"baseline_throughput", 250.0}});
  EXPECT_FALSE(found(curve_to(last), "small_share"));
  const Json kept = with_keys(made_point(4, 240), {{"baseline_throughput", 392.0}});
  EXPECT_FALSE(found(curve_to(kept, {{"scaling", "strong"}}), "small_share"));
}

TEST(Dip, IsThatOfTheRecord) {
  Json low =
      with_keys(made_point(2, 120), {{"trend", {{"dip", true}, {"expected_efficiency", 0.95}}}});
  const auto curve = [&] { return made_curve({kBase, low, made_point(4, 380)}); };
  EXPECT_EQ(found(curve(), "dip")->what.text(),
            "A dip at 2 ranks: worse than both neighbours suggest.");
  low["trend"]["dip"] = false;
  EXPECT_FALSE(found(curve(), "dip"));
}

TEST(BetterThanIdeal, IsSaidWhereTheIntervalIsAbove) {
  EXPECT_TRUE(found(curve_to(made_point(2, 230)), "better_than_ideal"));
  EXPECT_FALSE(found(curve_to(made_point(2, 202)), "better_than_ideal"));
  EXPECT_FALSE(found(curve_to(made_point(2, 230, 0.3)), "better_than_ideal"));
}

TEST(Noise, IsAWideInterval) {
  EXPECT_THAT(found(curve_to(made_point(2, 190, 0.2)), "noise")->why.text(),
              HasSubstr("At 2 ranks 190.0 images/sec"));
  EXPECT_FALSE(found(curve_to(made_point(2, 190, 0.05)), "noise"));
}

TEST(StragglerOfACurve, IsAmongTheRunsOfTheLargestPoint) {
  const Json curve = curve_to(made_point(2, 150));
  const auto slow = with_straggler(made_run(), 1, 0.13, "n0");
  EXPECT_EQ(found(diagnose_with(curve, {slow}), "straggler")->about, "resnet50 fp32 weak");
  EXPECT_FALSE(found(diagnose_with(curve, {made_run()}), "straggler"));
}

TEST(CurveRules, SayTheVerdictFirstAndThenItsReasons) {
  const auto findings =
      diagnose_with(curve_to(with_keys(made_point(2, 100), {{"baseline_throughput", 150.0}})),
                    {with_straggler(made_run(), 1, 0.13, "n0")});
  std::vector<std::string> rules;
  for (const Finding& finding : findings) rules.push_back(finding.rule);
  EXPECT_THAT(rules, testing::ElementsAre("scales", "link", "host", "straggler"));
}

}  // namespace
}  // namespace scalemark::diagnosis

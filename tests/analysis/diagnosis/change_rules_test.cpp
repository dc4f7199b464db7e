// What changed between two sets: shares of a step that launches agree on, and those they do not.
#include <algorithm>
#include <fstream>

#include "analysis/compare/compare.hpp"
#include "analysis/compare/compare_support.hpp"
#include "analysis/diagnosis/rules.hpp"
#include "diagnosis_support.hpp"
#include "result/records.hpp"

namespace scalemark::diagnosis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Launches of two ranks that spend these shares of a step on what `rule` looks at.
ResultSet spending(const std::string& label, const std::string& rule,
                   const std::vector<double>& shares, int ranks = 2,
                   const std::string& method = "") {
  ResultSet set = test::rates(label, std::vector<double>(shares.size(), 100), ranks);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    set.launches[i].id = label + std::to_string(i);
    set.launches[i].shares[rule] = {shares[i], set.launches[i].id, "/communication/exposed_seconds",
                                    method};
  }
  return set;
}

Findings changes_of(const std::vector<ResultSet>& sets) {
  return change_findings(sides_evidence(sets, match_sets(sets, {})));
}

const std::vector<double> kLow{0.03, 0.031, 0.029, 0.03}, kHigh{0.11, 0.112, 0.109, 0.11};

TEST(Changes, NameWhatTakesMoreOfAStep) {
  const auto findings = changes_of({spending("old", "link", kLow), spending("new", "link", kHigh)});
  ASSERT_EQ(findings.size(), 1U);
  const Finding& grew = findings[0];
  EXPECT_EQ(grew.rule, "link");
  EXPECT_EQ(grew.tone, Tone::bad);
  EXPECT_EQ(grew.sure, Certainty::likely);
  EXPECT_EQ(grew.about, "new against old");
  EXPECT_EQ(grew.what.text(),
            "Exposed communication grew from 3.0 % to 11.0 % of a step at 2 ranks: link.");
  EXPECT_EQ(grew.why.text(), "Medians of 4 launches of old and of 4 launches of new.");
  EXPECT_EQ(grew.what.quotes()[1].record, "new0") << "the middle one";
  const auto back = changes_of({spending("old", "link", kHigh), spending("new", "link", kLow)});
  EXPECT_EQ(back[0].tone, Tone::good);
  EXPECT_THAT(back[0].what.text(), HasSubstr("fell from 11.0 % to 3.0 %"));
}

TEST(Changes, AreAHintWhereLaunchesOverlapOrAreFew) {
  const std::vector<double> wide{0.02, 0.10, 0.11, 0.12};
  const auto overlap = changes_of({spending("a", "input", kLow), spending("b", "input", wide)});
  ASSERT_EQ(overlap.size(), 1U);
  EXPECT_EQ(overlap[0].sure, Certainty::hint);
  const auto few = changes_of({spending("a", "input", {0.03}), spending("b", "input", {0.11})});
  ASSERT_EQ(few.size(), 1U);
  EXPECT_EQ(few[0].sure, Certainty::hint);
}

TEST(Changes, AreSilentBelowWhatIsWorthAWord) {
  const std::vector<double> little{0.035, 0.036, 0.034, 0.035};
  EXPECT_TRUE(changes_of({spending("a", "link", kLow), spending("b", "link", little)}).empty())
      << "half a percent of a step";
  const std::vector<double> some{0.05, 0.051, 0.049, 0.05};
  EXPECT_EQ(changes_of({spending("a", "link", kLow), spending("b", "link", some)}).size(), 1U)
      << "two percent, on which all launches agree";
  EXPECT_TRUE(changes_of({spending("a", "link", {0.03}), spending("b", "link", {0.05})}).empty())
      << "two percent of one launch each";
}

TEST(Changes, CompareOnlyWhatWasMeasuredAlike) {
  const auto waited = spending("a", "link", kLow, 2, "wait");
  const auto baseline = spending("b", "link", kHigh, 2, "baseline");
  EXPECT_TRUE(changes_of({waited, baseline}).empty());
  ResultSet lacking = spending("b", "link", kHigh);
  lacking.launches[1].shares.clear();
  EXPECT_TRUE(changes_of({spending("a", "link", kLow), lacking}).empty());
}

TEST(Changes, TellThePointWhereItIsMost) {
  const auto two_points = [](const std::string& label, const std::vector<double>& at_four) {
    ResultSet set = spending(label, "link", kLow);
    for (const MeasuredLaunch& launch : spending(label + "4", "link", at_four, 4).launches)
      set.launches.push_back(launch);
    return set;
  };
  std::vector<double> most = kHigh;
  for (double& share : most) share += 0.3;
  ResultSet fresh = two_points("new", most);
  for (std::size_t i = 0; i < kHigh.size(); ++i) fresh.launches[i].shares["link"].share = kHigh[i];
  const auto findings = changes_of({two_points("old", kLow), fresh});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].what.text(), HasSubstr("to 41.0 % of a step at 4 ranks"));
}

TEST(Changes, NameAStragglerThatCameOrWent) {
  const std::vector<double> none{0, 0, 0, 0}, all{1, 1, 1, 1}, one{0, 1, 0, 0};
  const auto came = changes_of({spending("a", "straggler", none), spending("b", "straggler", all)});
  ASSERT_EQ(came.size(), 1U);
  EXPECT_EQ(came[0].what.text(), "A rank began to hold the others up at 2 ranks: straggler.");
  EXPECT_EQ(came[0].why.text(), "In 0 of 4 launches of a, in 4 of 4 launches of b.");
  EXPECT_EQ(changes_of({spending("a", "straggler", all), spending("b", "straggler", none)})[0].tone,
            Tone::good);
  EXPECT_TRUE(
      changes_of({spending("a", "straggler", none), spending("b", "straggler", one)}).empty());
}

TEST(Changes, StandInTheRecordOfAComparison) {
  const std::vector<ResultSet> sets{spending("old", "link", kLow), spending("new", "link", kHigh)};
  const Matching matching = match_sets(sets, {});
  const Comparison record = make_comparison(sets, matching, {}, {compare_sets(sets, matching, {})});
  std::vector<std::string> rules;
  for (const record::Finding& finding : record.findings) rules.push_back(finding.rule);
  EXPECT_THAT(rules, testing::Contains("link"));
}

std::vector<MeasuredLaunch> launches_of_published(const std::string& name) {
  const std::string path = SCALEMARK_SOURCE_DIR "/results/baselines/" + name;
  return measured_launches(read_record(path), path);
}

TEST(Shares, OfACurveAreThoseAgainstItsBaseline) {
  const auto launches = launches_of_published("resnet50-1gbit-none.json");
  ASSERT_GT(launches.size(), 1U);
  EXPECT_FALSE(launches.front().shares.contains("link")) << "one rank exchanges nothing";
  const StepShare& share = launches.back().shares.at("link");
  const Json record =
      read_record(SCALEMARK_SOURCE_DIR "/results/baselines/resnet50-1gbit-none.json");
  const Json& without = record.at(Json::json_pointer(share.pointer));
  EXPECT_EQ(without, *launches.back().baseline_throughput);
  EXPECT_NEAR(share.share,
              1 - record["points"].back()["throughput"].get<double>() / without.get<double>(),
              1e-12);
}

TEST(Shares, OfARunAreThoseOfItsStep) {
  const auto launches = launches_of_published("smallnet-converges.json");
  ASSERT_EQ(launches.size(), 1U);
  const Json record =
      read_record(SCALEMARK_SOURCE_DIR "/results/baselines/smallnet-converges.json");
  for (const auto& [rule, share] : launches[0].shares) {
    EXPECT_EQ(share.record, record["id"]);
    EXPECT_TRUE(record.contains(Json::json_pointer(share.pointer))) << rule;
  }
  EXPECT_EQ(launches[0].shares.contains("straggler"), record["ranks"].size() > 1);
}

}  // namespace
}  // namespace scalemark::diagnosis

// Each rule of records that are no curves and no runs: data that triggers it and data that does
// not.
#include "analysis/diagnosis/rules.hpp"
#include "diagnosis_support.hpp"

namespace scalemark::diagnosis {
namespace {

using testing::HasSubstr;

Json server_record(const Json& holds, const std::string& ended_by = "all_served") {
  return made_record("inference", "i",
                     {{"model", "resnet50"},
                      {"latency_seconds", {{"p50", 0.01}, {"p99", 0.02}}},
                      {"server",
                       {{"arrival_rate", 100.0},
                        {"latency_quantile", 0.99},
                        {"latency_at_quantile_seconds", 0.02},
                        {"latency_bound_seconds", 0.03},
                        {"ended_by", ended_by},
                        {"holds", holds}}}});
}

TEST(Server, HoldsItsBoundOrDoesNot) {
  EXPECT_EQ(found(server_record(true), "server")->tone, Tone::good);
  const auto bad = found(server_record(false, "overload"), "server").value();
  EXPECT_EQ(bad.tone, Tone::bad);
  EXPECT_THAT(bad.why.text(), HasSubstr("came to 20.00 ms, the bound is 30.00 ms. The queue grew"));
  EXPECT_FALSE(found(server_record(nullptr), "server"));
}

TEST(Tail, IsThreeTimesTheMedian) {
  const auto latency = [](double p99) {
    return made_record("inference", "i", {{"latency_seconds", {{"p50", 0.01}, {"p99", p99}}}});
  };
  EXPECT_TRUE(found(latency(0.05), "tail"));
  EXPECT_FALSE(found(latency(0.02), "tail"));
}

TEST(Neighbours, LoseSomethingOrNothing) {
  const auto jobs = [](int most, double efficiency) {
    const auto point = [](int n, double of) {
      return Json{{"instances", n}, {"efficiency", of}, {"cumulative", {{"mean", 10.0 * n * of}}}};
    };
    return made_record("instances", "i",
                       {{"job", "run"},
                        {"model", "resnet50"},
                        {"unit", "images/sec"},
                        {"points", {point(1, 1.0), point(most, efficiency)}}});
  };
  const auto bad = found(jobs(2, 0.8), "neighbours").value();
  EXPECT_EQ(bad.tone, Tone::bad);
  EXPECT_EQ(bad.what.text(), "Neighbours: 2 jobs side by side lose 20.0 %.");
  EXPECT_EQ(found(jobs(2, 0.99), "neighbours")->tone, Tone::good);
  EXPECT_FALSE(found(jobs(1, 0.8), "neighbours")) << "a job alone has no neighbour";
}

TEST(Compared, TellsThePointThatDiffersMost) {
  const auto comparison = [](const std::string& verdict) {
    return made_record("comparison", "c",
                       {{"base", "a"},
                        {"points", Json::array({{{"set", "b"},
                                                 {"ranks", 2},
                                                 {"difference_percent", -12.0},
                                                 {"interval_percent", {-13, -11}},
                                                 {"p_adjusted", 0.01},
                                                 {"repeats", 3},
                                                 {"repeats_needed", 5},
                                                 {"verdict", verdict}}})}});
  };
  const auto slower = found(comparison("slower"), "compared").value();
  EXPECT_EQ(slower.what.text(), "b is slower at 1 of 1 points.");
  EXPECT_EQ(slower.about, "b against a");
  EXPECT_EQ(found(comparison("faster"), "compared")->tone, Tone::good);
  EXPECT_THAT(found(comparison("too few launches"), "compared")->why.text(),
              HasSubstr("5 are needed"));
  EXPECT_FALSE(found(comparison("no difference shown"), "compared"));
}

TEST(Gate, HasThreeVerdicts) {
  const auto tone = [](const Json& verdict) {
    const auto finding = found(
        made_record("verdict", "v", {{"verdict", verdict}, {"slowdown_percent", 1.0}}), "gate");
    return finding ? std::optional(finding->tone) : std::nullopt;
  };
  EXPECT_EQ(tone("regressed"), Tone::bad);
  EXPECT_EQ(tone("pass"), Tone::good);
  EXPECT_EQ(tone("inconclusive"), Tone::note);
  EXPECT_EQ(tone(nullptr), std::nullopt);
}

TEST(History, IsAChangeOfLevel) {
  Json record = made_record(
      "history", "h",
      {{"changes",
        Json::array({{{"kind", "step"}, {"at", "c6"}, {"change_percent", -15.0}, {"p", 0.001}}})}});
  EXPECT_EQ(found(record, "history")->what.text(), "History: a step at c6.");
  EXPECT_EQ(found(record, "history")->tone, Tone::bad);
  record["changes"][0]["point"] = "ranks 2";
  EXPECT_EQ(found(record, "history")->what.text(), "History: a step at c6 of ranks 2.");
  record["changes"] = Json::array();
  record["newest"] = {{"verdict", "pass"}, {"set", "c9"}, {"slowdown_percent", 0.1}, {"p", 0.4}};
  EXPECT_FALSE(found(record, "history"));
  record["newest"]["verdict"] = "regressed";
  EXPECT_EQ(found(record, "history")->what.text(), "History: the newest set, c9, is slower.");
  EXPECT_EQ(found(record, "history")->tone, Tone::bad);
}

TEST(Projected, HeldOrMissed) {
  const auto errors = [](int points, int inside) {
    return made_record(
        "projection", "p",
        {{"curve", {{"model", "resnet50"}}},
         {"errors", {{"points", points}, {"in_band", inside}, {"model_percent", 4.0}}}});
  };
  EXPECT_EQ(found(errors(2, 2), "projected")->tone, Tone::note);
  EXPECT_EQ(found(errors(2, 1), "projected")->tone, Tone::bad);
  EXPECT_FALSE(found(errors(0, 0), "projected"));
}

TEST(Doubt, IsWhatARecordsOwnWarningsAddToItsEffects) {
  const Json point{{"set", "new"},        {"verdict", "slower"},
                   {"ranks", 2},          {"difference_percent", -3},
                   {"p_adjusted", 0.001}, {"repeats", 8},
                   {"repeats_needed", 3}, {"interval_percent", {-4, -2}}};
  const Json few = with_keys(point, {{"verdict", "too few launches"}});
  const std::vector<std::pair<Json, const char*>> records{
      {made_record("comparison", "c", {{"base", "old"}, {"points", {point}}}), "compared"},
      {made_record("verdict", "v", {{"verdict", "regressed"}, {"slowdown_percent", 3}}), "gate"},
      {made_record("study", "s", {{"figures", {{{"name", "gain"}, {"verdict", "shown"}}}}}),
       "study"},
      {made_curve({made_point(1, 100), made_point(4, 388)}), "scales"}};
  for (const auto& [record, rule] : records) {
    EXPECT_EQ(found(record, rule)->sure, Certainty::sure) << rule;
    const auto doubted =
        found(with_keys(record, {{"warnings", Json::array({"other processes ran"})}}), rule);
    EXPECT_EQ(doubted->sure, Certainty::likely) << rule;
    EXPECT_THAT(doubted->because, HasSubstr("the record warns: other processes ran")) << rule;
  }
  const Json note = made_record(
      "comparison", "c", {{"base", "old"}, {"points", {few}}, {"warnings", Json::array({"busy"})}});
  EXPECT_EQ(found(note, "compared")->sure, Certainty::sure) << "too few launches are too few";
}

Json made_study(const std::vector<Json>& verdicts, const std::string& evidence = "effect") {
  Json figures = Json::array();
  for (const Json& verdict : verdicts)
    figures.push_back({{"name", "gain " + std::to_string(figures.size())}, {"verdict", verdict}});
  return made_record(
      "study", "s",
      {{"study", "links"}, {"title", "Links"}, {"evidence", evidence}, {"figures", figures}});
}

TEST(Study, ShowsTheEffectOrNot) {
  const auto shown = found(made_study({"shown", "shown", nullptr}), "study").value();
  EXPECT_EQ(shown.tone, Tone::good);
  EXPECT_EQ(shown.sure, Certainty::sure);
  EXPECT_THAT(shown.why.text(), HasSubstr("2 of 2 figures"));
  EXPECT_EQ(shown.because, "the effect itself, at this size");
  const auto open = found(made_study({"shown", "not shown"}), "study").value();
  EXPECT_EQ(open.tone, Tone::note);
  EXPECT_THAT(open.why.text(), HasSubstr("; gain 1: not shown."));
  EXPECT_EQ(found(made_study({"opposite"}), "study")->tone, Tone::bad);
  EXPECT_FALSE(found(made_study({nullptr}), "study"));
}

TEST(Study, OfAStandInIsNeverSure) {
  const auto shown = found(made_study({"shown"}, "stand_in"), "study").value();
  EXPECT_EQ(shown.tone, Tone::note);
  EXPECT_EQ(shown.sure, Certainty::hint);
  EXPECT_EQ(shown.what.text(), "The published direction shows, of a stand-in: Links.");
  EXPECT_EQ(shown.because, "a stand-in, at this size");
}

Json failed_checks(const std::vector<std::pair<std::string, std::string>>& checks) {
  Json list = Json::array();
  for (const auto& [host, message] : checks)
    list.push_back({{"status", "fail"}, {"host", host}, {"message", message}});
  return made_record("preflight", "p", {{"checks", list}});
}

TEST(Preflight, NamesTheHosts) {
  const auto one = found(failed_checks({{"n3", "slow"}}), "preflight").value();
  EXPECT_EQ(one.what.text(), "Preflight failed: 1 check on n3.");
  EXPECT_EQ(one.tone, Tone::bad);
  EXPECT_THAT(one.tries, testing::ElementsAre(HasSubstr("mend or leave out")));
  Json warned = failed_checks({{"n3", "slow"}});
  warned["checks"][0]["status"] = "warn";
  EXPECT_FALSE(found(warned, "preflight"));
}

TEST(Preflight, LeadsWithTheNodeThatFailsMost) {
  const auto worst =
      found(failed_checks({{"n0", "once"}, {"n0 - n1", "way"}, {"n2", "first"}, {"n2", "second"}}),
            "preflight")
          .value();
  EXPECT_EQ(worst.what.text(), "Preflight failed: 4 checks on n2, n0 between n0 - n1.");
  EXPECT_EQ(worst.why.text(), "first.");
}

TEST(Preflight, APairIsNoNode) {
  const auto pair = found(failed_checks({{"n0 - n1", "way"}}), "preflight").value();
  EXPECT_EQ(pair.what.text(), "Preflight failed: 1 check between n0 - n1.");
  EXPECT_THAT(pair.tries, testing::ElementsAre(HasSubstr("the way between these two")));
}

TEST(Preflight, BesideOtherProcessesIsANote) {
  const std::string busy = "other processes used 1.9 of 2 CPUs of n1 meanwhile; n1: slow";
  const auto all = found(failed_checks({{"n1", busy}}), "preflight").value();
  EXPECT_EQ(all.tone, Tone::note);
  EXPECT_EQ(all.sure, Certainty::hint);
  EXPECT_THAT(all.tries, testing::ElementsAre(HasSubstr("measure again")));
  EXPECT_EQ(found(failed_checks({{"n1", busy}, {"n2", "slow"}}), "preflight")->tone, Tone::bad);
}

}  // namespace
}  // namespace scalemark::diagnosis

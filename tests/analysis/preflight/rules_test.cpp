// Rules against hand-made measurements: what passes, what fails and who is named.
#include "analysis/preflight/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "record/committed.hpp"
#include "record/schema.hpp"
#include "record/write.hpp"
#include "result/preflight_support.hpp"

namespace scalemark::rules_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<PreflightRule> rules(const std::string& list) {
  return parse_preflight_rules(R"({"rules": [)" + list + "]}", "r.json");
}

std::string refusal(const std::string& text) {
  try {
    parse_preflight_rules(text, "r.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

/// A rate of every rank, "rank i on n<i>".
std::vector<PreflightValue> rates(const std::vector<double>& numbers, bool higher = true) {
  std::vector<PreflightValue> values;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    values.push_back({"gemm.fp32", "flops", "FLOP/s", higher, numbers[i], static_cast<int>(i),
                      "n" + std::to_string(i), ""});
  return values;
}

const std::string kRelative =
    R"({"check": "gemm.*", "statistic": "flops", "relative_to_median": 0.75, "level": "fail"})";

TEST(PreflightRules, OfTwoRanksTheSlowerIsMeasuredByTheFaster) {
  const auto results = evaluate(rules(kRelative), rates({1e11, 5e10}));
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status, CheckStatus::fail);
  EXPECT_EQ(results[0].rank, 1);
  EXPECT_EQ(results[0].host, "n1");
  EXPECT_EQ(results[0].value, 0.5);
  EXPECT_THAT(results[0].message, AllOf(HasSubstr("rank 1 on n1"), HasSubstr("50 GFLOP/s"),
                                        HasSubstr("0.50 of the better rank")));
  EXPECT_EQ(evaluate(rules(kRelative), rates({1e11, 7.5e10}))[0].status, CheckStatus::pass);
}

TEST(PreflightRules, OfMoreRanksTheMedianCounts) {
  const auto results = evaluate(rules(kRelative), rates({100, 96, 70, 98, 74}));
  ASSERT_EQ(results.size(), 1u);  // 74 / 96 is enough, 70 / 96 is not
  EXPECT_EQ(results[0].rank, 2);
}

TEST(PreflightRules, OfATimeLessIsBetter) {
  const auto results = evaluate(rules(kRelative), rates({1e-3, 2e-3}, false));
  EXPECT_EQ(results[0].status, CheckStatus::fail);
  EXPECT_EQ(results[0].rank, 1);
  EXPECT_EQ(results[0].value, 0.5);
}

TEST(PreflightRules, LimitsTheirLevelsAndTheNearestValue) {
  const auto results =
      evaluate(rules(R"({"check": "gemm.fp32", "statistic": "flops", "min": 3, "level": "warn"},
               {"check": "gemm.fp32", "statistic": "flops", "max": 5, "level": "fail"})"),
               rates({2, 4, 2.5}));
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].status, CheckStatus::warn);
  EXPECT_EQ(results[1].rank, 2);
  EXPECT_EQ(results[2].status, CheckStatus::pass);
  EXPECT_EQ(results[2].value, 4);
  EXPECT_EQ(verdict_of(results), CheckStatus::warn);
}

TEST(PreflightRules, WhatIsNotThereIsSkippedAndSaysSo) {
  auto values = rates({2});
  values.push_back({"host", "governor", "", true, "powersave", std::nullopt, "n0", ""});
  values.push_back({"host", "smt", "", true, nullptr, std::nullopt, "n0", ""});
  const auto results = evaluate(
      rules(kRelative + R"(, {"check": "gpu.*", "statistic": "events", "min": 1, "level": "fail"},
             {"check": "host", "statistic": "smt", "equals": false, "level": "fail"},
             {"check": "host", "statistic": "governor", "min": 1, "level": "fail"},
             {"check": "host", "statistic": "governor", "equals": "performance", "level": "warn"})"),
      values);
  ASSERT_EQ(results.size(), 5u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(results[i].status, CheckStatus::skip) << i;
    EXPECT_NE(results[i].message, "");
  }
  EXPECT_EQ(results[4].status, CheckStatus::warn);
  EXPECT_THAT(results[4].message, HasSubstr("powersave"));
}

TEST(PreflightRules, AFileThatIsWrongIsRefusedWithThePlace) {
  const std::string good = R"("check": "host", "statistic": "smt", "min": 1, "level": "fail")";
  EXPECT_EQ(refusal(R"({"rules": [{)" + good + "}]}"), "");
  for (const auto& [text, part] :
       {std::pair<std::string, std::string>{"[]", "rules file"},
        {"{}", "/rules is missing"},
        {R"({"rules": []})", "/rules"},
        {R"({"rules": [1]})", "/rules/0"},
        {R"({"rule": []})", "/rule"},
        {R"({"rules": [{)" + good + R"(, "max": 2}]})", "has 2"},
        {R"({"rules": [{"check": "host", "statistic": "smt", "level": "fail"}]})", "has 0"},
        {R"({"rules": [{"check": "gem.*", "statistic": "smt", "min": 1, "level": "fail"}]})",
         "no check is called"},
        {R"({"rules": [{"check": "gemm.*", "statistic": "flop", "min": 1, "level": "fail"}]})",
         "did you mean flops"},
        {R"({"rules": [{"check": "host", "statistic": "smt", "min": "1", "level": "fail"}]})",
         "number"},
        {R"({"rules": [{"check": "host", "statistic": "smt", "min": 1, "level": "error"}]})",
         "warn"},
        {R"({"rules": [{"statistic": "smt", "min": 1, "level": "fail"}]})",
         "/rules/0/check is missing"},
        {R"({"rules": [{)" + good + R"(, "statistics": 2}]})", "statistic"}})
    EXPECT_THAT(refusal(text), AllOf(HasSubstr("r.json"), HasSubstr(part))) << text;
}

PreflightResult judged(const std::vector<PreflightRank>& ranks,
                       const record::Collectives& collectives = test::preflight_collectives()) {
  PreflightFacts facts = test::preflight_facts(ranks.size());
  facts.collectives = collectives;
  PreflightResult record = make_preflight_record(test::preflight_context(), facts, ranks);
  apply_preflight_rules(record, ranks, parse_preflight_rules(default_preflight_rules(), "default"));
  return record;
}

/// The messages of checks that failed.
std::vector<std::string> failures(const PreflightResult& record) {
  std::vector<std::string> found;
  for (const record::Check& check : record.checks)
    if (check.status == CheckStatus::fail) found.push_back(check.name + ": " + check.message);
  return found;
}

TEST(PreflightRules, TheSchemaIsCommittedAsGenerated) {
  test::expect_committed(
      "preflight_rules",
      format_schema("Rules of scalemark preflight: limits that measured numbers must keep "
                    "(--rules FILE; --make_rules writes one)",
                    rules_file_fields()));
}

TEST(PreflightDefaults, PassOnRanksThatAreAlike) {
  const PreflightResult record = judged(test::preflight_ranks(4));
  EXPECT_EQ(record.verdict, CheckStatus::pass) << record_json(record)["checks"].dump(1);
}

TEST(PreflightDefaults, NameASlowRankInEveryPrecision) {
  auto ranks = test::preflight_ranks(2);
  record::GemmRates& gemm = *ranks[1].entry.gemm;
  for (record::GemmRate* rate : {&gemm.fp64, &gemm.fp32, &gemm.bf16, &gemm.fp16})
    rate->flops = 5e10;
  ranks[1].entry.noise_quantum->best_mean_seconds = 2e-3;
  const auto found = failures(judged(ranks));
  EXPECT_EQ(found.size(), 5u);
  for (const std::string& text : found) EXPECT_THAT(text, HasSubstr("rank 1 on node0"));
}

TEST(PreflightDefaults, FailOnWrongData) {
  record::Collectives collectives = test::preflight_collectives();
  collectives.rows[2].wrong_elements = 3;
  collectives.rows[2].first_wrong = std::string("rank 1: element 0 is 1, not 2");
  const auto found = failures(judged(test::preflight_ranks(2), collectives));
  EXPECT_EQ(found, std::vector<std::string>{
                       "collective.allreduce.mpi.1048576: rank 1: element 0 is 1, not 2"});
}

TEST(PreflightDefaults, WarnOfSharedCores) {
  auto ranks = test::preflight_ranks(2);
  ranks[1].report.affinity.cpus = {1, 2};
  const PreflightResult record = judged(ranks);
  EXPECT_EQ(record.verdict, CheckStatus::warn);
  EXPECT_EQ(record.ranks[1].binding.overlaps_with, std::vector<std::int64_t>{0});
  ASSERT_FALSE(record.warnings.empty());
  EXPECT_THAT(record.warnings[0], testing::StartsWith("binding "));
}

TEST(PreflightDefaults, MoreRanksThanCpusAreComparedWithoutBlame) {
  auto ranks = test::preflight_ranks(2);
  ranks[1].entry.gemm->fp32.flops = 5e10;
  for (auto& rank : ranks) rank.report.affinity.cpus = {0, 1};
  EXPECT_EQ(judged(ranks).verdict, CheckStatus::fail);
  for (auto& rank : ranks) rank.report.affinity.cpus = {0};
  const PreflightResult record = judged(ranks);
  EXPECT_EQ(record.verdict, CheckStatus::warn);
  EXPECT_THAT(record_json(record)["checks"].dump(), HasSubstr("2 ranks share its cores"));
}

TEST(MakeRules, LimitsLieTheMarginFromTheWorstRank) {
  auto ranks = test::preflight_ranks(2);
  ranks[1].entry.gemm->fp32.flops = 8e10;
  const auto values = preflight_values(judged(ranks));
  const Json file = make_preflight_rules(values, 0.25, "made");
  const auto made = parse_preflight_rules(file.dump(), "made");
  const auto limit = [&](const std::string& check, Bound bound) -> Json {
    for (const PreflightRule& rule : made)
      if (rule.check == check && rule.bound == bound) return rule.limit;
    return nullptr;
  };
  EXPECT_EQ(limit("gemm.fp32", Bound::min), 6e10);
  EXPECT_EQ(limit("gemm.fp64", Bound::min), 7.5e10);
  EXPECT_EQ(limit("noise_quantum", Bound::max), 1.25e-3);
  EXPECT_EQ(limit("collective.allreduce.mpi.1024", Bound::max), 1.25e-5);  // its time
  EXPECT_EQ(limit("collective.allreduce.mpi.1024", Bound::min), nullptr);
  EXPECT_DOUBLE_EQ(limit("collective.allreduce.scalemark.1048576", Bound::min).get<double>(),
                   0.75 * 1048576e3);
  EXPECT_EQ(verdict_of(evaluate(made, values)), CheckStatus::pass);
  for (PreflightRank& rank : ranks) rank.entry.gemm->fp32.flops = 5.9e10;
  const PreflightResult slower = judged(ranks);
  EXPECT_EQ(verdict_of(evaluate(made, preflight_values(slower))), CheckStatus::fail);
}

TEST(PreflightDefaults, AreTheOnesOfTheDocument) {
  const std::filesystem::path source = SCALEMARK_SOURCE_DIR;
  EXPECT_THAT(test::contents(source / "docs/preflight.md"),
              HasSubstr(std::string(default_preflight_rules())));
}

/// What the default rules do not let pass of these pairs.
std::vector<std::string> faults_of_pairs(const std::vector<record::HostPair>& pairs) {
  PreflightFacts facts = test::preflight_facts(2);
  facts.pairs = pairs;
  const PreflightResult record =
      make_preflight_record(test::preflight_context(), facts, test::preflight_ranks(2));
  std::vector<std::string> faults;
  for (const record::Check& result : evaluate(
           parse_preflight_rules(default_preflight_rules(), "default"), preflight_values(record)))
    if (result.name.starts_with("pair.") && result.status != CheckStatus::pass)
      faults.push_back(fmt::format("{} {}", result.name, result.message));
  return faults;
}

TEST(PreflightRules, NameTheHostWhoseLinkIsSlow) {
  EXPECT_EQ(faults_of_pairs(test::preflight_pairs(4)),
            std::vector<std::string>{
                "pair.host node3: 250 MB/s, 0.25 of the median of the hosts (1 GB/s)"});
}

TEST(PreflightRules, NameTheTwoHostsBetweenWhichALinkIsBad) {
  auto pairs = test::preflight_pairs(4);
  for (record::HostPair& pair : pairs) pair.bytes_per_second = 1e9;
  EXPECT_EQ(faults_of_pairs(pairs), std::vector<std::string>{});
  pairs[1].bytes_per_second = 1e8;  // of node0 and node2
  EXPECT_EQ(faults_of_pairs(pairs),
            std::vector<std::string>{"pair.link node0 - node2: 100 MB/s between them, 1 GB/s "
                                     "with others"});
}

}  // namespace
}  // namespace scalemark::rules_test

// Findings of a folder: what a record says itself, what older ones are diagnosed to say, and what
// several say together.
#include "analysis/diagnosis/diagnose.hpp"
#include "diagnosis_support.hpp"

namespace scalemark::diagnosis {
namespace {

Json findings_of(const std::vector<Json>& records) {
  Collection collection;
  for (const Json& record : records) collection.add(record);
  return collection.findings();
}

std::vector<std::string> rules_of(const Json& findings) {
  std::vector<std::string> rules;
  for (const Json& finding : findings) rules.push_back(finding.at("rule"));
  return rules;
}

Json made_of(Json curve, const std::string& run) {
  curve["points"].back()["repeats"].push_back({{"run", run}, {"baseline", false}});
  return curve;
}

TEST(CollectionOfRecords, DiagnosesAnOlderCurveWithItsRuns) {
  const Json curve = made_of(made_curve({made_point(1, 100), made_point(2, 150)}), "slow");
  Json slow = with_straggler(made_run(2, "slow"), 1, 0.13, "n0");
  const Json findings = findings_of({slow, curve});
  EXPECT_THAT(rules_of(findings), testing::ElementsAre("scales", "straggler"));
  for (const Json& finding : findings) EXPECT_EQ(finding["of"], "curve");
  EXPECT_EQ(findings[1]["numbers"][0]["record"], "slow");
}

TEST(CollectionOfRecords, TakesWhatARecordSaysAsItIs) {
  Json curve = made_curve({made_point(1, 100), made_point(2, 150)});
  curve["findings"] = {{{"rule", "noise"}, {"what", "its own"}}, 7};
  const Json findings = findings_of({curve});
  EXPECT_THAT(rules_of(findings), testing::ElementsAre("noise"));
  EXPECT_EQ(findings[0]["what"], "its own");
  curve["findings"] = nullptr;
  EXPECT_THAT(rules_of(findings_of({curve})), testing::ElementsAre("scales"));
}

TEST(CollectionOfRecords, NamesTheStragglerOfSeveralLoneRunsOnce) {
  const Json curve = made_of(made_curve({made_point(1, 100), made_point(2, 195)}), "c");
  std::vector<Json> records{curve};
  for (const char* id : {"a", "b", "c"})
    records.push_back(with_straggler(made_run(2, id), 1, 0.13, "n0"));
  const Json findings = findings_of(records);
  EXPECT_THAT(rules_of(findings), testing::ElementsAre("scales", "straggler", "straggler"));
  EXPECT_EQ(findings[1]["of"], "curve");
  EXPECT_EQ(findings[2]["of"], nullptr);
  EXPECT_THAT(findings[2]["why"].get<std::string>(), testing::HasSubstr("in 2 of 2 runs"))
      << "the run of the curve is not alone";
}

TEST(CollectionOfRecords, LeavesJobsToTheirInstances) {
  const Json slow = made_record("inference", "job",
                                {{"world_size", 2},
                                 {"latency_seconds", {{"p50", 0.01}, {"p99", 0.05}}},
                                 {"ranks", Json::array()}});
  EXPECT_THAT(rules_of(findings_of({slow})), testing::ElementsAre("tail"));
  const Json job{{"run", "job"}};
  const Json repeat{{"instances", Json::array({job})}};
  const Json instances = made_record(
      "instances", "i",
      {{"points", Json::array({{{"instances", 1}, {"repeats", Json::array({repeat})}}})},
       {"alone", Json::array()}});
  EXPECT_TRUE(findings_of({slow, instances}).empty());
}

TEST(CollectionOfRecords, EndsWithNoRecordsInNothing) {
  EXPECT_EQ(findings_of({}), Json::array());
  EXPECT_EQ(findings_of({Json("text"), Json::array(), nullptr}), Json::array());
}

}  // namespace
}  // namespace scalemark::diagnosis

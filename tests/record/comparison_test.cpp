// Comparisons, verdicts and histories as JSON: what is refused, and what older ones lack.
#include "record/comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "record/read.hpp"
#include "record/write.hpp"

namespace scalemark::comparison_record_test {
namespace {

Json record_at(const std::string& name) {
  std::ifstream file(SCALEMARK_SOURCE_DIR "/tests/record/files/" + name);
  return Json::parse(file);
}

/// Why a record with another value at `pointer` is refused.
template <typename T>
std::string refusal(const std::string& name, const char* pointer, const Json& value) {
  Json record = record_at(name);
  record.at(Json::json_pointer(pointer)) = value;
  try {
    record_from<T>(record);
  } catch (const RecordFault& fault) {
    return fault.what();
  }
  return "";
}

TEST(ComparisonRecord, RefusesWrongValuesWithTheirPlace) {
  const auto why = [](const char* pointer, const Json& value) {
    return refusal<Comparison>("comparison.json", pointer, value);
  };
  EXPECT_EQ(why("/reason", ""), "");
  EXPECT_EQ(why("/status", "failed"), R"(/status is "failed", not "ok")");
  EXPECT_EQ(why("/points/0/design", "twins"),
            R"(/points/0/design is "twins", not one of ["paired","two_sample"])");
  EXPECT_EQ(why("/points/0/p", 0), "/points/0/p is 0, not above 0");
  EXPECT_EQ(why("/points/0/repeats_needed", 4), "/points/0/repeats_needed is 4, not at least 5");
  EXPECT_EQ(why("/points/0/settings", Json::array()),
            "/points/0/settings is a list, not of type object");
  EXPECT_EQ(why("/points", Json::array()), "/points (a list) has a size of 0, not from 1 to any");
  EXPECT_EQ(why("/sets/1/records", {1}), "/sets/1/records/0 is 1, not of type string");
}

TEST(VerdictRecord, RefusesWrongValuesWithTheirPlace) {
  const auto why = [](const char* pointer, const Json& value) {
    return refusal<Verdict>("verdict.json", pointer, value);
  };
  EXPECT_EQ(why("/verdict", "more pairs"),
            R"(/verdict is "more pairs", not one of ["regressed","pass","inconclusive",null])");
  EXPECT_EQ(why("/exit_code", 2), "/exit_code is 2, not one of [0,1,3,null]");
  EXPECT_EQ(why("/design/mode", 1),
            R"(/design/mode is 1, not one of ["sequential pairs","pairs","samples"])");
  EXPECT_EQ(why("/design/looks", Json::array()),
            "/design/looks (a list) has a size of 0, not from 1 to any");
  EXPECT_EQ(why("/sets", Json::array()), "/sets (a list) has a size of 0, not from 2 to 2");
  EXPECT_EQ(why("/points/0/regressed", nullptr),
            "/points/0/regressed is null, not of type boolean");
}

TEST(VerdictRecord, OfAGateWithoutOneSaysWhy) {
  Verdict none;
  none.status = Status::failed;
  none.reason = "killed";
  const Json json = record_json(none, "the gate came to no verdict: killed");
  EXPECT_TRUE(json.at("design").is_null());
  for (const char* key : {"verdict", "points", "sets", "launches", "varied"})
    EXPECT_EQ(json["unavailable"].value(key, ""), "the gate came to no verdict: killed") << key;
}

TEST(HistoryRecord, RefusesWrongValuesWithTheirPlace) {
  const auto why = [](const char* pointer, const Json& value) {
    return refusal<HistoryResult>("history.json", pointer, value);
  };
  EXPECT_EQ(why("/changes/0/kind", "slump"),
            R"(/changes/0/kind is "slump", not one of ["step","dip","peak",null])");
  EXPECT_EQ(why("/sets/0/relative_rate", 0), "/sets/0/relative_rate is 0, not above 0");
  EXPECT_EQ(why("/sets_needed/0/sets", 5), "/sets_needed/0/sets is 5, not at least 6");
}

/// Keys that are newer than a record are null in it once it was completed, and no fault.
TEST(ComparisonRecord, OfAnOlderRevisionMayHaveNullForWhatIsNewer) {
  Json old = record_at("comparison.json");
  old["schema_revision"] = 2;
  old["findings"] = nullptr;
  for (const char* newer : {"further", "equivalent_percent"}) old.erase(newer);
  const auto comparison = record_from<Comparison>(old);
  EXPECT_TRUE(comparison.findings.empty());
  EXPECT_EQ(comparison.equivalent_percent.why(), "not in records before schema_revision 3");
  EXPECT_EQ(comparison.further.why(), "not in records before schema_revision 3");
  old["schema_revision"] = 9;
  EXPECT_THROW(record_from<Comparison>(old), RecordFault);
}

}  // namespace
}  // namespace scalemark::comparison_record_test

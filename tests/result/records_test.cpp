// The envelope, the text of a record, and reasons for what is unknown.
#include "result/records.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "record/write.hpp"
#include "result/envelope.hpp"
#include "result/record_kinds.hpp"

namespace scalemark::records_test {
namespace {
using testing::MatchesRegex;

TEST(Envelope, HasItsKeysInOrder) {
  const Json record = envelope("run", Status::timeout, "too slow");
  std::vector<std::string> keys;
  for (const auto& [key, value] : record.items()) keys.push_back(key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"schema_version", "schema_revision", "kind", "id", "build",
                                      "created_at", "status", "reason", "warnings"}));
  EXPECT_EQ(record["schema_version"], 1);
  EXPECT_EQ(record["schema_revision"], schema_revision());
  EXPECT_EQ(record["status"], "timeout");
  EXPECT_EQ(record["reason"], "too slow");
  EXPECT_EQ(record["build"], part_json(build_info()));
}

TEST(Envelope, IdsAreUuidsOfVersion4AndNeverRepeat) {
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    const std::string id = envelope("run", Status::ok)["id"];
    EXPECT_TRUE(seen.insert(id).second);
    EXPECT_THAT(
        id, MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  }
}

TEST(BuildInfo, SaysWhatThisBinaryIs) {
  const Json build = part_json(build_info());
  EXPECT_THAT(build["version"].get<std::string>(), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(build["compiler"].get<std::string>(), MatchesRegex(".+ [0-9].*"));
  EXPECT_FALSE(build["revision"].get<std::string>().empty());
  EXPECT_EQ(build["cuda"].is_null(), build["nccl"].is_null());
}

TEST(JoinReason, ReasonsOfOnePathStandSideBySide) {
  Json reasons;
  for (const char* reason : {"no baseline", "one repeat", "no baseline"})
    join_reason(reasons, "points.ci95", reason);
  EXPECT_EQ(reasons["points.ci95"], "no baseline; one repeat");
}

TEST(RecordText, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(Json::parse(record_text({{"host",
                                      "a\xff"
                                      "b"}}))["host"],
            "a\xef\xbf\xbd"
            "b");
}

}  // namespace
}  // namespace scalemark::records_test

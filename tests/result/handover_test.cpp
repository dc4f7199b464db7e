// Both ends of the hand-over between ranks and their supervisor.
#include "result/handover.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace scalemark::handover_test {
namespace {

std::map<std::string, std::string> environment_of(const HandoverFolder& folder) {
  return {{kHandoverVariable, folder.path().string()}};
}

TEST(Handover, BeforeTheRanksSpeakNothingIsKnown) {
  const HandoverFolder folder(std::filesystem::temp_directory_path());
  EXPECT_EQ(std::getenv(kHandoverVariable), folder.path().string());
  EXPECT_FALSE(folder.exit_code());
  EXPECT_FALSE(folder.abort());
  EXPECT_FALSE(folder.partial());
  EXPECT_FALSE(folder.listens());
  EXPECT_FALSE(folder.stop_heard());
}

TEST(Handover, TheSupervisorReadsWhatTheRootLeaves) {
  const HandoverFolder folder(std::filesystem::temp_directory_path());
  const Handover root(environment_of(folder), /*is_root=*/true);
  root.publish_listens();
  EXPECT_TRUE(folder.listens());
  root.publish_stop_heard();
  EXPECT_TRUE(folder.stop_heard());

  root.publish_exit_code(ExitCode::timeout);
  EXPECT_EQ(folder.exit_code(), 5);

  root.publish_abort({4, "rank 1: \"lost\""});
  ASSERT_TRUE(folder.abort());
  EXPECT_EQ(folder.abort()->exit_code, 4);
  EXPECT_EQ(folder.abort()->reason, "rank 1: \"lost\"");

  root.publish_partial({Json::array({{{"id", "a"}}}), {{"id", "b"}}, "x/curve.json"});
  ASSERT_TRUE(folder.partial());
  EXPECT_EQ(folder.partial()->finished[0]["id"], "a");
  EXPECT_EQ(folder.partial()->record["id"], "b");
  EXPECT_EQ(folder.partial()->path, "x/curve.json");
}

TEST(Handover, AnyRankMaySayWhyItAborts) {
  const HandoverFolder folder(std::filesystem::temp_directory_path());
  Handover(environment_of(folder), /*is_root=*/false).publish_abort({5, "rank 0: silent"});
  ASSERT_TRUE(folder.abort());
  EXPECT_EQ(folder.abort()->reason, "rank 0: silent");
}

TEST(Handover, ACurveWithoutARunOrAFileIsNull) {
  const HandoverFolder folder(std::filesystem::temp_directory_path());
  Handover(environment_of(folder), true).publish_partial({Json::array(), nullptr, {}});
  ASSERT_TRUE(folder.partial());
  EXPECT_TRUE(folder.partial()->record.is_null());
  EXPECT_TRUE(folder.partial()->path.empty());
}

TEST(Handover, OtherRanksAndRanksWithoutASupervisorSayNothing) {
  const HandoverFolder folder(std::filesystem::temp_directory_path());
  Handover(environment_of(folder), /*is_root=*/false).publish_exit_code(ExitCode::ok);
  Handover({}, /*is_root=*/true).publish_exit_code(ExitCode::ok);
  EXPECT_FALSE(folder.exit_code());
}

TEST(Handover, ATornFileIsNone) {
  const HandoverFolder folder(std::filesystem::temp_directory_path());
  std::ofstream(folder.path() / "abort.json") << "{\"exit_code\": 4, \"rea";
  EXPECT_FALSE(folder.abort());
}

}  // namespace
}  // namespace scalemark::handover_test

// Findings as lines: golden text, and what stays silent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/shown_text.hpp"

namespace scalemark::finding_lines_test {
namespace {

Json finding(const std::string& rule) {
  return {{"rule", rule},
          {"what", "The link: ranks wait for gradients."},
          {"why", "Exposed communication: 37.00 ms a step."},
          {"try", {"send half the bytes: --wire_dtype bf16", "a faster link"}},
          {"sure", "hint"}};
}

std::string lines_of(const std::vector<Json>& findings) {
  return finding_lines(Json{{"findings", findings}});
}

TEST(FindingLines, SayWhatThenWhyAndWhatToTry) {
  EXPECT_EQ(lines_of({finding("link")}),
            "The link: ranks wait for gradients. (a hint)\n"
            "  why: Exposed communication: 37.00 ms a step.\n"
            "  try: send half the bytes: --wire_dtype bf16\n"
            "  try: a faster link\n");
}

TEST(FindingLines, AreSilentOfWhatTheCallerSays) {
  const Json record{{"findings", {finding("link"), finding("small_batch")}}};
  EXPECT_EQ(finding_lines(record, "server link small_batch"), "");
  EXPECT_EQ(finding_lines(record, "small_batch"), lines_of({finding("link")}));
  EXPECT_NE(finding_lines(record, "small"), "");
}

TEST(FindingLines, OfAnOlderRecordAreNone) {
  EXPECT_EQ(finding_lines(Json{{"findings", nullptr}}), "");
  EXPECT_EQ(finding_lines(Json::object()), "");
}

TEST(FindingLines, KeepTextFromOutsideOnItsLine) {
  Json hostile = finding("straggler");
  hostile["what"] = "rank 1 on n0\x1b[2J\nwarning: all is well";
  const std::string lines = lines_of({hostile});
  EXPECT_THAT(lines, testing::Not(testing::HasSubstr("\x1b")));
  EXPECT_THAT(lines, testing::Not(testing::HasSubstr("\nwarning")));
}

TEST(FindingLines, AreBrokenAtAHundredColumns) {
  Json longer = finding("link");
  longer["why"] = std::string(60, 'a') + " " + std::string(60, 'b');
  EXPECT_THAT(lines_of({longer}), testing::HasSubstr("  why: " + std::string(60, 'a') +
                                                     "\n       " + std::string(60, 'b') + "\n"));
}

}  // namespace
}  // namespace scalemark::finding_lines_test

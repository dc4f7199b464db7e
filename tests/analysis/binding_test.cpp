// Which ranks share cores, and whose binding did not come about.
#include "analysis/binding.hpp"

#include <gtest/gtest.h>

namespace scalemark {
namespace {

TEST(Binding, OverlapsAreOfOneHostOnly) {
  const auto verdicts = judge_binding({{0, "a", {0, 1}, "core", 4},
                                       {1, "a", {1, 2}, "core", 4},
                                       {2, "a", {3}, "core", 4},
                                       {3, "b", {0, 1}, "core", 4}});
  EXPECT_EQ(verdicts[0].overlaps_with, std::vector<int>{1});
  EXPECT_EQ(verdicts[1].overlaps_with, std::vector<int>{0});
  EXPECT_TRUE(verdicts[2].overlaps_with.empty());
  EXPECT_TRUE(verdicts[3].overlaps_with.empty());
  for (const auto& verdict : verdicts) EXPECT_EQ(verdict.as_asked, true);
}

TEST(Binding, AMaskOfTheWholeHostIsNoBinding) {
  const std::vector<int> all{0, 1, 2, 3};
  const auto asked = [&](const char* requested, std::vector<int> cpus, const char* other) {
    return judge_binding({{0, "a", cpus, requested, 4}, {1, other, all, requested, 4}})[0].as_asked;
  };
  EXPECT_EQ(asked("core", all, "a"), false);
  EXPECT_EQ(asked("core", {0, 1}, "a"), true);
  EXPECT_EQ(asked("core", all, "b"), true);  // alone on its host
  EXPECT_EQ(asked("none", all, "a"), true);
  EXPECT_EQ(asked("", all, "a"), std::nullopt);
  EXPECT_EQ(asked("core", {}, "a"), std::nullopt);
}

}  // namespace
}  // namespace scalemark

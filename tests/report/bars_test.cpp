// Bars whose lengths are in proportion, within the width that there is.
#include <gtest/gtest.h>

#include <cstdlib>

#include "report/text_table.hpp"

namespace scalemark::bars_test {
namespace {

TEST(Bars, AreInProportionWithTheirIdealMarked) {
  EXPECT_EQ(bars({{"1", 1, 1, "1.00"}, {"16", 2, 4, "2.00 of 4"}}, 31, false),
            " 1  ####              1.00\n"
            "16  ########.......|  2.00 of 4\n");
}

TEST(Bars, OfUnicodeGoByEighths) {
  EXPECT_EQ(bars({{"1", 1, 0, "a"}, {"2", 1.5625, 2, "b"}}, 22, true),
            "1  ████████          a\n"
            "2  ████████████▌··│  b\n");
}

TEST(Bars, KeepAtLeastSomeLengthAndNeverMore) {
  EXPECT_EQ(bars({{"1", 3, 3, ""}}, 4, false), "1  ########  \n");
  EXPECT_EQ(bars({{"1", 3, 0, ""}}, 500, false), "1  " + std::string(50, '#') + "  \n");
  EXPECT_EQ(bars({{"1", 0, 0, "0"}}, 20, false), "1                  0\n");
}

TEST(Bars, AskTheLocale) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) unsetenv(name);
  EXPECT_FALSE(writes_utf8());
  setenv("LANG", "de_DE.utf8", 1);
  EXPECT_TRUE(writes_utf8());
  setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(writes_utf8());
  unsetenv("LC_ALL");
}

}  // namespace
}  // namespace scalemark::bars_test

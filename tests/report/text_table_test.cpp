// Tables fit what they are printed on, and lose nothing.
#include "report/text_table.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace scalemark::text_table_test {
namespace {

using Rows = std::vector<std::vector<std::string>>;

const Rows kRows{{"ranks", "images/sec", "exposed communication"},
                 {"1", "4.123 [4.1, 4.2]", "-"},
                 {"16", "9.1", "12.3 ms"}};

TEST(TextTable, IsAsWideAsItsCellsWhereThereIsRoom) {
  const std::string whole =
      "ranks        images/sec  exposed communication\n"
      "    1  4.123 [4.1, 4.2]                      -\n"
      "   16               9.1                12.3 ms\n";
  EXPECT_EQ(text_table(kRows, std::nullopt), whole);
  EXPECT_EQ(text_table(kRows, 46), whole);
}

TEST(TextTable, BreaksTitlesFirst) {
  EXPECT_EQ(text_table(kRows, 45),
            "                               exposed\n"
            "ranks        images/sec  communication\n"
            "    1  4.123 [4.1, 4.2]              -\n"
            "   16               9.1        12.3 ms\n");
}

TEST(TextTable, ThenStandsInPartsEachWithItsFirstColumn) {
  EXPECT_EQ(text_table(kRows, 30),
            "ranks        images/sec\n"
            "    1  4.123 [4.1, 4.2]\n"
            "   16               9.1\n"
            "\n"
            "             exposed\n"
            "ranks  communication\n"
            "    1              -\n"
            "   16        12.3 ms\n");
}

TEST(TextTable, FoldsLongNamesOfRows) {
  EXPECT_EQ(text_table({{"point", "mean"}, {"ranks=2 threads=1 inter=2", "10.1"}}, 24),
            "    point  mean\n"
            "  ranks=2  10.1\n"
            "threads=1\n"
            "  inter=2\n");
}

TEST(TextTable, OfOneRowOrColumnStaysATable) {
  EXPECT_EQ(text_table({{"a", "b"}}, 1), "a  b\n");
  EXPECT_EQ(text_table({{"long"}, {"longer than that"}}, 9), "  long\nlonger\n  than\n  that\n");
}

}  // namespace
}  // namespace scalemark::text_table_test

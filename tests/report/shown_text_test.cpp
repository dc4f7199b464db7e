// Text from records is shown without what a terminal, Markdown or XML would act on.
#include "report/shown_text.hpp"

#include <gtest/gtest.h>

namespace scalemark {
namespace {

const std::string kBad = "\xEF\xBF\xBD";

TEST(ShownText, KeepsWhatIsHarmless) {
  for (const char* text : {"", "images/sec", "größer", "日本", "😀", "a b"})
    EXPECT_EQ(shown(text), text);
}

TEST(ShownText, ControlsMoveNoCursorAndBeginNoLine) {
  EXPECT_EQ(shown("red\x1B[31m"), "red" + kBad + "[31m");
  EXPECT_EQ(shown("a\n::error::b"), "a ::error::b");
  EXPECT_EQ(shown("a\r\n\tb"), "a   b");
  EXPECT_EQ(shown(std::string("a\0b", 3)), "a" + kBad + "b");
  EXPECT_EQ(shown("\x7F\b"), kBad + kBad);
  EXPECT_EQ(shown("\xC2\x9B"
                  "31m"),
            kBad + "31m");  // CSI in one code
  EXPECT_EQ(shown("a\xC2\x85"
                  "b\xE2\x80\xA8"
                  "c"),
            "a b c");
  EXPECT_EQ(shown("a\xC2\xA0"
                  "b"),
            "a\xC2\xA0"
            "b");  // the first code that is no control
}

TEST(ShownText, NothingIsReadFromRightToLeftUnseen) {
  EXPECT_EQ(shown("a\xE2\x80\xAE"
                  "b"),
            "a" + kBad + "b");
  EXPECT_EQ(shown("a\xE2\x81\xA6"
                  "b\xD8\x9C"),
            "a" + kBad + "b" + kBad);
}

TEST(ShownText, IllFormedSequencesAndNoncharacters) {
  EXPECT_EQ(shown("\xEF\xBF\xBE\xEF\xBF\xBF"), kBad + kBad);
  EXPECT_EQ(shown("\xF4\x8F\xBF\xBF"), kBad);  // U+10FFFF
  EXPECT_EQ(shown("a\xFF"
                  "b"),
            "a" + kBad + "b");
  EXPECT_EQ(shown("a\x80"
                  "b"),
            "a" + kBad + "b");
  EXPECT_EQ(shown("a\xE2\x82"), "a" + kBad);  // cut off
  EXPECT_EQ(shown("\xE2\x82"
                  "b"),
            kBad + "b");                       // the letter is kept
  EXPECT_EQ(shown("\xED\xA0\x80"), kBad);      // a surrogate
  EXPECT_EQ(shown("\xE0\x80\xAF"), kBad);      // a long form of /
  EXPECT_EQ(shown("\xF4\x90\x80\x80"), kBad);  // above U+10FFFF
}

TEST(ShownText, MarkdownReadsNoMarkup) {
  EXPECT_EQ(markdown_text("a|b<script>&`x`*y*_z_\\"),
            "a\\|b&lt;script&gt;&amp;\\`x\\`\\*y\\*\\_z\\_\\\\");
  EXPECT_EQ(markdown_text("![x](y)\n| ~~z"), "!\\[x\\](y) \\| \\~\\~z");
}

TEST(ShownText, XmlIsWellFormed) {
  EXPECT_EQ(xml_text("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(xml_text(std::string("a\0\x1B"
                                 "b\xEF\xBF\xBE\xEF\xBF\xBF\xFF",
                                 11)),
            "ab");
  EXPECT_EQ(xml_text("a\n::error::\tb\r"), "a&#10;::error::&#9;b&#13;");
  EXPECT_EQ(xml_text("\xE2\x80\xAE"
                     "ß"),
            kBad + "ß");
}

TEST(ShownText, RecordsKeepTheirShape) {
  const Json record = {{"a\n", {"x\x1B", 1, nullptr, {{"b\t", "y\n"}}}}, {"a ", 2}, {"n", 0.5}};
  const Json expected = {
      {"a ", {"x" + kBad, 1, nullptr, {{"b ", "y "}}}}, {"a " + kBad, 2}, {"n", 0.5}};
  EXPECT_EQ(shown_record(record), expected);
  EXPECT_NO_THROW(shown_record(Json("a\xFF")).dump());
}

TEST(ShownLines, KeepLinesAndBeginNoCommand) {
  EXPECT_EQ(shown_lines("a\nb"), "a\nb");
  EXPECT_EQ(shown_lines("a\x1b[2J\n::error::x\n"), "a\xef\xbf\xbd[2J\n: :error::x\n");
  EXPECT_EQ(shown_lines("a\n  ::error::x\n##[error]y"), "a\n  : :error::x\n# #[error]y");
  EXPECT_EQ(shown_lines(""), "");
}

}  // namespace
}  // namespace scalemark

// Parts of docs/ that are generated: from "<!-- NAME -->" to the next "<!-- end -->".
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace scalemark::test {

/// With UPDATE_DOCS set, writes `text` there instead.
inline void expect_on_page(const std::string& page, const std::string& name,
                           const std::string& text) {
  const std::string path = SCALEMARK_SOURCE_DIR "/docs/" + page;
  std::ostringstream whole;
  whole << std::ifstream(path).rdbuf();
  std::string found = whole.str();
  const std::string mark = "<!-- " + name + " -->\n";
  const std::size_t begin = found.find(mark);
  ASSERT_NE(begin, found.npos) << path << " has no " << mark;
  const std::size_t from = begin + mark.size(), to = found.find("<!-- end -->", from);
  ASSERT_NE(to, found.npos) << path << ": " << mark << " has no end";
  if (std::getenv("UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << found.replace(from, to - from, text);
    return;
  }
  EXPECT_EQ(found.substr(from, to - from), text)
      << path << " is stale: run this test with UPDATE_DOCS=1";
}

}  // namespace scalemark::test

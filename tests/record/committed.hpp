// docs/schema: generated from the descriptions, committed, and never stale. To write it anew:
// UPDATE_DOCS=1 in the environment of the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "record/schema.hpp"

namespace scalemark::test {

inline void expect_committed(const std::string& name, const Json& schema) {
  const std::string path = SCALEMARK_SOURCE_DIR "/docs/schema/" + name + ".schema.json";
  const std::string text = schema_text(schema);
  if (std::getenv("UPDATE_DOCS") != nullptr) std::ofstream(path) << text;
  std::ostringstream committed;
  committed << std::ifstream(path).rdbuf();
  EXPECT_EQ(committed.str(), text) << path << " is stale: run this test with UPDATE_DOCS=1";
}

}  // namespace scalemark::test

// The corpus of the fuzzers through their readers, in every build of the tests: what once crashed
// one stays in it. Beside it whole files are cut and changed everywhere.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "fuzz/targets.hpp"

namespace scalemark::fuzz_corpus_test {
namespace {
namespace fs = std::filesystem;

std::vector<std::string> corpus_of(const fuzz::Target& target) {
  std::vector<std::string> texts;
  const fs::path folder = fs::path(SCALEMARK_SOURCE_DIR) / "tests/fuzz/corpus" / target.name;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

TEST(Corpus, EveryTargetReadsOneOfItsFilesToTheEnd) {
  for (const fuzz::Target& target : fuzz::targets()) {
    int read = 0;
    for (const std::string& text : corpus_of(target)) {
      fuzz::try_out(target, text);
      try {
        target.read(text);
        ++read;
      } catch (const std::exception&) {
      }
    }
    EXPECT_GE(read, 1) << target.name;
  }
}

TEST(Corpus, CutAnywhereItIsReadOrRefused) {
  for (const fuzz::Target& target : fuzz::targets())
    for (const std::string& text : corpus_of(target))
      for (std::size_t length = 0; length < text.size(); length += 1 + text.size() / 100)
        fuzz::try_out(target, text.substr(0, length));
}

TEST(Corpus, AnyByteMayBeAnother) {
  for (const fuzz::Target& target : fuzz::targets())
    for (const std::string& text : corpus_of(target))
      for (std::size_t at = 0; at < text.size(); at += 1 + text.size() / 100)
        for (const char byte : {'\0', '-', '9', '"', '}', '\xff'}) {
          std::string changed = text;
          changed[at] = byte;
          fuzz::try_out(target, changed);
        }
}

}  // namespace
}  // namespace scalemark::fuzz_corpus_test

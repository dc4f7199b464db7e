// The corpus of the fuzzers through their readers, in every build of the tests: what once crashed
// one stays in it. Beside it whole files are cut and changed everywhere.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
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

/// Some slices of the text gone, repeated, or taken from another; some bytes and tokens put in.
std::string scrambled(std::string text, const std::vector<std::string>& others,
                      std::mt19937& random) {
  static const std::vector<std::string> tokens{
      "null", "[]",      "{}",       "\"\"",     "-1",        "1e999", "18446744073709551616",
      "0.1",  "\\u0000", "\xff\xfe", "[[[[[[[[", "\"kind\":", ",",     "\n"};
  const auto below = [&](std::size_t limit) {
    return limit == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (std::size_t changes = 1 + below(6); changes > 0; --changes) {
    const std::size_t at = below(text.size() + 1), length = below(64);
    const std::string& other = others[below(others.size())];
    switch (below(4)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(below(text.size() + 1), length));
        break;
      case 2:
        text.replace(at, length, other.substr(below(other.size() + 1), length));
        break;
      default:
        text.replace(at, below(8), tokens[below(tokens.size())]);
    }
  }
  return text;
}

// Some 10 s under the sanitizers in CI. libFuzzer, which sees what it reaches, is scripts/fuzz.
TEST(Corpus, ScrambledItIsReadOrRefused) {
  std::mt19937 random(1);
  for (const fuzz::Target& target : fuzz::targets()) {
    const std::vector<std::string> texts = corpus_of(target);
    for (int i = 0; i < 3000; ++i)
      fuzz::try_out(target, scrambled(texts[i % texts.size()], texts, random));
  }
}

}  // namespace
}  // namespace scalemark::fuzz_corpus_test

// The journal of a sweep: what survives a killed writer, and who may write.
#include "result/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "error.hpp"
#include "result/support.hpp"

namespace scalemark::journal_test {
namespace {
using test::contents;
using test::Tree;
using testing::HasSubstr;

JournalEntry entry(const std::string& point, std::int64_t repeat, const std::string& status) {
  JournalEntry made;
  made.point = point;
  made.config_hash = "hash";
  made.revision = "abc";
  made.repeat = repeat;
  made.status = status;
  made.settings = {{"ranks", 2}};
  return made;
}

TEST(Journal, KeepsWhatWasAppended) {
  const Tree tree;
  {
    Journal journal(tree.root() / "journal.jsonl");
    EXPECT_TRUE(journal.entries().empty());
    journal.append(entry("a", 1, "failed"));
    journal.append(entry("b", 1, "ok"));
    journal.append(entry("a", 1, "ok"));
  }
  const Journal journal(tree.root() / "journal.jsonl");
  ASSERT_EQ(journal.entries().size(), 3u);
  EXPECT_EQ(journal.find(entry("a", 1, ""))->status, "ok");  // the last word counts
  EXPECT_EQ(journal.find(entry("a", 2, "")), nullptr);
  JournalEntry other_build = entry("a", 1, "");
  other_build.revision = "def";
  EXPECT_EQ(journal.find(other_build), nullptr);
  EXPECT_EQ(journal.entries()[1].settings["ranks"], 2);
}

TEST(Journal, CutsATornLastLineWhereverItWasTorn) {
  const Tree tree;
  const auto path = tree.root() / "journal.jsonl";
  {
    Journal journal(path);
    journal.append(entry("a", 1, "ok"));
    journal.append(entry("b", 1, "ok"));
  }
  const std::string whole = contents(path);
  const std::size_t first = whole.find('\n') + 1;
  for (std::size_t length = first; length < whole.size(); ++length) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    {
      Journal journal(path);
      ASSERT_EQ(journal.entries().size(), 1u) << length;
      journal.append(entry("b", 1, "ok"));
    }
    ASSERT_EQ(contents(path), whole) << length;
  }
}

TEST(Journal, RefusesWhatIsNone) {
  const Tree tree;
  const auto path = tree.root() / "journal.jsonl";
  for (const char* bad : {"hello\n", "{}\n", "{\"kind\": \"run\", \"schema_version\": 1}\n",
                          "{\"kind\": \"journal_entry\", \"schema_version\": 0}\n"}) {
    std::ofstream(path, std::ios::binary) << bad;
    try {
      Journal journal(path);
      ADD_FAILURE() << bad;
    } catch (const ResultError& error) {
      EXPECT_THAT(error.what(), HasSubstr("line 1")) << bad;
    }
    EXPECT_EQ(contents(path), bad);
  }
}

TEST(Journal, ARecordIsThatOfOneLaunch) {
  const Tree tree;
  const auto path = tree.root() / "journal.jsonl";
  const auto named = [](const std::string& point, std::int64_t repeat,
                        const std::string& revision) {
    JournalEntry made = entry(std::string(64, point[0]), repeat, "ok");
    made.config_hash = std::string(64, '0');
    made.revision = revision;
    made.record = "runs/one.json";
    return made;
  };
  {
    Journal journal(path);
    journal.append(named("a", 1, "abc"));
    journal.append(named("a", 1, "def"));  // another build writes over it
  }
  EXPECT_EQ(read_journal(path).size(), 2u);
  Journal(path).append(named("b", 1, "abc"));
  try {
    read_journal(path);
    ADD_FAILURE();
  } catch (const ResultError& error) {
    EXPECT_THAT(error.what(), HasSubstr("line 3"));
    EXPECT_THAT(error.what(), HasSubstr("the record of another launch"));
  }
}

TEST(Journal, NamesLineAndPlaceOfAValueThatIsWrong) {
  const Tree tree;
  const auto path = tree.root() / "journal.jsonl";
  {
    Journal journal(path);
    journal.append(entry("a", 1, "ok"));
  }
  const Json whole = Json::parse(contents(path));
  const std::vector<std::pair<const char*, Json>> wrong{
      {"/settings", 7},   {"/settings", nullptr}, {"/status", "fine"}, {"/exit_code", 8},
      {"/exit_code", -1}, {"/repeat", 0},         {"/seconds", "2"},   {"/record", Json::array()}};
  for (const auto& [pointer, value] : wrong) {
    Json damaged = whole;
    damaged[Json::json_pointer(pointer)] = value;
    try {
      parse_journal(whole.dump() + "\n" + damaged.dump() + "\n", path);
      ADD_FAILURE() << damaged;
    } catch (const ResultError& error) {
      EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("line 2: " + std::string(pointer)),
                                               HasSubstr(path.string())));
    }
  }
  EXPECT_FALSE(whole.contains("environment"));  // as older versions wrote it
  for (const auto& [key, value] : whole.items()) {
    Json damaged = whole;
    damaged.erase(key);
    EXPECT_THROW(parse_journal(damaged.dump() + "\n", path), ResultError) << key;
  }
  EXPECT_THROW(parse_journal("{\"point\": 1, \"point\": 2}\n", path), ResultError);
}

TEST(Journal, HasOneWriter) {
  const Tree tree;
  const Journal first(tree.root() / "journal.jsonl");
  EXPECT_THROW(Journal(tree.root() / "journal.jsonl"), EnvironmentError);
}

TEST(Journal, SaysWhereItCannotBe) {
  EXPECT_THROW(Journal("/no/such/folder/journal.jsonl"), ResultError);
}

}  // namespace
}  // namespace scalemark::journal_test

// A record that anyone may have written: read, or refused with the reason (faults 13 and 17).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "error.hpp"
#include "record/comparison.hpp"
#include "result/envelope.hpp"
#include "result/measured_launch.hpp"
#include "result/record_kinds.hpp"
#include "result/support.hpp"

namespace scalemark::read_record_test {
namespace {
using test::Tree;

Json whole_record() { return envelope("run", Status::ok); }

/// The message of the ResultError that reading gives; fails the test where there is none.
std::string refusal(const std::filesystem::path& path) {
  try {
    read_record(path);
  } catch (const ResultError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(path.string()));
    return error.what();
  }
  ADD_FAILURE() << path << " was not refused";
  return "";
}

std::string refusal_of(const std::string& text) {
  Tree tree;
  tree.file("r.json", text);
  return refusal(tree.root() / "r.json");
}

TEST(ReadRecord, GivesBackWhatWasWritten) {
  Tree tree;
  const Json record = whole_record();
  tree.file("r.json", record_text(record));
  EXPECT_EQ(read_record(tree.root() / "r.json"), record);
}

TEST(ReadRecord, AMissingPathIsAUsageError) {
  Tree tree;
  tree.file("file", "");
  EXPECT_THROW(read_record(tree.root() / "absent.json"), ConfigError);
  EXPECT_THROW(read_record(tree.root() / "file" / "r.json"), ConfigError);
}

TEST(ReadRecord, RefusesWhatIsNoRecord) {
  using testing::HasSubstr;
  EXPECT_THAT(refusal_of(""), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of("{\"kind\": \"run\""), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of(record_text(whole_record()).substr(0, 100)), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of("{\"a\": 1e999}"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of("{\"a\": NaN}"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of("[1, 2]"), HasSubstr("not a record"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("/schema_version"));
  EXPECT_THAT(refusal_of("null"), HasSubstr("not a record"));
}

TEST(ReadRecord, RefusesOtherKindsAndVersions) {
  using testing::HasSubstr;
  Json record = whole_record();
  record["schema_version"] = 0;
  EXPECT_THAT(refusal_of(record.dump()), HasSubstr("older"));
  record["schema_version"] = 2;
  EXPECT_THAT(refusal_of(record.dump()), HasSubstr("newer"));
  record["schema_version"] = "1";
  EXPECT_THAT(refusal_of(record.dump()), HasSubstr("not an integer"));
  record = whole_record();
  record["kind"] = "recipe";
  EXPECT_THAT(refusal_of(record.dump()), HasSubstr("\"recipe\""));
  record["kind"] = {1, 2};
  EXPECT_THAT(refusal_of(record.dump()), HasSubstr("/kind"));
  record = whole_record();
  record.erase("status");
  EXPECT_THAT(refusal_of(record.dump()), HasSubstr("/status"));
}

TEST(ReadRecord, RefusesWhatContradictsItself) {
  Json record = test::make_run_record(test::make_context(), test::make_facts(1),
                                      {test::make_report(0, {1, 2}, {0, 0})});
  record["throughput"]["mean"] = 5;
  EXPECT_THAT(refusal_of(record_text(record)),
              testing::AllOf(testing::HasSubstr("/throughput/mean is 5, not 10.66"),
                             testing::HasSubstr("contradicts itself")));
}

TEST(ReadRecord, KeysThatAreNewerThanARecordAreNullWithAReason) {
  Json record = test::make_run_record(test::make_context(), test::make_facts(1),
                                      {test::make_report(0, {1, 2}, {0, 0})});
  const Json whole = record;
  record.erase("schema_revision");
  for (const char* key : {"warnings", "turns"}) record.erase(key);
  for (const char* key : {"openmp", "denormals"}) record["system"].erase(key);
  for (const char* key : {"turns", "system.openmp", "system.denormals"})
    record["unavailable"].erase(key);
  Tree tree;
  tree.file("old.json", record.dump());
  const Json read = read_record(tree.root() / "old.json");
  EXPECT_EQ(read["schema_revision"], 1);
  for (const char* key : {"warnings", "turns", "system.openmp", "system.denormals"})
    EXPECT_EQ(read["unavailable"][key], "not in records before schema_revision 2") << key;
  EXPECT_TRUE(read["warnings"].is_null());
  EXPECT_TRUE(read["system"]["openmp"].is_null());
  EXPECT_EQ(read["throughput"], whole["throughput"]);
  record["schema_revision"] = schema_revision();  // nothing is added to one that had to have them
  tree.file("new.json", record.dump());
  EXPECT_EQ(read_record(tree.root() / "new.json"), record);
  record["schema_revision"] = "2";
  EXPECT_THAT(refusal_of(record.dump()), testing::HasSubstr("/schema_revision"));
}

/// Everything that was written is there as it was: newer keys stand beside it.
bool keeps(const Json& read, const Json& written) {
  if (written.is_object()) {
    for (const auto& [key, value] : written.items())
      if (!read.contains(key) || !keeps(read[key], value)) return false;
    return read.is_object();
  }
  if (!written.is_array()) return read == written;
  if (!read.is_array() || read.size() != written.size()) return false;
  for (std::size_t i = 0; i < written.size(); ++i)
    if (!keeps(read[i], written[i])) return false;
  return true;
}

TEST(ReadRecord, WhatWasPublishedStaysReadable) {
  int records = 0;
  const auto folder = std::filesystem::path(SCALEMARK_SOURCE_DIR) / "results/baselines";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const Json written = Json::parse(test::contents(entry.path()));
    if (!written.contains("schema_version")) continue;
    const Json read = read_record(entry.path());
    EXPECT_TRUE(keeps(read, written)) << entry.path();
    if (written["kind"] != "run" && written["kind"] != "scaling") continue;
    EXPECT_FALSE(measured_launches(read, entry.path()).empty()) << entry.path();
    ++records;
  }
  EXPECT_GE(records, 10);
}

TEST(ReadRecord, AsATypeTakesOlderOnesAndRefusesOtherKinds) {
  const std::filesystem::path source = SCALEMARK_SOURCE_DIR;
  const auto old = read_typed_record<Verdict>(source / "results/baselines/ci-gate.json");
  EXPECT_EQ(old.verdict, GateVerdict::pass);
  EXPECT_EQ(old.repeats_for_pass.why(), "not in records before schema_revision 3");
  EXPECT_TRUE(old.findings.empty());
  try {
    read_typed_record<Verdict>(source / "tests/record/files/comparison.json");
    ADD_FAILURE() << "was not refused";
  } catch (const ResultError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("/comparison.json: /kind is \"comparison\", not"));
  }
}

TEST(ReadRecord, RefusesDepthAndSize) {
  EXPECT_THAT(refusal_of(std::string(1'000'000, '[')), testing::HasSubstr("nested deeper"));
  // Brackets in strings are no depth.
  Json record = whole_record();
  record["reason"] = std::string(500, '[') + "\"\\";
  Tree tree;
  tree.file("r.json", record.dump());
  EXPECT_EQ(read_record(tree.root() / "r.json"), record);
  tree.file("huge.json", "");
  std::filesystem::resize_file(tree.root() / "huge.json", (64 << 20) + 1);
  EXPECT_THAT(refusal(tree.root() / "huge.json"), testing::HasSubstr("larger than"));
}

TEST(ReadRecord, RefusesFoldersAndPipesWithoutHanging) {
  Tree tree;
  EXPECT_THAT(refusal(tree.root()), testing::HasSubstr("not a regular file"));
  const auto pipe = tree.root() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal(pipe), testing::HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace scalemark::read_record_test

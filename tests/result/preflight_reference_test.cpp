// What records say of a preflight, and files that are none.
#include "result/preflight_reference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "record/read.hpp"
#include "record/run.hpp"
#include "record/write.hpp"
#include "result/preflight_support.hpp"

namespace scalemark::preflight_reference_test {
namespace {

using testing::HasSubstr;

Json preflight() {
  const auto ranks = test::preflight_ranks(4);
  PreflightResult result =
      make_preflight_record(test::preflight_context(), test::preflight_facts(4), ranks);
  result.verdict = CheckStatus::warn;
  return record_json(result);
}

record::PreflightReference reference_to(const Json& record, const std::vector<std::string>& hosts) {
  return preflight_reference(record_from<PreflightResult>(record), hosts);
}

/// The exit code and the message with which a file of this text is refused.
std::pair<ExitCode, std::string> refusal(const std::string& text) {
  test::Tree tree;
  tree.file("p.json", text);
  try {
    read_preflight_record(tree.root() / "p.json");
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ExitCode::ok, ""};
}

TEST(PreflightReference, NamesTheRecordAndTheHostsThatItLacks) {
  const Json record = preflight();
  const auto reference = reference_to(record, {"n2", "node0", "n2", "node1"});
  EXPECT_EQ(reference.id, record["id"]);
  EXPECT_EQ(reference.created_at, record["created_at"]);
  EXPECT_EQ(reference.verdict, "warn");
  EXPECT_EQ(reference.hosts_not_covered, std::vector<std::string>{"n2"});
  EXPECT_TRUE(reference_to(record, {"node1"}).hosts_not_covered.empty());
}

TEST(PreflightReference, TakesThePlaceOfItsReason) {
  RecordContext context{{}, system_info(), {}};
  const auto record_of_run = [&context] {
    RunResult run;
    set_context(run, "run", context, {});
    return record_json(run);
  };
  Json record = record_of_run();
  EXPECT_TRUE(record["preflight"].is_null());
  EXPECT_THAT(record["unavailable"]["preflight"].get<std::string>(), HasSubstr("--preflight FILE"));
  Json named = preflight();
  context.preflight = reference_to(named, {"node0"});
  record = record_of_run();
  EXPECT_EQ(record["preflight"]["verdict"], "warn");
  EXPECT_FALSE(record["unavailable"].contains("preflight"));
  named["status"] = "timeout";
  named["verdict"] = nullptr;
  context.preflight = reference_to(named, {"node0"});
  record = record_of_run();
  EXPECT_EQ(record["preflight"]["status"], "timeout");
  EXPECT_THAT(record["unavailable"]["preflight.verdict"].get<std::string>(), HasSubstr("end"));
}

TEST(PreflightReference, ReadsWhatPreflightWrites) {
  test::Tree tree;
  const Json record = preflight();
  tree.file("p.json", record_text(record));
  EXPECT_EQ(record_json(read_preflight_record(tree.root() / "p.json")), record);
  EXPECT_THROW(read_preflight_record(tree.root() / "none.json"), ConfigError);
}

TEST(PreflightReference, RefusesWhatIsNone) {
  const auto with = [](const std::string& pointer, const Json& value) {
    Json record = preflight();
    record[Json::json_pointer(pointer)] = value;
    return record.dump();
  };
  const auto without = [](const char* key) {
    Json record = preflight();
    record.erase(key);
    return record.dump();
  };
  for (const auto& [text, code, part] :
       {std::tuple<std::string, ExitCode, std::string>{"{", ExitCode::result, "not JSON"},
        {with("/kind", "run"), ExitCode::result, "its kind is run"},
        {with("/schema_version", 0), ExitCode::result, "older"},
        {with("/verdict", "good"), ExitCode::result, "/verdict"},
        {with("/verdict", nullptr), ExitCode::result, "/verdict"},  // although status is ok
        {with("/hosts", nullptr), ExitCode::result, "/hosts"},
        {with("/hosts/1/host", 7), ExitCode::result, "/hosts/1/host"},
        {with("/created_at", 7), ExitCode::result, "/created_at"},
        {without("ranks"), ExitCode::result, "/ranks is missing"},
        {with("/config/pinning/value", true), ExitCode::usage, "--pinning"}}) {
    const auto [got, message] = refusal(text);
    EXPECT_EQ(got, code) << message;
    EXPECT_THAT(message, testing::AllOf(HasSubstr(part), HasSubstr("p.json")));
  }
  EXPECT_EQ(refusal(preflight().dump()).first, ExitCode::ok);
}

}  // namespace
}  // namespace scalemark::preflight_reference_test

// docs/schema: generated from the descriptions, committed, and never stale. To write it anew:
// UPDATE_DOCS=1 record_test.
#include "record/schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "record/baseline.hpp"
#include "record/committed.hpp"
#include "record/comparison.hpp"
#include "record/inference.hpp"
#include "record/instances.hpp"
#include "record/preflight.hpp"
#include "record/projection.hpp"
#include "record/read.hpp"
#include "record/run.hpp"
#include "record/scaling.hpp"
#include "record/study.hpp"
#include "record/write.hpp"
#include "support/doc_table.hpp"

namespace scalemark::schema_test {
namespace {

void expect_committed(const std::string& kind, const Fields& fields) {
  test::expect_committed(kind, record_schema(kind, fields));
}

TEST(RecordSchema, IsCommittedAsGenerated) {
  expect_committed("run", fields_of<RunResult>());
  expect_committed("inference", fields_of<InferenceResult>());
  expect_committed("comparison", fields_of<Comparison>());
  expect_committed("verdict", fields_of<Verdict>());
  expect_committed("history", fields_of<HistoryResult>());
  expect_committed("instances", fields_of<InstancesResult>());
  expect_committed("projection", fields_of<ProjectionResult>());
  expect_committed("study", fields_of<StudyResult>());
  expect_committed("scaling", fields_of<ScalingCurve>());
  expect_committed("baseline", fields_of<Baseline>());
  expect_committed("preflight", fields_of<PreflightResult>());
}

void expect_keys(const std::string& name, const std::string& table,
                 const std::string& page = "records.md") {
  test::expect_on_page(page, "keys of " + name, table);
}

struct EveryRecord : record::Envelope {
  static void describe(Fields& fields) { Envelope::describe(fields, "KIND"); }
};

/// Less the keys that every record has: their table stands once.
std::string own_keys(const std::string& table) {
  const std::string shared = record_table(fields_of<EveryRecord>(), {"build", "findings"});
  std::istringstream lines(table);
  std::string line, own;
  for (int number = 0; std::getline(lines, line); ++number)
    if (number < 2 || shared.find(line + "\n") == shared.npos) own += line + "\n";
  return own;
}

TEST(RecordPage, HasTheKeysAsDescribed) {
  const std::set<std::string> own{"config", "system", "preflight", "findings", "build"};
  expect_keys("every record", record_table(fields_of<EveryRecord>()));
  expect_keys("system", record_table(fields_of<record::System>()));
  expect_keys("preflight", record_table(fields_of<record::PreflightReference>()));
  expect_keys("run", record_table(fields_of<RunResult>(), own));
  std::set<std::string> of_run = own;
  of_run.insert({"throughput", "batch_size_search", "roofline", "noise", "trace", "operators",
                 "windows", "placement", "memory", "binding"});
  expect_keys("inference", record_table(fields_of<InferenceResult>(), of_run));
  expect_keys("comparison",
              record_table(fields_of<Comparison>(), {"findings", "build", "further"}));
  expect_keys("verdict", record_table(fields_of<Verdict>(), {"findings", "build", "sets"}));
  expect_keys("history", record_table(fields_of<HistoryResult>(), {"findings", "build"}));
  expect_keys("launch of jobs", record_table(fields_of<record::LaunchOfJobs>()));
  std::set<std::string> of_launch = own;
  of_launch.insert({"repeats", "latency_seconds", "alone_latency_seconds"});
  expect_keys("instances", record_table(fields_of<InstancesResult>(), of_launch));
  expect_keys("projection", record_table(fields_of<ProjectionResult>(), own));
  expect_keys("study", record_table(fields_of<StudyResult>(), own));
  expect_keys("scaling", record_table(fields_of<ScalingCurve>(), own));
  expect_keys("baseline", own_keys(record_table(fields_of<Baseline>(), own)));
  expect_keys("preflight record", own_keys(record_table(fields_of<PreflightResult>(), own)),
              "preflight.md");
}

constexpr const char* kSomeId = "11111111-1111-4111-8111-111111111111";

struct Part {
  Known<double> share;
  static void describe(Fields& fields) {
    fields.add("share", &Part::share, "of all").unit("s").within(0, 1).since(3);
  }
};
struct Whole {
  std::string name;
  std::vector<Part> parts;
  Known<std::vector<double>> numbers;
  Entries<std::int64_t> counts;
  static void describe(Fields& fields) {
    fields.add("name", &Whole::name, "of it").filled().one_of({"a", "b"});
    fields.add("parts", &Whole::parts, "in their order").filled();
    fields.add("numbers", &Whole::numbers).above(0).or_null("not finite").otherwise("not asked");
    fields.add("counts", &Whole::counts).at_least(0).keys("^[a-z]+$");
  }
};

TEST(RecordSchema, SaysWhatTheReaderAccepts) {
  const Json schema = record_schema("whole", fields_of<Whole>());
  EXPECT_EQ(schema["required"], (Json{"name", "parts", "numbers", "counts", "unavailable"}));
  const Json& properties = schema["properties"];
  EXPECT_EQ(properties["name"]["enum"], (Json{"a", "b"}));
  EXPECT_EQ(properties["parts"]["minItems"], 1);
  const Json& share = properties["parts"]["items"]["properties"]["share"];
  EXPECT_EQ(share, (Json{{"type", {"number", "null"}},
                         {"minimum", 0},
                         {"maximum", 1},
                         {"since", 3},
                         {"description", "of all (s)"}}));
  EXPECT_EQ(properties["numbers"]["type"], (Json{"array", "null"}));
  EXPECT_EQ(properties["numbers"]["items"]["exclusiveMinimum"], 0);
  EXPECT_EQ(properties["counts"]["propertyNames"]["pattern"], "^[a-z]+$");
  EXPECT_EQ(newest_revision(fields_of<Whole>()), 3);
  EXPECT_THAT(record_table(fields_of<Whole>()),
              testing::HasSubstr("| `parts[].share` | s | of all (since revision 3) |\n"));
}

struct Launch {
  std::string kind;
  Known<std::string> uuid;
  Status status = Status::ok;
  std::string reason;
  Known<double> rate, speedup;
  std::vector<Part> parts;
  static void describe(Fields& fields) {
    fields.add("kind", &Launch::kind);
    fields.add("uuid", &Launch::uuid).unknown_where("kind", "cpu", true);
    fields.add("status", &Launch::status);
    fields.add("reason", &Launch::reason);
    fields.add("rate", &Launch::rate).known(Presence::only_when_ok);
    fields.add("speedup", &Launch::speedup).known(Presence::when_all_ok);
    fields.add("parts", &Launch::parts).known(Presence::only_when_ok);
  }
};
struct Launches : record::Envelope {
  std::vector<Launch> launches;
  Part part;
  Known<Json> number;
  static void describe(Fields& fields) {
    Envelope::describe(fields, "launches", {"ok", "failed"});
    fields.add("launches", &Launches::launches);
    fields.add("share", &Launches::part, &Part::share, "of a part").below(1);
    fields.add("number", &Launches::number).types({"number"}).since(2);
  }
};

TEST(RecordSchema, APartWithAStatusHasConditionsOfItsOwn) {
  const Json schema = record_schema("launches", fields_of<Launches>());
  EXPECT_EQ(schema["properties"]["status"]["enum"], (Json{"ok", "failed"}));
  EXPECT_EQ(schema["properties"]["share"]["exclusiveMaximum"], 1);
  const Json& of_launches = schema["then"]["properties"]["launches"]["items"]["properties"];
  EXPECT_EQ(of_launches, (Json{{"status", {{"const", "ok"}}}, {"speedup", {{"type", "number"}}}}));
  const Json& launch = schema["properties"]["launches"]["items"];
  const Json null{{"type", "null"}};
  EXPECT_EQ(launch["allOf"][0]["then"]["properties"]["uuid"], null);
  EXPECT_EQ(launch["else"]["properties"]["rate"], null);
  EXPECT_EQ(launch["else"]["properties"]["speedup"], null);
  EXPECT_EQ(launch["else"]["properties"]["parts"], (Json{{"maxItems", 0}}));
}

TEST(RecordReader, OfAMemberOfAMemberAndOfJson) {
  Launches launches;
  launches.part.share = 0.5;
  launches.number = Json(18);
  Json json = record_json(launches);
  EXPECT_EQ(json["share"], 0.5);
  EXPECT_EQ(json["number"].dump(), "18") << "as it was written";
  json.update({{"kind", "launches"}, {"id", kSomeId}, {"created_at", "2026-01-01T00:00:00Z"}});
  json["build"] = {{"version", "1.0.0"},  {"revision", "a"}, {"compiler", ""},  {"build_type", ""},
                   {"libtorch", nullptr}, {"mpi", nullptr},  {"cuda", nullptr}, {"nccl", nullptr}};
  EXPECT_EQ(record_from<Launches>(json).part.share, 0.5);
  json["number"] = nullptr;
  json["unavailable"]["number"] = "not in records before schema_revision 2";
  EXPECT_EQ(record_from<Launches>(json).number.why(), "not in records before schema_revision 2");
  json["number"] = "18";
  EXPECT_THROW(record_from<Launches>(json), RecordFault);
}

struct Rated {
  Known<double> rate;
  static void describe(Fields& fields) {
    fields.add("rate", &Rated::rate).known(Presence::only_when_ok);
  }
};
struct RatedParts {
  Status status = Status::ok;
  std::string reason;
  std::vector<Rated> parts;
  static void describe(Fields& fields) {
    fields.add("status", &RatedParts::status);
    fields.add("reason", &RatedParts::reason);
    fields.add("parts", &RatedParts::parts).known(Presence::when_ok);
  }
};

TEST(RecordSchema, AsksByTheStatusOfWhatIsInAList) {
  const Json schema = record_schema("rated", fields_of<RatedParts>());
  const auto of_rate = [](const char* type) {
    return Json{{"properties", {{"rate", {{"type", type}}}}}};
  };
  const Json &ok = schema["then"]["properties"]["parts"],
             &other = schema["else"]["properties"]["parts"];
  EXPECT_EQ(ok["items"], of_rate("number"));
  EXPECT_EQ(ok["minItems"], 1);
  EXPECT_EQ(other["items"], of_rate("null"));
  EXPECT_FALSE(other.contains("minItems"));
}

TEST(Fields, AreVisitedWithTheirPlaces) {
  std::vector<std::string> places;
  visit_fields(fields_of<Whole>(),
               [&](const Field&, const std::string& place) { places.push_back(place); });
  EXPECT_EQ(places,
            (std::vector<std::string>{"/name", "/parts", "/parts/0/share", "/numbers", "/counts"}));
}

TEST(RecordReader, RefusesWithThePlace) {
  const auto why = [](const char* text) -> std::string {
    try {
      record_from<Whole>(Json::parse(text));
    } catch (const RecordFault& fault) {
      return fault.what();
    }
    return "";
  };
  EXPECT_EQ(why(R"({"name": "a", "parts": [{}], "numbers": null, "counts": {}})"), "");
  EXPECT_EQ(why("[]"), "is a list, not of type object");
  EXPECT_EQ(why(R"({"name": "c"})"), R"(/name is "c", not one of ["a","b"])");
  EXPECT_EQ(why(R"({"name": "a"})"), "/parts is missing");
  EXPECT_EQ(why(R"({"name": "a", "parts": []})"),
            "/parts (a list) has a size of 0, not from 1 to any");
  EXPECT_EQ(why(R"({"name": "a", "parts": [{"share": 2}]})"), "/parts/0/share is 2, not at most 1");
  EXPECT_EQ(why(R"({"name": "a", "parts": [{"share": "x"}]})"),
            "/parts/0/share is \"x\", not of type number or null");
  EXPECT_EQ(why(R"({"name": "a", "parts": [{}], "numbers": [1, 0]})"),
            "/numbers/1 is 0, not above 0");
  EXPECT_EQ(why(R"({"name": "a", "parts": [{}], "numbers": [], "counts": {"a": 1.5}})"),
            "/counts/a is 1.5, not of type integer");
}

struct Later {
  std::vector<std::string> warnings{"kept"};
  static void describe(Fields& fields) { fields.add("warnings", &Later::warnings).since(2); }
};

TEST(RecordReader, WhatReadersOfFilesAddToAnOlderRecordIsMissing) {
  const Json added = {{"schema_revision", 1}, {"warnings", nullptr}};
  EXPECT_EQ(record_from<Later>(added).warnings.size(), 1u);
  EXPECT_THROW(record_from<Later>({{"schema_revision", 2}, {"warnings", nullptr}}), RecordFault);
}

TEST(RecordWriter, GivesAReasonForEveryNull) {
  Whole whole;
  whole.name = "a";
  whole.parts = {{Unknown{"one"}}, {0.5}, {Unknown{"two"}}, {Unknown{"one"}}, {std::nan("")}};
  Json json = record_json(whole);
  EXPECT_EQ(json["parts"][1]["share"], 0.5);
  EXPECT_EQ(json["unavailable"]["parts.share"], "one; two; not a finite number");
  EXPECT_EQ(json["unavailable"]["numbers"], "not asked");
  whole.numbers = std::vector{1., std::nan("")};
  json = record_json(whole);
  EXPECT_EQ(json["numbers"], (Json{1., nullptr}));
  EXPECT_EQ(json["unavailable"]["numbers"], "not finite");
  const auto back = record_from<Whole>(json);
  EXPECT_EQ(back.parts[0].share.why(), "one; two; not a finite number");
  EXPECT_TRUE(std::isnan(back.numbers->at(1)));
}

TEST(RecordReader, AnOlderRecordLacksNewKeys) {
  const auto old = record_from<Whole>({{"schema_revision", 2},
                                       {"name", "a"},
                                       {"parts", {Json::object()}},
                                       {"numbers", nullptr},
                                       {"counts", Json::object()}});
  EXPECT_EQ(old.parts.at(0).share.why(), "not in records before schema_revision 3");
  EXPECT_THROW(
      record_from<Whole>({{"schema_revision", 3}, {"name", "a"}, {"parts", {Json::object()}}}),
      RecordFault);
}

}  // namespace
}  // namespace scalemark::schema_test

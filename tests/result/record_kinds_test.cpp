// What readers may rely on: no value of a record is of another type or range than its schema says.
#include "result/record_kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/text.hpp"
#include "error.hpp"
#include "record/read.hpp"
#include "record/run.hpp"
#include "result/baseline.hpp"
#include "result/measured_launch.hpp"
#include "result/support.hpp"

namespace scalemark::record_kinds_test {
namespace {
using test::Tree;
using testing::AllOf;
using testing::HasSubstr;

Json run() {
  return test::make_run_record(test::make_context(), test::make_facts(1),
                               {test::make_report(0, {1, 2}, {0, 0})});
}

Json with(Json record, const char* pointer, const Json& value) {
  record[Json::json_pointer(pointer)] = value;
  return record;
}

std::string fault(const Json& record) {
  try {
    check_values(record);
  } catch (const RecordFault& found) {
    return found.what();
  }
  return "";
}

TEST(RecordKinds, WhatWeWriteHasNone) {
  EXPECT_EQ(fault(run()), "");
  EXPECT_NO_THROW(record_from<RunResult>(run()));
}

TEST(RecordKinds, NamesPlaceValueAndWhatItMayBe) {
  EXPECT_EQ(fault(with(run(), "/throughput/mean", "fast")),
            "/throughput/mean is \"fast\", not of type number");
  EXPECT_EQ(fault(with(run(), "/throughput/mean", 0)), "/throughput/mean is 0, not above 0");
  EXPECT_THAT(fault(with(run(), "/status", "fine")), HasSubstr("/status is \"fine\", not one of"));
  EXPECT_EQ(fault(with(run(), "/ranks/0/host", nullptr)),
            "/ranks/0/host is null, not of type string");
  EXPECT_EQ(fault(with(run(), "/world_size", 1.5)), "/world_size is 1.5, not of type integer");
  EXPECT_EQ(fault(with(run(), "/environment", Json::array())),
            "/environment is a list, not of type object");
  EXPECT_THAT(fault(with(run(), "/environment/NCCL_X", 7)), HasSubstr("/environment/NCCL_X is 7"));
  EXPECT_THAT(fault(with(run(), "/step_seconds/samples", Json::array())),
              HasSubstr("/step_seconds/samples"));
  EXPECT_EQ(fault(with(run(), "/a_later_key", 7)), "");
}

TEST(RecordKinds, AMissingKeyIsNoFaultOfItsValues) {
  Json record = run();
  record["throughput"].erase("mean");
  EXPECT_EQ(fault(record), "");
  EXPECT_THROW(record_from<RunResult>(record), RecordFault);
  record["unavailable"]["energy"] = 7;
  EXPECT_EQ(fault(record), "/unavailable/energy is 7, not of type string");
}

TEST(RecordKinds, NoValueOfAnotherTypeIsRead) {
  const Json record = run();
  const Json flat = record.flatten();
  Tree tree;
  int refused = 0;
  for (const auto& [pointer, value] : flat.items()) {
    if (pointer.starts_with("/unavailable") || pointer.starts_with("/config")) continue;
    for (const Json& other : {Json("x"), Json(-1), Json(1e308), Json::array(), Json::object()}) {
      tree.file("r.json", with(record, pointer.c_str(), other).dump());
      try {
        measured_launches(read_record(tree.root() / "r.json"), "r.json");
      } catch (const ResultError& error) {
        ++refused;
        EXPECT_THAT(error.what(), testing::Not(HasSubstr("json.exception"))) << pointer;
      }
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(RecordKinds, AMissingKeyIsNamed) {
  Json record = run();
  record["config"]["model"].erase("origin");
  try {
    measured_launches(record, "r.json");
    ADD_FAILURE();
  } catch (const ResultError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("r.json"), HasSubstr("/config/model/origin is")));
  }
}

TEST(RecordKinds, FiguresThatNobodyMeasuresAreRefused) {
  for (const double seconds : {1e-300, 1e300})
    EXPECT_THROW(measured_launches(with(run(), "/wall_seconds", seconds), "r.json"), ResultError);
  EXPECT_THROW(measured_launches(with(run(), "/world_size", 4'294'967'297), "r.json"), ResultError);
  EXPECT_THROW(measured_launches(with(run(), "/batch_size_per_rank", 0), "r.json"), ResultError);
  EXPECT_NO_THROW(measured_launches(run(), "r.json"));
}

TEST(RecordKinds, ABaselineIsHeldAgainstItsSchemaWhateverItsChecksum) {
  ResultSet set;
  set.label = "b";
  set.launches = measured_launches(run(), "r.json");
  const Json whole = make_baseline_record(set);
  EXPECT_NO_THROW(launches_of_baseline(whole, "b.json"));
  for (const char* key : {"created_at", "launches", "fingerprint"}) {
    Json damaged = whole;
    damaged.erase(key);
    damaged.erase("checksum");
    damaged["checksum"] = sha256_hex(nlohmann::json::parse(damaged.dump()).dump());
    try {
      launches_of_baseline(damaged, "b.json");
      ADD_FAILURE() << key;
    } catch (const ResultError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("/") + key + " is missing"));
    }
  }
}

TEST(RecordKinds, NothingIsShownThatIsNoNumber) {
  EXPECT_NO_THROW(refuse_numberless({{"a", {1.5, nullptr}}}));
  try {
    refuse_numberless({{"points", {{{"p", 0.5}}, {{"p", std::nan("")}}}}});
    ADD_FAILURE();
  } catch (const ResultError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/points/1/p"));
  }
}

}  // namespace
}  // namespace scalemark::record_kinds_test

// Records that scalemark has written, read into their types and written again: nothing is lost,
// and nothing is added but the keys that are newer than the record.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "record/baseline.hpp"
#include "record/comparison.hpp"
#include "record/inference.hpp"
#include "record/instances.hpp"
#include "record/preflight.hpp"
#include "record/projection.hpp"
#include "record/read.hpp"
#include "record/run.hpp"
#include "record/scaling.hpp"
#include "record/schema.hpp"
#include "record/study.hpp"
#include "record/write.hpp"

namespace scalemark::round_trip_test {
namespace {

namespace fs = std::filesystem;

Json record_at(const fs::path& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

/// `written` without keys that came after the revision of `given` and that it lacks.
Json as_old(Json written, const Json& given, const Fields& fields, int revision);

Json part_as_old(Json written, const Json& given, const Shape& shape, int revision) {
  if (shape.fields() == nullptr || written.is_null()) return written;
  if (!written.is_array()) return as_old(written, given, *shape.fields(), revision);
  for (std::size_t i = 0; i < written.size(); ++i)
    written[i] = part_as_old(written[i], given.at(i), shape, revision);
  return written;
}

Json as_old(Json written, const Json& given, const Fields& fields, int revision) {
  for (const Field& field : fields) {
    if (given.contains(field.key))
      written[field.key] =
          field.shape->path().find(".*") == std::string::npos
              ? part_as_old(written[field.key], given[field.key], *field.shape, revision)
              : written[field.key];
    else if (field.first_revision > revision)
      written.erase(field.key);
  }
  return written;
}

/// Keys of published records stand where the program of their time wrote them.
enum class Order { of_fields, any };

std::string text_of(const Json& json, Order order) {
  return order == Order::any ? nlohmann::json(json).dump(1) : json.dump(1);
}

template <typename T>
void expect_the_same(const Json& given, const fs::path& path, Order order) {
  Json written = record_json(record_from<T>(given));
  // The order of reasons is that of the keys now.
  const nlohmann::json reasons = nlohmann::json::parse(written["unavailable"].dump());
  for (const auto& [place, reason] : given["unavailable"].items())
    EXPECT_EQ(reasons.value(place, ""), reason) << path << " " << place;
  const int revision = given.value("schema_revision", 1);
  Json before = given;
  before.erase("unavailable");
  written.erase("unavailable");
  if (revision == 1) order = Order::any;  // the first records had their warnings at another place
  EXPECT_EQ(text_of(as_old(written, before, fields_of<T>(), revision), order),
            text_of(before, order))
      << path;
}

/// Takes the keys out of `value` that came after `revision`, and their reasons; `path`: of the
/// value.
void make_older(Json& value, const Fields& fields, int revision, const std::string& path,
                Json& reasons) {
  for (const Field& field : fields) {
    const auto found = value.find(field.key);
    if (found == value.end()) continue;
    const std::string below = path + field.key;
    if (field.first_revision > revision) {
      value.erase(field.key);
      const Json all = reasons;
      for (const auto& [place, reason] : all.items())
        if (place == below || place.starts_with(below + ".")) reasons.erase(place);
      continue;
    }
    if (field.shape->fields() == nullptr) continue;
    const bool list = field.shape->path() == "[]";
    if (list && found->is_array())
      for (Json& part : *found)
        make_older(part, *field.shape->fields(), revision, below + ".", reasons);
    else if (field.shape->path().empty() && found->is_object())
      make_older(*found, *field.shape->fields(), revision, below + ".", reasons);
  }
}

/// As each program before the one that wrote it would have written it: without the newer keys.
template <typename T>
void expect_older_ones_to_be_read(const Json& given, const fs::path& path) {
  for (int revision = given.value("schema_revision", 1) - 1; revision > 0; --revision) {
    Json older = given;
    Json reasons = older["unavailable"];
    older["schema_revision"] = revision;
    make_older(older, fields_of<T>(), revision, "", reasons);
    if (revision == 1) older.erase("schema_revision");
    older["unavailable"] = reasons;
    EXPECT_EQ(contradiction(older), std::nullopt) << path << " as of revision " << revision;
    expect_the_same<T>(older, fmt::format("{} as of revision {}", path.string(), revision),
                       Order::any);
  }
}

/// Of files and folders: how many records of the kind they hold.
template <typename T>
int check_all(const fs::path& folder, const std::string& kind, Order order = Order::of_fields) {
  int found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const Json json = record_at(entry.path());
    if (!json.is_object() || json.value("kind", Json()) != kind) continue;
    expect_the_same<T>(json, entry.path(), order);
    expect_older_ones_to_be_read<T>(json, entry.path());
    ++found;
  }
  return found;
}

const fs::path kSource = SCALEMARK_SOURCE_DIR;

TEST(RoundTrip, OfRuns) {
  EXPECT_GE(check_all<RunResult>(kSource / "tests/record/files", "run"), 4);
  check_all<RunResult>(kSource / "results/baselines", "run");
}

TEST(RoundTrip, OfInferences) {
  EXPECT_GE(check_all<InferenceResult>(kSource / "tests/record/files", "inference"), 2);
  check_all<InferenceResult>(kSource / "results/baselines", "inference");
}

TEST(RoundTrip, OfComparedSets) {
  for (const char* folder : {"tests/record/files", "results/baselines"}) {
    EXPECT_GE(check_all<Comparison>(kSource / folder, "comparison"), 1);
    EXPECT_GE(check_all<Verdict>(kSource / folder, "verdict"), 1);
  }
  EXPECT_GE(check_all<HistoryResult>(kSource / "tests/record/files", "history"), 1);
}

TEST(RoundTrip, OfInstances) {
  EXPECT_EQ(check_all<InstancesResult>(kSource / "tests/record/files", "instances"), 3);
}

TEST(RoundTrip, OfProjections) {
  EXPECT_EQ(check_all<ProjectionResult>(kSource / "tests/record/files", "projection"), 2);
}

TEST(RoundTrip, OfStudies) {
  EXPECT_GE(check_all<StudyResult>(kSource / "results/baselines/studies", "study"), 15);
}

/// Why a record is refused in which one value is another.
template <typename T>
std::string refusal(const fs::path& path, const char* place, const Json& value) {
  Json record = record_at(kSource / path);
  record[Json::json_pointer(place)] = value;
  try {
    record_from<T>(record);
  } catch (const RecordFault& fault) {
    return fault.what();
  }
  return "";
}

TEST(WrongValue, OfInstances) {
  const auto why = [](const char* place, const Json& value) {
    return refusal<InstancesResult>("tests/record/files/instances.json", place, value);
  };
  EXPECT_EQ(why("/points/1/overlap", 2), "/points/1/overlap is 2, not at most 1");
  EXPECT_EQ(why("/points/0/status", "fine"),
            R"(/points/0/status is "fine", not one of )"
            R"(["ok","invalid","failed","interrupted","timeout"])");
  EXPECT_EQ(why("/slots/0/kind", "tpu"),
            R"(/slots/0/kind is "tpu", not one of ["cpu","gpu","mig"])");
  EXPECT_EQ(
      why("/alone/0/repeats/0/instances/0/window_seconds", {1}),
      "/alone/0/repeats/0/instances/0/window_seconds (a list) has a size of 1, not from 2 to 2");
  EXPECT_EQ(why("/points", Json::array()), "/points (a list) has a size of 0, not from 1 to any");
}

TEST(WrongValue, OfAProjection) {
  const auto why = [](const char* place, const Json& value) {
    return refusal<ProjectionResult>("tests/record/files/projection.json", place, value);
  };
  EXPECT_EQ(why("/status", "failed"), R"(/status is "failed", not "ok")");
  EXPECT_EQ(why("/confidence", 1), "/confidence is 1, not below 1");
  EXPECT_EQ(why("/points/0/efficiency_band", nullptr),
            "/points/0/efficiency_band is null, not of type array");
  EXPECT_EQ(why("/fit/points/1/residual_percent", "x"),
            R"(/fit/points/1/residual_percent is "x", not of type number or null)");
}

TEST(WrongValue, OfAStudy) {
  const auto why = [](const char* place, const Json& value) {
    return refusal<StudyResult>("results/baselines/studies/link_rate.json", place, value);
  };
  EXPECT_EQ(why("/figures/0/published/value", "18"),
            R"(/figures/0/published/value is "18", not of type number or null)");
  EXPECT_EQ(why("/figures/0/measured/value", nullptr),
            "/figures/0/measured/value is null, not of type number or string or boolean");
  EXPECT_EQ(why("/steps/0/seconds", -1), "/steps/0/seconds is -1, not at least 0");
  EXPECT_EQ(why("/profile", "small"), R"(/profile is "small", not one of ["laptop","full"])");
}

TEST(RoundTrip, OfCurves) {
  EXPECT_GE(check_all<ScalingCurve>(kSource / "tests/record/files", "scaling"), 3);
  EXPECT_GE(check_all<ScalingCurve>(kSource / "results/baselines", "scaling", Order::any), 4);
}

TEST(RoundTrip, OfACurveThatTellsTheTimesOfItsLaunches) {
  const fs::path path = kSource / "tests/record/files/scaling_of_launches.json";
  Json json = record_at(path);
  json["schema_revision"] = 10;
  for (Json& point : json["points"])
    for (Json& repeat : point["repeats"]) repeat["created_at"] = "2026-11-27T05:36:59.001Z";
  expect_the_same<ScalingCurve>(json, path, Order::any);
  EXPECT_EQ(record_from<ScalingCurve>(json).points[1].repeats[0].created_at,
            std::string("2026-11-27T05:36:59.001Z"));
  json["points"][0]["repeats"][0]["created_at"] = 7;
  EXPECT_THROW(record_from<ScalingCurve>(json), RecordFault);
}

TEST(RoundTrip, OfACurveToWhichAReaderHasAddedKeysThatAreNewer) {
  Json json = record_at(kSource / "tests/record/files/scaling_of_launches.json");
  json["schema_revision"] = 2;
  for (const char* key : {"findings", "settings", "failed_launches", "kept_rounds"})
    json[key] = nullptr;
  for (Json& point : json["points"]) {
    point["exposed_ci95"] = nullptr;
    for (Json& repeat : point["repeats"]) repeat["repeat"] = nullptr;
  }
  const auto curve = record_from<ScalingCurve>(json);
  EXPECT_TRUE(curve.findings.empty());
  EXPECT_TRUE(curve.settings.empty());
  EXPECT_EQ(curve.points[1].repeats[1].repeat, 0);
  json["schema_revision"] = 5;
  EXPECT_THROW(record_from<ScalingCurve>(json), RecordFault) << "it has settings";
}

TEST(RoundTrip, OfACurveThatIsDamagedSaysWhere) {
  const Json good = record_at(kSource / "tests/record/files/scaling_of_launches.json");
  const auto why = [&](const std::string& place, const Json& value) -> std::string {
    Json json = good;
    json[Json::json_pointer(place)] = value;
    try {
      record_from<ScalingCurve>(json);
    } catch (const RecordFault& fault) {
      return fault.what();
    }
    return "";
  };
  EXPECT_EQ(why("/points/1/speedup", 0), "/points/1/speedup is 0, not above 0");
  EXPECT_EQ(why("/points/0/repeats/1/baseline", "no"),
            "/points/0/repeats/1/baseline is \"no\", not of type boolean");
  EXPECT_EQ(why("/resource", "rack"),
            "/resource is \"rack\", not one of "
            "[\"rank\",\"node\",\"core\",\"gpu\"]");
  EXPECT_EQ(why("/points/1/ci95", Json::array({1})),
            "/points/1/ci95 (a list) has a size of 1, not from 2 to 2");
}

TEST(RoundTrip, OfBaselines) {
  EXPECT_GE(check_all<Baseline>(kSource / "tests/record/files", "baseline"), 1);
}

TEST(RoundTrip, OfPreflights) {
  EXPECT_GE(check_all<PreflightResult>(kSource / "tests/record/files", "preflight"), 3);
}

/// What reading says of a committed record whose value at `pointer` became `value`.
std::string contradiction_in(const std::string& file, const std::string& pointer, Json value) {
  Json record = record_at(kSource / "tests/record/files" / file);
  EXPECT_EQ(contradiction(record), std::nullopt) << file;
  record.at(Json::json_pointer(pointer)) = std::move(value);
  return contradiction(record).value_or("");
}

TEST(Contradiction, NamesBothNumbers) {
  Json run = record_at(kSource / "tests/record/files/run_one_rank.json");
  run["steps"] = 2;
  run["units_per_step"] = 10;
  run["wall_seconds"] = 4;
  run["throughput"]["ci95"] = nullptr;
  run["throughput"]["mean"] = 8;
  EXPECT_EQ(contradiction(run),
            "/throughput/mean is 8, not 5.0 = steps x units_per_step / wall_seconds");
}

TEST(Contradiction, IsFoundInEveryKind) {
  const std::pair<std::string, std::pair<std::string, Json>> changes[] = {
      {"run_two_ranks.json", {"/world_size", 3}},
      {"run_two_ranks.json", {"/ranks/1/rank", 0}},
      {"run_two_ranks.json", {"/global_batch_size", 1000}},
      {"run_two_ranks.json", {"/wall_seconds", 1000}},
      {"run_two_ranks.json", {"/steps", 29}},
      {"run_two_ranks.json", {"/step_seconds/p50", 1000}},
      {"run_two_ranks.json", {"/step_seconds/samples/3", 1000}},
      {"run_two_ranks.json", {"/throughput/median", 1e-3}},
      {"run_two_ranks.json", {"/throughput/ci95", {1e-3, 1e-2}}},
      {"run_two_ranks.json", {"/throughput/per_rank_max", 1e-3}},
      {"run_two_ranks.json", {"/created_at", "2020-01-01T00:00:00Z"}},
      {"inference_batch.json", {"/throughput/mean", 1e9}},
      {"inference_batch.json", {"/queries", 1}},
      {"scaling_of_launches.json", {"/points/0/throughput", 1e9}},
      {"scaling_of_launches.json", {"/points/0/repeats/0/units", 1e9}},
      {"scaling_of_launches.json", {"/points/0/global_batch_size", 1000}},
      {"instances.json", {"/points/1/cumulative/mean", 1e9}},
      {"instances.json", {"/points/1/repeats/0/sum_of_rates", 1e9}},
      {"instances.json", {"/points/1/per_instance/0/ratio", 1e9}},
      {"comparison.json", {"/base", "nobody"}},
      {"verdict.json", {"/exit_code", 0}},
      {"verdict.json", {"/verdict", "pass"}},
      {"verdict.json", {"/points/0/regressed", true}},
      {"preflight_six_ranks.json", {"/verdict", "pass"}},
  };
  for (const auto& [file, change] : changes)
    EXPECT_NE(contradiction_in(file, change.first, change.second), "")
        << file << " " << change.first;
}

TEST(Contradiction, IsNoneWhereAValueIsUnknownOrRounded) {
  EXPECT_EQ(contradiction_in("run_two_ranks.json", "/wall_seconds", nullptr), "");
  EXPECT_EQ(contradiction_in("run_two_ranks.json", "/throughput", nullptr), "");
  EXPECT_EQ(contradiction_in("run_two_ranks.json", "/step_seconds", nullptr), "");
  const Json run = record_at(kSource / "tests/record/files/run_two_ranks.json");
  const double mean = run["throughput"]["mean"];
  EXPECT_EQ(contradiction_in("run_two_ranks.json", "/throughput/mean", mean * (1 + 1e-5)), "");
}

TEST(Contradiction, OfTimesCountsWholeSeconds) {
  Json run = record_at(kSource / "tests/record/files/run_two_ranks.json");
  run["started_at"] = "2026-11-20T00:00:01.500Z";
  run["created_at"] = "2026-11-20T00:00:01Z";
  EXPECT_EQ(contradiction(run), std::nullopt);
  run["created_at"] = "2026-11-20T00:00:00Z";
  EXPECT_NE(contradiction(run), std::nullopt);
}

}  // namespace
}  // namespace scalemark::round_trip_test

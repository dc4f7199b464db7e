// Rows of real records, columns that stay, and cells that a reader of CSV takes for what they are.
#include "analysis/flat_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "record/inference.hpp"
#include "record/run.hpp"
#include "record/schema.hpp"
#include "support/doc_table.hpp"

namespace scalemark::flat_rows_test {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;

Json cell(const std::vector<Json>& row, std::string_view name) {
  const auto columns = flat_columns();
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].name == name) return row.at(i);
  throw std::out_of_range("no column");
}

std::vector<Json> cells(const std::vector<std::vector<Json>>& rows, std::string_view name) {
  std::vector<Json> all;
  for (const auto& row : rows) all.push_back(cell(row, name));
  return all;
}

const Json kRun = {{"kind", "run"},
                   {"id", "a"},
                   {"status", "ok"},
                   {"model", "resnet50"},
                   {"world_size", 4},
                   {"throughput", {{"mean", 100.5}, {"ci95", {99, 102}}}},
                   {"placement", {{{"host", "n0"}, {"ranks", 3}}, {{"host", "n1"}, {"ranks", 1}}}},
                   {"warnings", {"slow", "hot"}},
                   {"config", {{"optimizer", {{"value", "sgd"}, {"origin", "default"}}}}}};

TEST(FlatRows, ARunIsARow) {
  const auto rows = flat_rows(kRun, {"a/run.json", {{"ranks", 4}}, 2});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(cell(rows[0], "file"), "a/run.json");
  EXPECT_EQ(cell(rows[0], "row"), "launch");
  EXPECT_EQ(cell(rows[0], "ranks"), 4);
  EXPECT_EQ(cell(rows[0], "throughput_high"), 102);
  EXPECT_EQ(cell(rows[0], "hosts"), "n0:3 n1:1");
  EXPECT_EQ(cell(rows[0], "optimizer"), "sgd");
  EXPECT_EQ(cell(rows[0], "warnings"), "slow; hot");
  EXPECT_EQ(cell(rows[0], "repeat"), 2);
  EXPECT_TRUE(cell(rows[0], "speedup").is_null());
}

TEST(FlatRows, ACurveHasARowAPoint) {
  const Json repeat = {{"baseline", false}}, baseline = {{"baseline", true}};
  const Json curve = {
      {"kind", "scaling"},
      {"status", "ok"},
      {"reason", ""},
      {"points",
       {{{"ranks", 1}, {"throughput", 10}, {"ci95", nullptr}, {"repeats", {repeat}}},
        {{"ranks", 2},
         {"throughput", 19},
         {"efficiency", 0.95},
         {"efficiency_ci95", {0.9, 1.0}},
         {"repeats", {repeat, baseline, repeat}}}}}};
  const auto rows = flat_rows(curve, {"c.json"});
  EXPECT_THAT(cells(rows, "row"), ElementsAre("point", "point"));
  EXPECT_THAT(cells(rows, "ranks"), ElementsAre(1, 2));
  EXPECT_THAT(cells(rows, "efficiency_low"), ElementsAre(nullptr, 0.9));
  EXPECT_THAT(cells(rows, "repeats"), ElementsAre(1, 2));
  EXPECT_THAT(cells(rows, "status"), ElementsAre("ok", "ok"));
}

TEST(FlatRows, InstancesHaveWhatAllOfThemDo) {
  const Json instances = {{"kind", "instances"},
                          {"status", "ok"},
                          {"ranks_per_instance", 2},
                          {"points",
                           {{{"instances", 2},
                             {"status", "failed"},
                             {"cumulative", {{"mean", 12.5}, {"ci95", {12, 13}}}}}}}};
  const auto rows = flat_rows(instances, {"i.json"});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(cell(rows[0], "throughput"), 12.5);
  EXPECT_EQ(cell(rows[0], "throughput_low"), 12);
  EXPECT_EQ(cell(rows[0], "ranks"), 2);
  EXPECT_EQ(cell(rows[0], "status"), "failed");
}

TEST(FlatRows, ACurveWithoutPointsStillSaysWhy) {
  const Json curve = {
      {"kind", "scaling"}, {"status", "failed"}, {"reason", "no"}, {"points", Json::array()}};
  const auto rows = flat_rows(curve, {"c.json"});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(cell(rows[0], "reason"), "no");
}

TEST(FlatRows, ALaunchWithoutARecordIsWhatTheJournalTells) {
  JournalEntry entry;
  entry.status = "timeout";
  entry.reason = "hung";
  entry.seconds = 30;
  const auto row = flat_row(entry, {"journal.jsonl", {{"ranks", 2}}, 3});
  EXPECT_EQ(cell(row, "status"), "timeout");
  EXPECT_EQ(cell(row, "wall_seconds"), 30);
  EXPECT_EQ(cell(row, "settings"), Json({{"ranks", 2}}));
  EXPECT_TRUE(cell(row, "throughput").is_null());
}

TEST(FlatRows, CsvQuotesWhatWouldBeTwoCells) {
  Json run = kRun;
  run["reason"] = "said \"no\",\nand left";
  run["warnings"] = Json::array();
  const std::string line = csv_line(flat_rows(run, {"a,b.json", {{"x", 1}}})[0]);
  EXPECT_THAT(line, HasSubstr(",\"said \"\"no\"\",\nand left\","));
  EXPECT_TRUE(line.starts_with("\"a,b.json\",launch,run,a,ok,"));
  EXPECT_THAT(line, HasSubstr(",\"{\"\"x\"\":1}\","));
  EXPECT_TRUE(line.ends_with("\r\n"));
}

TEST(FlatRows, ACellIsNoFormulaAndNoCommandOfATerminal) {
  Json run = kRun;
  run["reason"] = "=HYPERLINK(1)";
  run["warnings"] = {"\x1b]0;owned\x07"};
  const std::string line = csv_line(flat_rows(run, {"a"})[0]);
  EXPECT_THAT(line, HasSubstr(",'=HYPERLINK(1),"));
  EXPECT_THAT(line, HasSubstr("\\u001b]0;owned\\u0007"));
}

TEST(FlatRows, ALineOfJsonHasEveryColumn) {
  const Json line = Json::parse(json_line(flat_rows(kRun, {"a"})[0]));
  EXPECT_EQ(line.size(), flat_columns().size());
  EXPECT_TRUE(line["speedup"].is_null());
  EXPECT_EQ(line["throughput"], 100.5);
}

TEST(FlatRows, ColumnsHaveTheirPlacesAndAreNamedOnce) {
  std::set<std::string> names;
  int place = 0;
  for (const FlatColumn& column : flat_columns()) {
    EXPECT_TRUE(names.insert(column.name).second) << column.name;
    EXPECT_EQ(column.place, place++) << column.name << ": no column has the place before it";
  }
}

/// Of two fields that claim one place the first alone would have it.
TEST(FlatRows, EveryFieldWithAColumnHasItsOwn) {
  const auto columns = flat_columns();
  const auto check = [&](const Field& field, const std::string& pointer) {
    if (!field.exported) return;
    const FlatColumn& column = columns[static_cast<std::size_t>(field.exported->place)];
    EXPECT_TRUE(column.name.starts_with(field.exported->name)) << pointer;
  };
  visit_fields(fields_of<RunResult>(), check);
  visit_fields(fields_of<InferenceResult>(), check);
}

TEST(FlatRows, AColumnIsDescribedWithItsField) {
  Json run = kRun;
  run["step_seconds"] = {{"p90", 0.25}};
  run["phases"] = {{"seconds", {{"forward", 0.1}}}, {"fractions", {{"forward", 0.4}}}};
  run["ranks"] = {{{"threads", 3}}, {{"threads", 4}}};
  const auto row = flat_rows(run, {"a"})[0];
  EXPECT_EQ(cell(row, "step_seconds_p90"), 0.25);
  EXPECT_EQ(cell(row, "forward_seconds"), 0.1);
  EXPECT_EQ(cell(row, "threads"), 3);
  EXPECT_EQ(cell(row, "throughput_low"), 99);
}

TEST(FlatRows, TheDocumentListsTheColumnsInOrder) {
  std::string table = "| column | |\n| --- | --- |\n";
  for (const FlatColumn& column : flat_columns())
    table += "| `" + column.name + "` | " + column.about + " |\n";
  test::expect_on_page("export.md", "columns", table);
}

}  // namespace
}  // namespace scalemark::flat_rows_test

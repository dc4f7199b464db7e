// See flat_rows.hpp.
#include "analysis/flat_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "config/text.hpp"
#include "record/inference.hpp"
#include "record/run.hpp"
#include "record/schema.hpp"

namespace scalemark {
namespace {

using Pointer = std::optional<Json::json_pointer>;

constexpr std::array kKinds{"run", "inference", "scaling", "instances"};

/// A column that is no field of a run or an inference.
struct OtherColumn {
  int place;
  const char* name;
  const char* launch;  ///< as FlatColumn
  const char* about;
};
constexpr OtherColumn kOtherColumns[] = {
    {0, "file", "",
     "path of the record, below the PATH that was given; of the journal where there is none"},
    {1, "row", "",
     "`launch`: a run or an inference; `point`: of a curve or of instances, over its repeats"},
    {9, "settings", "", "of the sweep, that make the point differ: an object"},
    {10, "repeat", "", "of the launch in its sweep"},
    {16, "instances", "", "jobs side by side"},
    {17, "hosts", "", "ranks of each, `n0:2 n1:2`"},
    {21, "micro_batch_size", "/config/micro_batch_size/value", "samples"},
    {22, "sequence_length", "/config/sequence_length/value", "tokens"},
    {24, "optimizer", "/config/optimizer/value", ""},
    {31, "bucket_mb", "/config/bucket_mb/value", ""},
    {32, "repeats", "", "that the point is made of"},
    {33, "repeat_unit", "", "`launch` or `in_process`"},
    {41, "speedup", "", ""},
    {42, "speedup_low", "", ""},
    {43, "speedup_high", "", ""},
    {44, "efficiency", "", ""},
    {45, "efficiency_low", "", ""},
    {46, "efficiency_high", "", ""},
    {91, "warnings", "", "between semicolons"},
};

/// Where curves and instances have what a column tells, if not where launches have it.
struct CurvePlace {
  const char* column;
  const char *point, *curve;  ///< as FlatColumn
};
constexpr CurvePlace kCurvePlaces[] = {
    {"status", "/status", ""},
    {"reason", "/reason", ""},
    {"settings", "", "/settings"},
    {"mode", "", "/config/mode/value"},
    {"ranks", "/ranks", "/ranks_per_instance"},
    {"instances", "/instances", ""},
    {"batch_size_per_rank", "/batch_size_per_rank", ""},
    {"global_batch_size", "/global_batch_size", ""},
    {"precision", "", "/config/precision/value"},
    {"device", "", "/config/device/value"},
    {"communicator", "", "/config/communicator/value"},
    {"reducer", "", "/config/reducer/value"},
    {"wire_dtype", "", "/config/wire_dtype/value"},
    {"overlap", "", "/config/overlap/value"},
    {"repeat_unit", "", "/repeat_unit"},
    {"throughput", "/throughput", ""},
    {"throughput_low", "/ci95/0", ""},
    {"throughput_high", "/ci95/1", ""},
    {"baseline_throughput", "/baseline_throughput", ""},
    {"speedup", "/speedup", ""},
    {"speedup_low", "/speedup_ci95/0", ""},
    {"speedup_high", "/speedup_ci95/1", ""},
    {"efficiency", "/efficiency", ""},
    {"efficiency_low", "/efficiency_ci95/0", ""},
    {"efficiency_high", "/efficiency_ci95/1", ""},
    {"exposed_seconds", "/exposed_seconds", ""},
    {"exposed_method", "/exposed_method", ""},
};

Pointer pointer_from(const std::string& text) {
  return text.empty() ? Pointer() : Pointer(Json::json_pointer(text));
}

std::vector<FlatColumn> made_columns() {
  std::map<int, FlatColumn> columns;
  const auto add = [&](int place, const std::string& name, const char* about,
                       const std::string& launch) {
    // A struct that a record holds twice, phases in seconds and as fractions, is meant once.
    columns.try_emplace(place, FlatColumn{place, name, about, pointer_from(launch), {}, {}});
  };
  for (const auto& [place, name, launch, about] : kOtherColumns) add(place, name, about, launch);
  const auto add_field = [&](const Field& field, const std::string& pointer) {
    if (!field.exported) return;
    const auto& [place, name, about] = *field.exported;
    if (field.shape != &shape_of<Known<Interval>>()) return add(place, name, about, pointer);
    add(place, std::string(name) + "_low", about, pointer + "/0");
    add(place + 1, std::string(name) + "_high", "", pointer + "/1");
  };
  visit_fields(fields_of<RunResult>(), add_field);
  visit_fields(fields_of<InferenceResult>(), add_field);
  std::vector<FlatColumn> list;
  for (auto& [place, column] : columns) {
    for (const auto& [name, point, curve] : kCurvePlaces)
      if (column.name == name) {
        column.point = pointer_from(point);
        column.curve = pointer_from(curve);
      }
    list.push_back(std::move(column));
  }
  return list;
}

Json value_at(const Json& json, const Pointer& place) {
  return place && json.contains(*place) ? json.at(*place) : nullptr;
}

/// "n0:2 n1:2"
Json hosts_of(const Json& record) {
  std::vector<std::string> hosts;
  for (const Json& place : value_at(record, "/placement"_json_pointer))
    hosts.push_back(
        fmt::format("{}:{}", place.at("host").get<std::string>(), place.at("ranks").dump()));
  return hosts.empty() ? Json() : Json(join(hosts, " "));
}

Json warnings_of(const Json& record) {
  if (!record.contains("warnings")) return nullptr;
  std::vector<std::string> all;
  for (const Json& warning : value_at(record, "/warnings"_json_pointer)) all.push_back(warning);
  return join(all, "; ");
}

/// What only a place or a whole record tells.
Json of_record(std::string_view column, const Json& record, const FlatPlace& place) {
  if (column == "file") return place.file;
  if (column == "settings") return place.settings;
  if (column == "repeat") return place.repeat;
  if (column == "hosts") return hosts_of(record);
  if (column == "warnings") return warnings_of(record);
  return nullptr;
}

std::vector<Json> row_of_launch(const Json& record, const FlatPlace& place) {
  std::vector<Json> row;
  for (const FlatColumn& column : flat_columns())
    row.push_back(column.name == "row" ? Json("launch")
                  : column.launch      ? value_at(record, column.launch)
                                       : of_record(column.name, record, place));
  return row;
}

/// Repeats with communication; of instances all.
Json repeat_count(const Json& point) {
  std::int64_t repeats = 0;
  for (const Json& repeat : value_at(point, "/repeats"_json_pointer))
    repeats += !repeat.value("baseline", false);
  return repeats;
}

/// Names that the points of curves and of instances have in common.
Json with_common_names(Json point) {
  if (!point.contains("cumulative")) return point;
  point["throughput"] = point["cumulative"]["mean"];
  point["ci95"] = point["cumulative"]["ci95"];
  return point;
}

std::vector<Json> row_of_point(const Json& point, const Json& record, const FlatPlace& place) {
  std::vector<Json> row;
  for (const FlatColumn& column : flat_columns()) {
    Json value = column.name == "row"       ? Json("point")
                 : column.name == "repeats" ? repeat_count(point)
                                            : value_at(point, column.point);
    if (value.is_null()) value = value_at(record, column.curve ? column.curve : column.launch);
    if (value.is_null()) value = of_record(column.name, record, place);
    row.push_back(std::move(value));
  }
  return row;
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  const std::string text = value.is_string()
                               ? value.get<std::string>()
                               : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::span<const FlatColumn> flat_columns() {
  static const std::vector<FlatColumn> columns = made_columns();
  return columns;
}

bool has_flat_rows(const std::string& kind) {
  return std::ranges::find(kKinds, kind) != kKinds.end();
}

std::vector<std::vector<Json>> flat_rows(const Json& record, const FlatPlace& place) {
  if (!record.contains("points")) return {row_of_launch(record, place)};
  std::vector<std::vector<Json>> rows;
  for (const Json& point : record.at("points"))
    rows.push_back(row_of_point(with_common_names(point), record, place));
  if (rows.empty()) rows.push_back(row_of_point(Json::object(), record, place));
  return rows;
}

std::vector<Json> flat_row(const JournalEntry& entry, const FlatPlace& place) {
  const Json known{{"status", entry.status},           {"reason", entry.reason},
                   {"created_at", entry.started_at},   {"wall_seconds", entry.seconds},
                   {"config_hash", entry.config_hash}, {"build", {{"revision", entry.revision}}}};
  return row_of_launch(known, place);
}

std::string csv_header() {
  std::vector<std::string> names;
  for (const FlatColumn& column : flat_columns()) names.emplace_back(column.name);
  return join(names, ",") + "\r\n";
}

std::string csv_line(const std::vector<Json>& row) {
  std::vector<std::string> cells;
  for (const Json& value : row) cells.push_back(csv_cell(value));
  return join(cells, ",") + "\r\n";
}

std::string json_line(const std::vector<Json>& row) {
  Json object = Json::object();
  for (std::size_t i = 0; i < row.size(); ++i) object[flat_columns()[i].name] = row[i];
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace scalemark

// Makes rows of a table from records.
#include "analysis/flat_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "config/text.hpp"
#include "record/inference.hpp"
#include "record/instances.hpp"
#include "record/read.hpp"
#include "record/run.hpp"
#include "record/scaling.hpp"
#include "record/schema.hpp"

namespace scalemark {
namespace {

using Pointers = std::vector<Json::json_pointer>;

constexpr std::array kKinds{"run", "inference", "scaling", "instances"};

/// A column that is no field of a record.
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
    {17, "hosts", "", "ranks of each, `n0:2 n1:2`"},
    {21, "micro_batch_size", "/config/micro_batch_size/value", "samples"},
    {22, "sequence_length", "/config/sequence_length/value", "tokens"},
    {24, "optimizer", "/config/optimizer/value", ""},
    {31, "bucket_mb", "/config/bucket_mb/value", ""},
    {32, "repeats", "", "that the point is made of"},
    {91, "warnings", "", "between semicolons"},
    {92, "label", "/config/label/value", "what `--label` said"},
    {93, "shard", "/config/shard/value", "what is divided among the ranks"},
    {94, "exposed_reduce_scatter_seconds", "", "of a step of a curve with `--shard`"},
    {95, "exposed_allgather_seconds", "", "likewise"},
    {96, "exposed_allreduce_seconds", "", "likewise, between the groups of `--shard_ranks`"},
};

/// A curve and instances repeat what was asked for of these; a launch alone tells what came of it.
constexpr const char* kAskedColumns[] = {"model",        "mode",    "precision",  "device",
                                         "communicator", "reducer", "wire_dtype", "overlap",
                                         "label",        "shard"};

Pointers pointer_from(const std::string& text) {
  return text.empty() ? Pointers() : Pointers{Json::json_pointer(text)};
}

/// The columns by their places while they are put together.
class ColumnMaker {
 public:
  void add(int place, const std::string& name, const char* about, const std::string& launch) {
    // A struct that a record holds twice, phases in seconds and as fractions, is meant once.
    columns_.try_emplace(place, FlatColumn{place, name, about, pointer_from(launch), {}, {}});
  }

  /// Adds the columns of a kind of record, or of its points: `where` says where a column has its
  /// value.
  void add_fields(const Fields& fields, Pointers FlatColumn::*where) {
    visit_fields(fields, [&](const Field& field, const std::string& pointer) {
      if (!field.exported || pointer.starts_with("/points/")) return;
      const auto& [place, name, about] = *field.exported;
      if (field.shape != &shape_of<Known<Interval>>())
        return add_field({place, name, about, {}, {}, {}}, where, pointer);
      add_field({place, std::string(name) + "_low", about, {}, {}, {}}, where, pointer + "/0");
      add_field({place + 1, std::string(name) + "_high", "", {}, {}, {}}, where, pointer + "/1");
    });
  }

  std::vector<FlatColumn> list() {
    std::vector<FlatColumn> list;
    for (auto& [place, column] : columns_) {
      if (std::ranges::find(kAskedColumns, column.name) != std::end(kAskedColumns))
        column.curve = pointer_from("/config/" + column.name + "/value");
      list.push_back(std::move(column));
    }
    return list;
  }

 private:
  void add_field(const FlatColumn& column, Pointers FlatColumn::*where,
                 const std::string& pointer) {
    Pointers& places = columns_.try_emplace(column.place, column).first->second.*where;
    if (where != &FlatColumn::launch || places.empty()) places.emplace_back(pointer);
  }

  std::map<int, FlatColumn> columns_;
};

std::vector<FlatColumn> made_columns() {
  ColumnMaker maker;
  for (const auto& [place, name, launch, about] : kOtherColumns)
    maker.add(place, name, about, launch);
  maker.add_fields(fields_of<RunResult>(), &FlatColumn::launch);
  maker.add_fields(fields_of<InferenceResult>(), &FlatColumn::launch);
  maker.add_fields(fields_of<record::ScalingPoint>(), &FlatColumn::point);
  maker.add_fields(fields_of<record::InstancesPoint>(), &FlatColumn::point);
  maker.add_fields(fields_of<ScalingCurve>(), &FlatColumn::curve);
  maker.add_fields(fields_of<InstancesResult>(), &FlatColumn::curve);
  return maker.list();
}

/// The first of the places that has a value; null where none has.
Json value_at(const Json& json, const Pointers& places) {
  for (const Json::json_pointer& place : places)
    if (json.contains(place) && !json.at(place).is_null()) return json.at(place);
  return nullptr;
}

/// "n0:2 n1:2"
Json hosts_of(const Json& record) {
  std::vector<std::string> hosts;
  for (const Json& part : value_at(record, {"/placement"_json_pointer})) {
    const auto place = part_from<record::HostRanks>(part);
    hosts.push_back(fmt::format("{}:{}", place.host, place.ranks));
  }
  return hosts.empty() ? Json() : Json(join(hosts, " "));
}

Json warnings_of(const Json& record) {
  if (!record.contains("warnings")) return nullptr;
  const Json warnings = value_at(record, {"/warnings"_json_pointer});
  return warnings.is_null() ? "" : join(warnings.get<std::vector<std::string>>(), "; ");
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
    row.push_back(column.name == "row"    ? Json("launch")
                  : column.launch.empty() ? of_record(column.name, record, place)
                                          : value_at(record, column.launch));
  return row;
}

/// Repeats with communication; of instances all.
Json repeat_count(const Json& point) {
  std::int64_t repeats = 0;
  for (const Json& repeat : value_at(point, {"/repeats"_json_pointer}))
    repeats += !repeat.value("baseline", false);
  return repeats;
}

/// What leaving a collective out showed; null for another column.
Json exposed_of(const std::string& column, const Json& point) {
  for (const Json& exposed : value_at(point, {"/exposed_collectives"_json_pointer}))
    if (column == "exposed_" + exposed.value("collective", "") + "_seconds")
      return exposed.value("exposed_seconds", Json());
  return nullptr;
}

std::vector<Json> row_of_point(const Json& point, const Json& record, const FlatPlace& place) {
  std::vector<Json> row;
  for (const FlatColumn& column : flat_columns()) {
    Json value = column.name == "row"       ? Json("point")
                 : column.name == "repeats" ? repeat_count(point)
                                            : value_at(point, column.point);
    if (value.is_null()) value = exposed_of(column.name, point);
    if (value.is_null())
      value = value_at(record, column.curve.empty() ? column.launch : column.curve);
    if (value.is_null()) value = of_record(column.name, record, place);
    row.push_back(std::move(value));
  }
  return row;
}

/// A text that a spreadsheet would take for a formula begins with an apostrophe, and control
/// characters, which a terminal would obey, are escaped as in JSON.
std::string harmless(const std::string& text) {
  std::string cell;
  if (!text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos)
    cell += '\'';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    const bool obeyed = (code < 0x20 && c != '\n') || code == 0x7f;
    cell += obeyed ? fmt::format("\\u{:04x}", code) : std::string(1, c);
  }
  return cell;
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  const std::string text = value.is_string()
                               ? harmless(value.get_ref<const std::string&>())
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
  const Json points = value_at(record, {"/points"_json_pointer});
  if (points.is_null()) return {row_of_launch(record, place)};
  std::vector<std::vector<Json>> rows;
  for (const Json& point : points) rows.push_back(row_of_point(point, record, place));
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

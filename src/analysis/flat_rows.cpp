// See flat_rows.hpp.
#include "analysis/flat_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/text.hpp"

namespace scalemark {
namespace {

constexpr std::array kKinds{"run", "inference", "scaling", "instances"};

constexpr auto kColumns = std::to_array<FlatColumn>({
    {"file", "", "", "",
     "path of the record, below the PATH that was given; of the journal where there is none"},
    {"row", "", "", "",
     "`launch`: a run or an inference; `point`: of a curve or of instances, over its repeats"},
    {"kind", "/kind", "", "/kind", "of the record"},
    {"id", "/id", "", "/id", "of the record; a run that belongs to a curve has a row of its own"},
    {"status", "/status", "/status", "/status", ""},
    {"reason", "/reason", "/reason", "/reason", "why the status is not ok"},
    {"created_at", "/created_at", "", "/created_at", "UTC"},
    {"wall_seconds", "/wall_seconds", "", "", ""},
    {"revision", "/build/revision", "", "/build/revision", "of the build"},
    {"settings", "", "", "/settings", "of the sweep, that make the point differ: an object"},
    {"repeat", "", "", "", "of the launch in its sweep"},
    {"model", "/model", "", "/model", ""},
    {"unit", "/unit", "", "/unit", "of throughput, speedup's numbers and latencies' queries"},
    {"mode", "/mode", "", "/config/mode/value", "of an inference"},
    {"scaling", "/scaling", "", "/scaling", ""},
    {"ranks", "/world_size", "/ranks", "/ranks_per_instance",
     "of an instance where it is one of several jobs"},
    {"instances", "", "/instances", "", "jobs side by side"},
    {"hosts", "", "", "", "ranks of each, `n0:2 n1:2`"},
    {"threads", "/ranks/0/threads", "", "", "of rank 0"},
    {"batch_size_per_rank", "/batch_size_per_rank", "/batch_size_per_rank", "", "samples"},
    {"global_batch_size", "/global_batch_size", "/global_batch_size", "", "samples"},
    {"micro_batch_size", "/config/micro_batch_size/value", "", "/config/micro_batch_size/value",
     "samples"},
    {"sequence_length", "/config/sequence_length/value", "", "/config/sequence_length/value",
     "tokens"},
    {"precision", "/precision", "", "/config/precision/value", ""},
    {"optimizer", "/config/optimizer/value", "", "/config/optimizer/value", ""},
    {"device", "/device", "", "/config/device/value", ""},
    {"communicator", "/communication/communicator", "", "/config/communicator/value", ""},
    {"transport", "/communication/transport", "", "", ""},
    {"reducer", "/communication/reducer", "", "/config/reducer/value", ""},
    {"wire_dtype", "/communication/wire_dtype", "", "/config/wire_dtype/value", ""},
    {"overlap", "/communication/overlap", "", "/config/overlap/value", ""},
    {"bucket_mb", "/config/bucket_mb/value", "", "/config/bucket_mb/value", ""},
    {"repeats", "", "", "", "that the point is made of"},
    {"repeat_unit", "", "", "/repeat_unit", "`launch` or `in_process`"},
    {"throughput", "/throughput/mean", "/throughput", "",
     "units a second of all ranks, or of all instances"},
    {"throughput_low", "/throughput/ci95/0", "/ci95/0", "", "of the 95 % interval"},
    {"throughput_high", "/throughput/ci95/1", "/ci95/1", "", ""},
    {"throughput_median", "/throughput/median", "", "", ""},
    {"throughput_jitter", "/throughput/jitter", "", "", ""},
    {"partial_throughput", "/partial_throughput", "", "", "of a run that was interrupted"},
    {"baseline_throughput", "/communication/baseline_throughput", "/baseline_throughput", "",
     "of the same ranks without communication"},
    {"speedup", "", "/speedup", "", ""},
    {"speedup_low", "", "/speedup_ci95/0", "", ""},
    {"speedup_high", "", "/speedup_ci95/1", "", ""},
    {"efficiency", "", "/efficiency", "", ""},
    {"efficiency_low", "", "/efficiency_ci95/0", "", ""},
    {"efficiency_high", "", "/efficiency_ci95/1", "", ""},
    {"steps", "/steps", "", "", ""},
    {"step_seconds_mean", "/step_seconds/mean", "", "", ""},
    {"step_seconds_p50", "/step_seconds/p50", "", "", ""},
    {"step_seconds_p90", "/step_seconds/p90", "", "", ""},
    {"step_seconds_p99", "/step_seconds/p99", "", "", ""},
    {"queries", "/queries", "", "", "of an inference"},
    {"latency_seconds_mean", "/latency_seconds/mean", "", "", ""},
    {"latency_seconds_p50", "/latency_seconds/p50", "", "", ""},
    {"latency_seconds_p90", "/latency_seconds/p90", "", "", ""},
    {"latency_seconds_p99", "/latency_seconds/p99", "", "", ""},
    {"latency_seconds_p99_9", "/latency_seconds/p99_9", "", "", ""},
    {"communication_seconds", "/communication/total_seconds", "", "", "of a step"},
    {"exposed_seconds", "/communication/exposed_seconds", "/exposed_seconds", "", "of a step"},
    {"exposed_method", "/communication/exposed_method", "/exposed_method", "", ""},
    {"overlap_fraction", "/communication/overlap_fraction", "", "", ""},
    {"bytes_per_step", "/communication/bytes_per_step", "", "", ""},
    {"wire_bytes_per_step", "/communication/wire_bytes_per_step", "", "", ""},
    {"nic_bytes_per_step", "/communication/nic_bytes_per_step", "", "", ""},
    {"messages_per_step", "/communication/messages_per_step", "", "", ""},
    {"input_seconds", "/phases/seconds/input", "", "", "phases of a step"},
    {"forward_seconds", "/phases/seconds/forward", "", "", ""},
    {"backward_seconds", "/phases/seconds/backward", "", "", ""},
    {"waiting_seconds", "/phases/seconds/communication", "", "", "for communication"},
    {"optimizer_seconds", "/phases/seconds/optimizer", "", "", ""},
    {"checkpoint_seconds", "/phases/seconds/checkpoint", "", "", ""},
    {"loss_first", "/loss/first", "", "", ""},
    {"loss_last", "/loss/last", "", "", ""},
    {"loss_diverged", "/loss/diverged", "", "", ""},
    {"parameters", "/parameters", "", "", ""},
    {"achieved_flops", "/achieved_flops", "", "", "a second, of all ranks"},
    {"roofline_fraction", "/roofline/fraction", "", "", ""},
    {"peak_rss_bytes", "/memory/peak_rss_bytes", "", "", ""},
    {"peak_gpu_bytes", "/memory/peak_gpu_bytes", "", "", ""},
    {"joules_per_sample", "/energy/joules_per_sample", "", "", ""},
    {"foreign_cpus", "/noise/foreign/cpus", "", "", "that others used meanwhile"},
    {"host", "/system/host", "", "/system/host", "of rank 0"},
    {"cpu_model", "/system/cpu_model", "", "/system/cpu_model", ""},
    {"gpu", "/ranks/0/gpu", "", "", "of rank 0"},
    {"virtualisation", "/system/virtualisation", "", "/system/virtualisation", ""},
    {"kernel", "/system/kernel", "", "/system/kernel", ""},
    {"mpi", "/system/mpi", "", "/system/mpi", ""},
    {"cuda", "/system/cuda", "", "/system/cuda", ""},
    {"nccl", "/system/nccl", "", "/system/nccl", ""},
    {"config_hash", "/config_hash", "", "/config_hash", ""},
    {"warnings", "", "", "", "between semicolons"},
});

Json value_at(const Json& json, std::string_view pointer) {
  if (pointer.empty()) return nullptr;
  const Json::json_pointer place{std::string(pointer)};
  return json.contains(place) ? json.at(place) : nullptr;
}

/// "n0:2 n1:2"
Json hosts_of(const Json& record) {
  std::vector<std::string> hosts;
  for (const Json& place : value_at(record, "/placement"))
    hosts.push_back(
        fmt::format("{}:{}", place.at("host").get<std::string>(), place.at("ranks").dump()));
  return hosts.empty() ? Json() : Json(join(hosts, " "));
}

Json warnings_of(const Json& record) {
  if (!record.contains("warnings")) return nullptr;
  std::vector<std::string> all;
  for (const Json& warning : value_at(record, "/warnings")) all.push_back(warning);
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
  for (const FlatColumn& column : kColumns)
    row.push_back(column.name == "row"    ? Json("launch")
                  : column.launch.empty() ? of_record(column.name, record, place)
                                          : value_at(record, column.launch));
  return row;
}

/// Repeats with communication; of instances all.
Json repeat_count(const Json& point) {
  std::int64_t repeats = 0;
  for (const Json& repeat : value_at(point, "/repeats"))
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
  for (const FlatColumn& column : kColumns) {
    Json value = column.name == "row"       ? Json("point")
                 : column.name == "repeats" ? repeat_count(point)
                                            : value_at(point, column.point);
    if (value.is_null()) value = value_at(record, column.curve);
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

std::span<const FlatColumn> flat_columns() { return kColumns; }

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
  for (const FlatColumn& column : kColumns) names.emplace_back(column.name);
  return join(names, ",") + "\r\n";
}

std::string csv_line(const std::vector<Json>& row) {
  std::vector<std::string> cells;
  for (const Json& value : row) cells.push_back(csv_cell(value));
  return join(cells, ",") + "\r\n";
}

std::string json_line(const std::vector<Json>& row) {
  Json object = Json::object();
  for (std::size_t i = 0; i < row.size(); ++i) object[std::string(kColumns[i].name)] = row[i];
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace scalemark

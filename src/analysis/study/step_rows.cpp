// See step_rows.hpp.
#include "analysis/study/step_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/flat_rows.hpp"
#include "config/input_file.hpp"
#include "config/json_text.hpp"
#include "error.hpp"
#include "result/records.hpp"
#include "result/sweep_folder.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

Json columns_of(const std::vector<Json>& row) {
  Json columns = Json::object();
  for (std::size_t i = 0; i < row.size(); ++i)
    columns[std::string(flat_columns()[i].name)] = row[i];
  return columns;
}

/// The repeats of a curve's point or of instances: their throughput, with what else the point is.
void add_rounds(std::vector<StepRow>& rows, const StepRow& point) {
  const auto repeats = point.part.find("repeats");
  if (repeats == point.part.end()) return;
  std::int64_t number = 0, baselines = 0;
  for (const Json& repeat : *repeats) {
    StepRow row = point;
    const bool baseline = repeat.value("baseline", false);
    const std::int64_t place = ++(baseline ? baselines : number);
    const Json own = repeat.value("repeat", Json());
    row.repeat = own.is_number_integer() ? own.get<std::int64_t>() : place;
    row.part = repeat;
    row.part["baseline"] = baseline;
    row.columns["throughput"] = repeat.at("throughput");
    row.of_round = true;
    rows.push_back(std::move(row));
  }
}

/// Each slot of instances without neighbours.
void add_alone(std::vector<StepRow>& rows, const Json& record) {
  for (const Json& slot : record.at("alone")) {
    StepRow row{.columns = {{"alone", true},
                            {"slot", slot.at("slot")},
                            {"throughput", slot.at("throughput")}},
                .part = slot};
    rows.push_back(row);
    add_rounds(rows, row);
  }
}

/// A row for each element of `record[list]`.
std::vector<StepRow> parts_of(const Json& record, const char* list) {
  std::vector<StepRow> rows;
  for (const Json& part : record.at(list)) rows.push_back({.part = part});
  return rows;
}

/// Launches of an earlier plan stay in a sweep's folder.
bool is_planned(const JournalEntry& entry, const std::optional<PlannedLaunches>& planned) {
  return !planned || (entry.repeat <= planned->repeats &&
                      std::ranges::find(planned->points, entry.point,
                                        &PlannedLaunches::Point::id) != planned->points.end());
}

std::vector<StepRow> launches_of(const fs::path& folder, const std::string& revision) {
  const auto planned = read_planned(folder);
  std::vector<StepRow> rows;
  for (const JournalEntry& entry : last_entries(read_journal(journal_of(folder)))) {
    if (entry.record.empty() || entry.revision != revision || !is_planned(entry, planned)) continue;
    for (StepRow& row : step_rows(record_of(folder, entry))) {
      row.settings = entry.settings;
      row.repeat = entry.repeat;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

Json StepRow::value(const std::string& name) const {
  if (settings.contains(name)) return settings[name];
  if (columns.contains(name) && !columns[name].is_null()) return columns[name];
  return part.is_object() ? part.value(name, Json()) : Json();
}

std::vector<StepRow> step_rows(const Json& record) {
  const std::string kind = record.value("kind", "plan");
  if (kind == "preflight") return parts_of(record, "checks");
  if (!has_flat_rows(kind)) return parts_of(record, "points");
  const auto flat = flat_rows(record, {});
  std::vector<StepRow> rows;
  for (std::size_t i = 0; i < flat.size(); ++i) {
    const bool point = record.contains("points") && i < record["points"].size();
    rows.push_back({.columns = columns_of(flat[i]), .part = point ? record["points"][i] : record});
  }
  for (std::size_t i = 0; i < flat.size(); ++i) add_rounds(rows, StepRow(rows[i]));
  if (kind == "instances") add_alone(rows, record);
  return rows;
}

std::vector<StepRow> read_step_rows(const fs::path& result, const std::string& revision) {
  return fs::is_directory(result) ? launches_of(result, revision) : step_rows(read_record(result));
}

std::vector<StepRow> read_plan_rows(const fs::path& plan) {
  try {
    return step_rows(parse_json_text(read_input_file(plan, kLargestRecord), kDeepestRecord));
  } catch (const InputFault& fault) {
    throw ResultError(fmt::format("{}: {}", plan.string(), fault.what()));
  } catch (const JsonFault& fault) {
    throw ResultError(fmt::format("{}: not JSON: {}", plan.string(), fault.what()));
  }
}

}  // namespace scalemark

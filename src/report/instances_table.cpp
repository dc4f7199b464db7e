// Prints what the record of `instances` says, for people.
#include <fmt/format.h>

#include "report/console.hpp"
#include "report/shown_text.hpp"
#include "report/tables.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using Row = std::vector<std::string>;

std::string fixed(const Known<double>& number) {
  return number ? fmt::format("{:.3f}", *number) : "-";
}

std::string rate(const Known<double>& number) { return number ? four_digits(*number) : "-"; }

std::string milliseconds_cell(const Known<double>& seconds) {
  return seconds ? four_digits(1000 * *seconds) : "-";
}

std::string place_of(const std::string& cpus, const Known<std::string>& gpu_uuid) {
  if (gpu_uuid) return shown(*gpu_uuid);
  return (cpus.find_first_of(",-") == cpus.npos ? "CPU " : "CPUs ") + shown(cpus);
}

/// Returns the places of a slot. Hosts are named where a slot is on several.
std::string places_of(const record::Slot& slot) {
  if (!slot.places || slot.places->size() < 2)
    return place_of(slot.cpus.value_or("?"), slot.gpu_uuid);
  std::string text;
  for (const record::Place& place : *slot.places)
    text += (text.empty() ? "" : " + ") + (slot.cpus ? "" : shown(place.host) + ": ") +
            place_of(place.cpus, place.gpu_uuid);
  return text;
}

std::string point_table(const InstancesResult& result) {
  std::vector<Row> rows{{"instances", shown(result.unit), "x slot 0", "of alone", "overlap"}};
  for (const record::InstancesPoint& point : result.points)
    rows.push_back(
        {std::to_string(point.instances),
         point.cumulative ? four_digits(point.cumulative->mean) : to_string(point.status),
         fixed(point.speedup), fixed(point.efficiency),
         fixed(point.overlap) + (point.overlaps_enough == false ? "!" : "")});
  return text_table(rows);
}

std::string instance_table(const InstancesResult& result) {
  std::vector<Row> rows{{"instances", "slot", "on", "alone", shown(result.unit), "of alone",
                         "p50 ms alone", "p50", "p90", "p99 ms alone", "p99"}};
  for (const record::InstancesPoint& point : result.points)
    for (const record::SlotOfPoint& slot : point.per_instance) {
      const auto alone = slot.alone_latency_seconds.value_or({});
      const record::LatencyQuantiles& with = slot.latency_seconds;
      rows.push_back({std::to_string(point.instances), std::to_string(slot.slot),
                      places_of(result.slots.at(slot.slot)), rate(slot.alone),
                      four_digits(slot.throughput), fixed(slot.ratio), milliseconds_cell(alone.p50),
                      milliseconds_cell(with.p50), milliseconds_cell(with.p90),
                      milliseconds_cell(alone.p99), milliseconds_cell(with.p99)});
    }
  return rows.size() > 1 ? "\n" + text_table(rows) : "";
}

std::string remarks(const InstancesResult& result) {
  std::string text;
  for (const record::SlotAlone& slot : result.alone)
    if (slot.status != Status::ok)
      text += fmt::format("slot {} alone: {}: {}\n", slot.slot, to_string(slot.status),
                          shown(slot.reason));
  for (const record::InstancesPoint& point : result.points)
    if (point.status != Status::ok && point.instances != 1)
      text += fmt::format("{} instances: {}: {}\n", point.instances, to_string(point.status),
                          shown(point.reason));
  return text;
}

}  // namespace

std::string instances_table(const InstancesResult& result, std::size_t told) {
  const std::int64_t ranks = result.ranks_per_instance.value_or(1);
  const Json repeats = setting(result.config, "repeats");
  const std::string head = fmt::format(
      "Instances of {} {}{} ({}){}, mean of {} repeat{}, a fresh launch each\n\n",
      shown(result.model), shown(setting(result.config, "precision").get<std::string>()),
      kernels_words(result.config), result.job,
      ranks > 1 ? fmt::format(" of {} ranks each", ranks) : "", repeats.dump(),
      repeats == 1 ? "" : "s");
  return head + point_table(result) + instance_table(result) +
         "\nRates of a point: units of all instances / (last end - first start); x slot 0: that / "
         "slot 0 alone;\nof alone: rates with neighbours / rates alone; overlap: intersection of "
         "the windows / their span.\nLatencies of steps or queries, with neighbours unless alone "
         "is "
         "said.\n" +
         remarks(result) + warning_lines(result.warnings, told);
}

}  // namespace scalemark

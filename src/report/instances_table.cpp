// What `instances` tells a person.
#include <fmt/format.h>

#include "report/console.hpp"
#include "report/shown_text.hpp"
#include "report/tables.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

using Row = std::vector<std::string>;

std::string fixed(const Json& number) {
  return number.is_null() ? "-" : fmt::format("{:.3f}", number.get<double>());
}

std::string rate(const Json& number) {
  return number.is_null() ? "-" : four_digits(number.get<double>());
}

std::string milliseconds(const Json& latency, const char* quantile) {
  if (latency.is_null() || latency.at(quantile).is_null()) return "-";
  return four_digits(1000 * latency.at(quantile).get<double>());
}

std::string place_of(const Json& place) {
  const std::string cpus = place.at("cpus");
  const std::string list = (cpus.find_first_of(",-") == cpus.npos ? "CPU " : "CPUs ") + cpus;
  return place.at("gpu_uuid").is_null() ? list : place.at("gpu_uuid").get<std::string>();
}

/// Hosts are named where a slot is on several.
std::string places_of(const Json& slot) {
  if (slot.value("places", Json()).size() < 2) return place_of(slot);
  std::string text;
  for (const Json& place : slot["places"])
    text += (text.empty() ? "" : " + ") +
            (slot.at("cpus").is_null() ? place.at("host").get<std::string>() + ": " : "") +
            place_of(place);
  return text;
}

std::string ranks_words(const Json& record) {
  const Json ranks = record.value("ranks_per_instance", Json());
  return ranks.is_number() && ranks > 1 ? fmt::format(" of {} ranks each", ranks.dump()) : "";
}

std::string counted_instances(const Json& point) {
  const auto instances = point.at("instances").get<std::int64_t>();
  return fmt::format("{} instance{}", instances, instances == 1 ? "" : "s");
}

std::string point_table(const Json& record) {
  std::vector<Row> rows{{"instances", record.at("unit"), "x slot 0", "of alone", "overlap"}};
  for (const Json& point : record.at("points")) {
    const Json& cumulative = point.at("cumulative");
    const bool flagged = point.at("overlaps_enough") == false;
    rows.push_back(
        {point.at("instances").dump(),
         cumulative.is_null() ? point.at("status").get<std::string>() : rate(cumulative.at("mean")),
         fixed(point.at("speedup")), fixed(point.at("efficiency")),
         fixed(point.at("overlap")) + (flagged ? "!" : "")});
  }
  return text_table(rows);
}

std::string instance_table(const Json& record) {
  std::vector<Row> rows{{"instances", "slot", "on", "alone", record.at("unit"), "of alone",
                         "p50 ms alone", "p50", "p90", "p99 ms alone", "p99"}};
  for (const Json& point : record.at("points"))
    for (const Json& instance : point.at("per_instance")) {
      const Json& slot = instance.at("slot");
      const Json& alone = instance.at("alone_latency_seconds");
      const Json& with = instance.at("latency_seconds");
      rows.push_back({point.at("instances").dump(), slot.dump(),
                      places_of(record.at("slots").at(slot.get<std::size_t>())),
                      rate(instance.at("alone")), rate(instance.at("throughput")),
                      fixed(instance.at("ratio")), milliseconds(alone, "p50"),
                      milliseconds(with, "p50"), milliseconds(with, "p90"),
                      milliseconds(alone, "p99"), milliseconds(with, "p99")});
    }
  return rows.size() > 1 ? "\n" + text_table(rows) : "";
}

std::string remarks(const Json& record) {
  std::string text;
  for (const Json& slot : record.at("alone"))
    if (slot.at("status") != "ok")
      text +=
          fmt::format("slot {} alone: {}: {}\n", slot.at("slot").dump(),
                      slot.at("status").get<std::string>(), slot.at("reason").get<std::string>());
  for (const Json& point : record.at("points")) {
    if (point.at("status") != "ok" && point.at("instances") != 1)
      text +=
          fmt::format("{}: {}: {}\n", counted_instances(point),
                      point.at("status").get<std::string>(), point.at("reason").get<std::string>());
  }
  return text;
}

}  // namespace

std::string instances_table(const Json& raw, std::size_t told) {
  const Json record = shown_record(raw);
  const Json& config = record.at("config");
  const std::string head = fmt::format(
      "Instances of {} {}{} ({}){}, mean of {} repeat{}, a fresh launch each\n\n",
      record.at("model").get<std::string>(), config.at("precision").at("value").get<std::string>(),
      kernels_words(record), record.at("job").get<std::string>(), ranks_words(record),
      config.at("repeats").at("value").dump(), config.at("repeats").at("value") == 1 ? "" : "s");
  return head + point_table(record) + instance_table(record) +
         "\nRates of a point: units of all instances / (last end - first start); x slot 0: that / "
         "slot 0 alone;\nof alone: rates with neighbours / rates alone; overlap: intersection of "
         "the windows / their span.\nLatencies of steps or queries, with neighbours unless alone "
         "is "
         "said.\n" +
         remarks(record) + warning_lines(record, told);
}

}  // namespace scalemark

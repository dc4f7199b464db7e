// See baseline.hpp.
#include "result/baseline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "config/keys.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "result/record_schemas.hpp"
#include "result/schema_fault.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// Over the content in canonical form: neither the order of keys nor white space matters.
std::string checksum_of(Json baseline) {
  baseline.erase("checksum");
  return sha256_hex(nlohmann::json::parse(baseline.dump()).dump());
}

Json launch_json(const MeasuredLaunch& launch) {
  Json repeats = Json::array();
  for (const Work& work : launch.repeats)
    repeats.push_back({{"units", work.units}, {"seconds", work.seconds}});
  return {{"id", launch.id},
          {"started_at", launch.started_at},
          {"host", launch.host},
          {"unit", launch.unit},
          {"ranks", launch.ranks},
          {"sweep", launch.sweep.empty() ? Json(nullptr) : Json(launch.repeat)},
          {"repeats", repeats},
          {"metrics", launch.metrics},
          {"keys", launch.keys},
          {"defaults", launch.defaults},
          {"unknown", launch.unknown},
          {"environment", launch.environment}};
}

MeasuredLaunch launch_from(const Json& json, const Json& baseline, const fs::path& path) {
  MeasuredLaunch launch;
  launch.path = path;
  launch.id = json.at("id");
  launch.started_at = json.at("started_at");
  launch.revision = baseline.at("revision");
  launch.host = json.at("host");
  launch.unit = json.at("unit");
  launch.ranks = ranks_of(json.at("ranks"));
  launch.machine = baseline.at("fingerprint");
  for (const Json& work : json.at("repeats"))
    launch.repeats.push_back({work.at("units"), work.at("seconds")});
  json.at("metrics").get_to(launch.metrics);
  for (const auto& [written, value] : json.at("keys").items()) {
    const auto [name, current] = current_setting(written, value);
    launch.keys[name] = current;
  }
  if (launch.keys.contains("fused")) launch.keys.try_emplace("kernels", "scalemark");  // folded
  json.at("defaults").get_to(launch.defaults);
  json.at("unknown").get_to(launch.unknown);
  for (std::set<std::string>* names : {&launch.defaults, &launch.unknown}) {
    std::set<std::string> current;
    for (const std::string& name : *names) current.insert(current_name(name));
    *names = std::move(current);
  }
  json.at("environment").get_to(launch.environment);
  if (!json.at("sweep").is_null()) {
    launch.sweep = path.string();
    launch.repeat = json["sweep"];
  }
  return launch;
}

template <typename Value>
const Value& only_value(const ResultSet& set, Value MeasuredLaunch::*member, const char* what) {
  for (const MeasuredLaunch& launch : set.launches)
    if (launch.*member != set.launches.front().*member)
      throw ConfigError(fmt::format(
          "{}: its launches are of several {}; a baseline is of one: give it a folder of its own",
          set.path, what));
  return set.launches.front().*member;
}

}  // namespace

Json make_baseline_record(const ResultSet& set, const Json& previous) {
  Json record = envelope("baseline", Status::ok);
  record["label"] = set.label;
  record["revision"] = only_value(set, &MeasuredLaunch::revision, "builds");
  record["fingerprint"] = only_value(set, &MeasuredLaunch::machine, "machines");
  record["launches"] = Json::array();
  for (const MeasuredLaunch& launch : set.launches)
    record["launches"].push_back(launch_json(launch));
  record["previous"] = previous;
  record["unavailable"] = Json::object();
  explain_nulls(record, "previous", "it replaces none");
  record["checksum"] = checksum_of(record);
  return record;
}

Json baseline_reference(const Json& baseline, const fs::path& path) {
  if (baseline.value("checksum", Json()) != checksum_of(baseline))
    throw ResultError(fmt::format(
        "baseline {}: its content does not fit its checksum: it was changed by hand or damaged; "
        "take it from version control, or save a new one with --save_baseline",
        path.string()));
  if (const auto fault = schema_fault(baseline, "baseline", MissingKeys::refused))
    throw ResultError(fmt::format("baseline {}: not as docs/schema/baseline.schema.json says: {}",
                                  path.string(), *fault));
  return {{"id", baseline.at("id")},
          {"created_at", baseline.at("created_at")},
          {"checksum", baseline.at("checksum")}};
}

std::vector<MeasuredLaunch> launches_of_baseline(const Json& baseline, const fs::path& path) {
  baseline_reference(baseline, path);
  Json whole = baseline;
  add_newer_keys(whole);
  std::vector<MeasuredLaunch> launches;
  try {
    for (const Json& launch : whole.at("launches"))
      launches.push_back(launch_from(launch, whole, path));
    std::ranges::for_each(launches, check_figures);
  } catch (const std::exception& error) {
    throw ResultError(fmt::format("baseline {}: not as docs/schema/baseline.schema.json says: {}",
                                  path.string(), error.what()));
  }
  return launches;
}

std::vector<std::string> machine_differences(const ResultSet& a, const ResultSet& b,
                                             std::span<const char* const> names) {
  const auto values_of = [](const ResultSet& set, const char* name) {
    std::set<std::string> values;
    for (const MeasuredLaunch& launch : set.launches)
      if (const Json value =
              launch.machine.is_object() ? launch.machine.value(name, Json()) : Json();
          !value.is_null())
        values.insert(value.is_string() ? value.get<std::string>() : value.dump());
    return values;
  };
  std::vector<std::string> differences;
  for (const char* name : names) {
    const auto ours = values_of(a, name), theirs = values_of(b, name);
    if (ours.empty() || theirs.empty() || ours == theirs) continue;
    differences.push_back(fmt::format("{} ({}: {}; {}: {})", name, a.label,
                                      fmt::join(ours, " and "), b.label,
                                      fmt::join(theirs, " and ")));
  }
  return differences;
}

}  // namespace scalemark

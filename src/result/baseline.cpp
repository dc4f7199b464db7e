// Writes, checks and reads baselines.
#include "result/baseline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "config/keys.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "record/read.hpp"
#include "record/write.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// Over the content in canonical form: neither the order of keys nor white space matters.
std::string checksum_of(Json baseline) {
  baseline.erase("checksum");
  return sha256_hex(nlohmann::json::parse(baseline.dump()).dump());
}

record::BaselineLaunch kept(const MeasuredLaunch& launch) {
  record::BaselineLaunch kept{launch.id,
                              launch.started_at,
                              launch.host,
                              launch.unit,
                              launch.ranks,
                              {},
                              launch.repeats,
                              launch.metrics,
                              launch.keys,
                              {launch.defaults.begin(), launch.defaults.end()},
                              {launch.unknown.begin(), launch.unknown.end()},
                              launch.environment};
  if (!launch.sweep.empty()) kept.sweep = launch.repeat;
  return kept;
}

std::set<std::string> current_names(const std::vector<std::string>& names) {
  std::set<std::string> current;
  for (const std::string& name : names) current.insert(current_name(name));
  return current;
}

MeasuredLaunch launch_from(const record::BaselineLaunch& kept, const Baseline& baseline,
                           const fs::path& path) {
  MeasuredLaunch launch;
  launch.path = path;
  launch.id = kept.id;
  launch.started_at = kept.started_at;
  launch.revision = baseline.revision;
  launch.host = kept.host;
  launch.unit = kept.unit;
  launch.ranks = ranks_of(kept.ranks);
  launch.machine = baseline.fingerprint;
  launch.repeats = kept.repeats;
  launch.metrics = kept.metrics;
  for (const auto& [written, value] : kept.keys) {
    const auto [name, current] = current_setting(written, value);
    launch.keys[name] = current;
  }
  if (launch.keys.contains("fused")) launch.keys.try_emplace("kernels", "scalemark");  // folded
  launch.defaults = current_names(kept.defaults);
  launch.unknown = current_names(kept.unknown);
  if (!launch.keys.contains("build_type")) launch.unknown.insert("build_type");  // an older file
  launch.environment = kept.environment;
  if (!kept.sweep) return launch;
  launch.sweep = path.string();
  launch.repeat = *kept.sweep;
  return launch;
}

Baseline checked_baseline(const Json& baseline, const fs::path& path) {
  if (baseline.value("checksum", Json()) != checksum_of(baseline))
    throw ResultError(fmt::format(
        "baseline {}: its content does not fit its checksum: it was changed by hand or damaged; "
        "take it from version control, or save a new one with --save_baseline",
        path.string()));
  try {
    return record_from<Baseline>(baseline);
  } catch (const RecordFault& fault) {
    throw ResultError(fmt::format("baseline {}: not as docs/schema/baseline.schema.json says: {}",
                                  path.string(), fault.what()));
  }
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

Json make_baseline_record(const ResultSet& set,
                          const std::optional<record::PreviousBaseline>& previous,
                          const std::vector<std::string>& warnings) {
  Baseline baseline;
  set_envelope(baseline, "baseline", {});
  baseline.warnings = warnings;
  baseline.label = set.label;
  baseline.revision = only_value(set, &MeasuredLaunch::revision, "builds");
  baseline.fingerprint = only_value(set, &MeasuredLaunch::machine, "machines");
  for (const MeasuredLaunch& launch : set.launches) baseline.launches.push_back(kept(launch));
  baseline.previous = previous;
  Json json = record_json(baseline);
  const std::string checksum = checksum_of(json);
  json.erase("checksum");  // it stands last
  json["checksum"] = checksum;
  return json;
}

record::BaselineReference baseline_reference(const Json& baseline, const fs::path& path) {
  const Baseline checked = checked_baseline(baseline, path);
  return {checked.id, checked.created_at, checked.checksum};
}

std::vector<MeasuredLaunch> launches_of_baseline(const Json& json, const fs::path& path) {
  const Baseline baseline = checked_baseline(json, path);
  std::vector<MeasuredLaunch> launches;
  try {
    for (const record::BaselineLaunch& launch : baseline.launches)
      launches.push_back(launch_from(launch, baseline, path));
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

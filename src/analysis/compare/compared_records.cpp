// See compared_records.hpp.
#include "analysis/compare/compared_records.hpp"

#include <map>
#include <utility>

#include "analysis/preflight/values.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

/// Host and name of a statistic.
using Place = std::pair<std::string, std::string>;

struct Sum {
  double sum = 0, count = 0;
};

int ranks_on(const Json& record, const std::string& host) {
  int ranks = 0;
  for (const Json& rank : record.at("ranks")) ranks += rank.at("host") == host ? 1 : 0;
  return ranks;
}

MeasuredLaunch of_host(const Json& record, const std::string& host,
                       const std::filesystem::path& path) {
  MeasuredLaunch launch = start_launch(record, path);
  launch.host = host;
  launch.ranks = ranks_on(record, host);
  launch.keys["kind"] = "preflight";
  launch.keys["ranks"] = launch.ranks;
  launch.keys["device"] = record.at("device");
  if (record.at("system").at("host") == host) launch.machine = machine_of(record.at("system"));
  return launch;
}

std::vector<MeasuredLaunch> launches_of_hosts(const Json& record,
                                              const std::filesystem::path& path) {
  std::vector<MeasuredLaunch> launches;
  for (const Json& host : record.at("hosts"))
    launches.push_back(of_host(record, host.at("host").get<std::string>(), path));
  if (launches.empty()) return launches;
  std::map<Place, Sum> sums;
  std::map<std::string, Metric> described;
  for (const PreflightValue& value : preflight_values(record)) {
    if (!value.value.is_number()) continue;
    const std::string name = value.check + "." + value.statistic;
    Sum& sum = sums[{value.host.empty() ? launches.front().host : value.host, name}];
    sum.sum += value.value.get<double>();
    ++sum.count;
    described[name] = {name, value.unit, false, value.higher_is_better, false};
  }
  for (MeasuredLaunch& launch : launches)
    for (const auto& [name, metric] : described)
      if (const auto found = sums.find({launch.host, name}); found != sums.end()) {
        launch.metrics[name] = found->second.sum / found->second.count;
        launch.described[name] = metric;
      }
  return launches;
}

}  // namespace

std::vector<MeasuredLaunch> preflight_launches(const Json& record,
                                               const std::filesystem::path& path) {
  try {
    return launches_of_hosts(record, path);
  } catch (const Json::exception& error) {
    throw ResultError("record " + path.string() +
                      ": not as docs/schema/preflight.schema.json says: " + error.what());
  }
}

RecordReader reader_of(const std::vector<std::string>& metrics) {
  return {kinds_with(metrics), [](const Json& record, const std::filesystem::path& path) {
            return record.at("kind") == "preflight" ? preflight_launches(record, path)
                                                    : measured_launches(record, path);
          }};
}

}  // namespace scalemark

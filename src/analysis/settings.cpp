// See settings.hpp.
#include "analysis/settings.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "json.hpp"
#include "platform/platform.hpp"

namespace scalemark {
namespace {

std::optional<std::string> value_of(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? std::nullopt : std::optional(found->second);
}

bool is_variable(const std::string& name) { return name.front() >= 'A' && name.front() <= 'Z'; }

}  // namespace

std::vector<SettingDifference> differing_settings(const std::vector<Settings>& of_ranks) {
  std::set<std::string> names;
  for (const Settings& settings : of_ranks)
    for (const auto& [name, value] : settings) names.insert(name);
  std::vector<SettingDifference> differences;
  for (const std::string& name : names) {
    SettingDifference difference{name, {}};
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
      const auto value = value_of(of_ranks[rank], name);
      auto known = std::ranges::find(difference.values, value, &SettingDifference::Value::value);
      if (known == difference.values.end()) {
        difference.values.push_back({value, {}});
        known = std::prev(difference.values.end());
      }
      known->ranks.push_back(static_cast<int>(rank));
    }
    if (difference.values.size() > 1) differences.push_back(std::move(difference));
  }
  return differences;
}

Json settings_json(const std::vector<Settings>& of_ranks, Json& unavailable) {
  const Settings first = of_ranks.empty() ? Settings{} : of_ranks.front();
  Json json = {{"environment", Json::object()}, {"open_mpi", Json::object()}};
  for (const auto& [name, value] : first)
    json[is_variable(name) ? "environment" : "open_mpi"][name] = value;
  const auto hcoll = value_of(first, "coll_hcoll_enable");
  json["hcoll_enabled"] = hcoll ? Json(*hcoll != "0") : Json(nullptr);
  json["nccl_relaxed_ordering"] = or_null(value_of(first, "NCCL_IB_PCI_RELAXED_ORDERING"));
  json["ucx_relaxed_ordering"] = or_null(value_of(first, "UCX_IB_PCI_RELAXED_ORDERING"));
  if (!hcoll) unavailable["settings.hcoll_enabled"] = "this Open MPI has no HCOLL";
  for (const char* key : {"nccl_relaxed_ordering", "ucx_relaxed_ordering"})
    if (json[key].is_null())
      unavailable[std::string("settings.") + key] = "not set: the library decides";
  json["differing"] = Json::array();
  for (const SettingDifference& difference : differing_settings(of_ranks)) {
    Json values = Json::array();
    for (const auto& [value, ranks] : difference.values) {
      values.push_back({{"value", or_null(value)}, {"ranks", ranks}});
      if (!value) unavailable["settings.differing.values.value"] = "not set on these ranks";
    }
    json["differing"].push_back({{"name", difference.name}, {"values", values}});
  }
  return json;
}

Settings communication_settings(const std::map<std::string, std::string>& recorded) {
  Settings settings;
  for (const auto& [name, value] : recorded)
    if (is_communication_variable(name)) settings.emplace(name, value);
  return settings;
}

}  // namespace scalemark

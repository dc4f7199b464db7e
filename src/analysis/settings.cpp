// Checks that all ranks run with the same settings of their communication libraries.
#include "analysis/settings.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "platform/platform.hpp"

namespace scalemark {
namespace {

Known<std::string> value_of(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? Known<std::string>() : found->second;
}

/// Says how the launcher's daemons reach their hosts, which mpirun tells those of other hosts by
/// itself: ranks communicate alike.
bool is_of_daemons(const std::string& name) {
  return name == "OMPI_MCA_plm" || name == "OMPI_MCA_routed";
}

bool is_variable(const std::string& name) { return name.front() >= 'A' && name.front() <= 'Z'; }

}  // namespace

std::vector<record::DifferingSetting> differing_settings(const std::vector<Settings>& of_ranks) {
  std::set<std::string> names;
  for (const Settings& settings : of_ranks)
    for (const auto& [name, value] : settings)
      if (!is_of_daemons(name)) names.insert(name);
  std::vector<record::DifferingSetting> differences;
  for (const std::string& name : names) {
    record::DifferingSetting difference{name, {}};
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
      const auto value = value_of(of_ranks[rank], name);
      auto known = std::ranges::find_if(difference.values, [&](const auto& seen) {
        return value ? seen.value == *value : !seen.value;
      });
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

record::CommunicationSettings settings_of(const std::vector<Settings>& of_ranks) {
  const Settings first = of_ranks.empty() ? Settings{} : of_ranks.front();
  record::CommunicationSettings told;
  for (const auto& [name, value] : first)
    (is_variable(name) ? told.environment : told.open_mpi)[name] = value;
  if (const auto hcoll = value_of(first, "coll_hcoll_enable")) told.hcoll_enabled = *hcoll != "0";
  told.nccl_relaxed_ordering = value_of(first, "NCCL_IB_PCI_RELAXED_ORDERING");
  told.ucx_relaxed_ordering = value_of(first, "UCX_IB_PCI_RELAXED_ORDERING");
  told.differing = differing_settings(of_ranks);
  return told;
}

Settings communication_settings(const std::map<std::string, std::string>& recorded) {
  Settings settings;
  for (const auto& [name, value] : recorded)
    if (is_communication_variable(name)) settings.emplace(name, value);
  return settings;
}

}  // namespace scalemark

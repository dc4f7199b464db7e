// See matched_groups.hpp. Keys are written out once a launch and hashed: comparing them value by
// value, launch against launch, is what ten thousand records would wait for.
#include "analysis/compare/matched_groups.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace scalemark {
namespace {

/// Equal where two values are: 1 and 1.0 are written alike.
std::string written(const Keys& keys) {
  std::string text;
  for (const auto& [name, value] : keys) {
    const bool whole = value.is_number_float() && std::trunc(value.get<double>()) == value &&
                       std::abs(value.get<double>()) < 1e15;
    text += name + '=' + (whole ? Json(value.get<std::int64_t>()) : value).dump() + '\n';
  }
  return text;
}

}  // namespace

std::vector<KeyGroup> groups_of(const std::vector<Keyed>& launches, std::size_t sets) {
  std::unordered_map<std::string, std::size_t> places;
  std::vector<KeyGroup> groups;
  for (const Keyed& keyed : launches) {
    const auto [at, is_new] = places.try_emplace(written(keyed.keys), groups.size());
    if (is_new) groups.push_back({&keyed.keys, std::vector<std::vector<const Keyed*>>(sets)});
    groups[at->second].launches[keyed.set].push_back(&keyed);
  }
  std::ranges::sort(groups, [](const KeyGroup& a, const KeyGroup& b) { return *a.keys < *b.keys; });
  return groups;
}

Json ranks_of(const KeyGroup& group) {
  const auto found = group.keys->find("ranks");
  return found == group.keys->end() ? Json(nullptr) : found->second;
}

std::vector<std::string> differing_names(const Keys& a, const Keys& b) {
  std::vector<std::string> names;
  for (const auto& [name, value] : a)
    if (b.at(name) != value) names.push_back(name);
  return names;
}

}  // namespace scalemark

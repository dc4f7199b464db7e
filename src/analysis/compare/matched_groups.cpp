// See matched_groups.hpp. What tells launches apart is hashed: comparing it value by value, launch
// against launch, is what ten thousand records would wait for.
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

std::size_t hash_of(const Keys& keys) {
  std::size_t hash = keys.size();
  for (const auto& [name, value] : keys) hash = 31 * hash + std::hash<Json>()(value);
  return hash;
}

bool tell_the_same(const MeasuredLaunch& a, const MeasuredLaunch& b) {
  return a.keys == b.keys && a.defaults == b.defaults && a.unknown == b.unknown &&
         a.environment == b.environment;
}

}  // namespace

std::vector<Keyed> keyed_launches(const std::vector<ResultSet>& sets) {
  std::vector<Keyed> all;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    std::unordered_multimap<std::size_t, std::size_t> places;
    for (const MeasuredLaunch& launch : sets[i].launches) {
      const std::size_t hash = hash_of(launch.keys);
      const auto [begin, end] = places.equal_range(hash);
      const auto alike = std::find_if(begin, end, [&](const auto& entry) {
        return tell_the_same(*all[entry.second].launches.front(), launch);
      });
      if (alike != end) {
        all[alike->second].launches.push_back(&launch);
        continue;
      }
      places.emplace(hash, all.size());
      all.push_back({i, {&launch}, launch.keys, {}});
    }
  }
  return all;
}

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

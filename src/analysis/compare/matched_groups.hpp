// Launches by their keys, before a matching is made of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "result/result_set.hpp"

namespace scalemark {

using Keys = std::map<std::string, Json>;

/// Launches of a set that tell the same, with the keys that are compared and those that are
/// declared to differ.
struct Keyed {
  std::size_t set;
  std::vector<const MeasuredLaunch*> launches;  ///< in the order of the set
  Keys keys, varied;
};

/// By set and first launch.
std::vector<Keyed> keyed_launches(const std::vector<ResultSet>& sets);

/// Launches with the same keys, whatever set they are of.
struct KeyGroup {
  const Keys* keys = nullptr;
  std::vector<std::vector<const Keyed*>> launches;  ///< [set]
};

/// In the order of the keys' values. All launches have the same names of keys; the result points
/// into them.
std::vector<KeyGroup> groups_of(const std::vector<Keyed>& launches, std::size_t sets);

/// Null where ranks are varied.
Json ranks_of(const KeyGroup& group);

/// Names of keys with other values; both have the same names.
std::vector<std::string> differing_names(const Keys& a, const Keys& b);

}  // namespace scalemark

// One set divided by what its launches were: split_by of match_sets.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/compare/match_sets.hpp"
#include "config/text.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

using SplitValues = std::vector<Json>;

Json value_for_split(const MeasuredLaunch& launch, const std::string& key) {
  if (key == "revision") return launch.revision;
  if (key == "host") return launch.host;
  const auto found = launch.keys.find(key);
  return found == launch.keys.end() ? Json(nullptr) : found->second;
}

SplitValues values_for_split(const MeasuredLaunch& launch, const std::vector<std::string>& keys) {
  SplitValues values;
  for (const std::string& key : keys) values.push_back(value_for_split(launch, key));
  return values;
}

std::string split_label(const std::vector<std::string>& keys, const SplitValues& values) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < keys.size(); ++i)
    words.push_back(keys[i] + "=" + plain_value(values[i]));
  return join(words, " ");
}

/// The commit's time; of records that do not tell it nothing. Then the first launch's.
std::tuple<std::string, std::string> age_of(const ResultSet& set) {
  const auto first = std::ranges::min_element(set.launches, {}, &MeasuredLaunch::started_at);
  return {set.launches.front().committed_at, first->started_at};
}

/// By time of commit where all of them tell it, else by first start.
void sort_by_age(std::vector<ResultSet>& parts) {
  const bool told = std::ranges::none_of(
      parts, [](const ResultSet& part) { return part.launches.front().committed_at.empty(); });
  std::ranges::stable_sort(parts, {}, [&](const ResultSet& part) {
    auto [committed, started] = age_of(part);
    return std::tuple(told ? committed : "", started);
  });
}

/// Those whose value is listed, in the order of the list.
std::vector<ResultSet> listed_parts(const std::vector<ResultSet>& parts, const std::string& key,
                                    const std::vector<std::string>& values) {
  std::vector<std::string> labels;
  for (const ResultSet& part : parts) labels.push_back(part.label);
  std::vector<ResultSet> chosen;
  for (const std::string& wanted : values) {
    const auto at = std::ranges::find(labels, key + "=" + wanted);
    if (at == labels.end())
      throw ConfigError(fmt::format("--by {}: {} has no {}; it has {}", key, parts.front().path,
                                    quote(wanted), join(labels, ", ")));
    chosen.push_back(parts[static_cast<std::size_t>(at - labels.begin())]);
  }
  if (chosen.size() < 2) throw ConfigError(fmt::format("--by {}: name two values or more", key));
  return chosen;
}

}  // namespace

std::vector<ResultSet> split_by(const ResultSet& set, const std::vector<std::string>& keys,
                                const std::vector<std::string>& values) {
  const std::string all_keys = join(keys, ",");
  if (keys.size() > 1 && !values.empty())
    throw ConfigError(fmt::format(
        "--by {}: values can be listed of one key only; leave them out, or divide by one key",
        all_keys));
  std::map<SplitValues, ResultSet> by_values;
  for (const MeasuredLaunch& launch : set.launches) {
    const SplitValues found = values_for_split(launch, keys);
    ResultSet& part = by_values[found];
    part.label = split_label(keys, found);
    part.path = set.path;
    part.left_out = set.left_out;
    part.launches.push_back(launch);
  }
  std::vector<ResultSet> parts;
  for (auto& [found, part] : by_values) parts.push_back(std::move(part));
  if (parts.size() < 2)
    throw ConfigError(fmt::format("--by {}: {} has one value of it only: {}", all_keys, set.path,
                                  parts.front().label));
  if (keys.front() == "revision") sort_by_age(parts);
  return values.empty() ? parts : listed_parts(parts, keys.front(), values);
}

}  // namespace scalemark

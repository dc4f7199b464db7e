// See refuse_unmatched.hpp.
#include "analysis/compare/refuse_unmatched.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/compare/match_sets.hpp"
#include "config/text.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kMostListed = 6;     ///< values of a key in a message
constexpr std::size_t kMostNearest = 100;  ///< points of a set that the nearest is looked for among

using ByRanks = std::map<Json, std::set<Json>>;

/// The values that a key has in a set, by rank count.
ByRanks values_of(const std::vector<KeyGroup>& groups, std::size_t set, const std::string& name) {
  ByRanks values;
  for (const KeyGroup& group : groups)
    if (!group.launches[set].empty()) values[ranks_of(group)].insert(group.keys->at(name));
  return values;
}

ByRanks over_all_ranks(const ByRanks& values) {
  ByRanks all;
  for (const auto& [ranks, some] : values) all[nullptr].insert(some.begin(), some.end());
  return all;
}

/// Only rank counts that both have; where there are none, all of them as one.
void keep_common_ranks(ByRanks& a, ByRanks& b) {
  const bool common =
      std::ranges::any_of(a, [&](const auto& one) { return b.contains(one.first); });
  if (!common) {
    a = over_all_ranks(a);
    b = over_all_ranks(b);
  }
  std::erase_if(a, [&](const auto& one) { return !b.contains(one.first); });
}

bool have_common(const std::set<Json>& a, const std::set<Json>& b) {
  return std::ranges::any_of(a, [&](const Json& value) { return b.contains(value); });
}

std::string listed(const std::set<Json>& values) {
  std::vector<std::string> words;
  for (const Json& value : values) {
    if (words.size() == kMostListed) {
      words.push_back(fmt::format("and {} more", values.size() - kMostListed));
      break;
    }
    words.push_back(plain_value(value));
  }
  return join(words, ", ");
}

/// "precision (a: fp32; b: bf16)" of a key that a set and the first one have no value of in common
/// at some rank count; empty where they have.
std::string unlike(const std::vector<ResultSet>& sets, const std::vector<KeyGroup>& groups,
                   std::size_t set, const std::string& name) {
  ByRanks ours = values_of(groups, 0, name), theirs = values_of(groups, set, name);
  keep_common_ranks(ours, theirs);
  for (const auto& [ranks, values] : ours)
    if (!have_common(values, theirs.at(ranks)))
      return fmt::format("{} ({}: {}; {}: {})", name, sets[0].label, listed(values),
                         sets[set].label, listed(theirs.at(ranks)));
  return "";
}

/// Points of a set, no more than are worth looking at for the nearest.
std::vector<const Keys*> some_points(const std::vector<KeyGroup>& groups, std::size_t set) {
  std::vector<const Keys*> points;
  for (const KeyGroup& group : groups)
    if (!group.launches[set].empty() && points.size() < kMostNearest) points.push_back(group.keys);
  return points;
}

}  // namespace

void refuse_unlike(const std::vector<ResultSet>& sets, const std::vector<KeyGroup>& groups) {
  for (std::size_t i = 1; i < sets.size(); ++i) {
    std::vector<std::string> names, sentences;
    for (const auto& [name, value] : *groups.front().keys)
      if (const std::string sentence = unlike(sets, groups, i, name); !sentence.empty()) {
        names.push_back(name);
        sentences.push_back(sentence);
      }
    if (names.empty()) continue;
    throw ConfigError(
        fmt::format("{} and {} measured different things: {}; where that is what you "
                    "compare, declare it: --varied {}",
                    sets[0].label, sets[i].label, join(sentences, "; "), join(names, ",")));
  }
}

void refuse_disjoint(const std::vector<ResultSet>& sets, const std::vector<KeyGroup>& groups) {
  for (std::size_t i = 1; i < sets.size(); ++i) {
    const auto in_both = [&](const KeyGroup& group) {
      return !group.launches[0].empty() && !group.launches[i].empty();
    };
    if (std::ranges::any_of(groups, in_both)) continue;
    const Keys *ours = nullptr, *theirs = nullptr;
    std::vector<std::string> least;
    for (const Keys* a : some_points(groups, 0))
      for (const Keys* b : some_points(groups, i)) {
        const auto names = differing_names(*a, *b);
        if (ours && names.size() >= least.size()) continue;
        ours = a;
        theirs = b;
        least = names;
      }
    std::vector<std::string> differences;
    for (const std::string& name : least)
      differences.push_back(fmt::format("{} ({}: {}; {}: {})", name, sets[0].label,
                                        plain_value(ours->at(name)), sets[i].label,
                                        plain_value(theirs->at(name))));
    throw ConfigError(fmt::format("{} and {} have no point in common; the nearest differ in {}",
                                  sets[0].label, sets[i].label, join(differences, "; ")));
  }
}

void refuse_pooled(const std::vector<ResultSet>& sets, const std::vector<KeyGroup>& groups) {
  for (const KeyGroup& group : groups)
    for (const auto& pooled : group.launches)
      for (const Keyed* keyed : pooled) {
        const Keyed& first = *pooled.front();
        if (keyed->varied == first.varied) continue;
        const std::string name = differing_names(keyed->varied, first.varied).front();
        throw ConfigError(fmt::format(
            "{}: at {} ranks {} is {} and {}: these can't be one set; give each a set of its own, "
            "or one path and --by {}",
            sets[keyed->set].label, keyed->launches.front()->ranks, name,
            plain_value(first.varied.at(name)), plain_value(keyed->varied.at(name)), name));
      }
}

}  // namespace scalemark

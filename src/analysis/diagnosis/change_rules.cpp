// Rules of two sets: what takes another share of a step than before.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/diagnosis/rules.hpp"
#include "streams.hpp"

namespace scalemark::diagnosis {
namespace {

constexpr std::size_t kFewestToAgree = 4;  ///< launches of a side

struct Spread {
  const Number *low, *middle, *high;
};

/// Returns the spread of launches, of which there is at least one. Its middle is one of them, so
/// that its number is that of a record.
Spread spread_of(const std::vector<Number>& shares) {
  std::vector<const Number*> sorted;
  for (const Number& share : shares) sorted.push_back(&share);
  std::ranges::stable_sort(sorted, {}, [](const Number* share) { return **share; });
  return {sorted.front(), sorted[(sorted.size() - 1) / 2], sorted.back()};
}

struct Change {
  const SidesEvidence* sides;
  std::string rule;
  Spread base, other;
  std::size_t base_launches, other_launches;

  double amount() const { return **other.middle - **base.middle; }
  /// No launch of one side is where launches of the other are.
  bool apart() const { return **base.high < **other.low || **other.high < **base.low; }
  bool is_worth_a_word() const {
    const bool agreed = apart() && std::min(base_launches, other_launches) >= kFewestToAgree;
    return std::abs(amount()) > (agreed ? kChange : kWorthAWord);
  }
};

const char* subject_of(const std::string& rule) {
  return rule == "link"    ? "Exposed communication"
         : rule == "input" ? "Waiting for batches"
                           : "Writing checkpoints";
}

std::pair<Certainty, std::string> surety_of_change(const Change& change) {
  if (change.apart() && std::min(change.base_launches, change.other_launches) >= kFewestToAgree)
    return {Certainty::likely, "every launch of one side is beyond every launch of the other"};
  return {Certainty::hint, "launches of both sides overlap, or are too few"};
}

Finding share_finding(const Change& change) {
  const bool grew = change.amount() > 0;
  const auto [sure, because] = surety_of_change(change);
  const auto share = [&](const char* name, const Number& of) {
    return computed(name, *of, percent, of);
  };
  return {change.rule,
          grew ? Tone::bad : Tone::good,
          change.sides->other + " against " + change.sides->base,
          Sentence(subject_of(change.rule), grew ? " grew from " : " fell from ",
                   share("base_share", *change.base.middle), " to ",
                   share("share", *change.other.middle), " of a step at ",
                   counted(change.sides->ranks, "rank"), ": " + change.rule + "."),
          Sentence(fmt::format("Medians of {} of {} and of {} of {}.",
                               counted(change.base_launches, "launch"), change.sides->base,
                               counted(change.other_launches, "launch"), change.sides->other)),
          {},
          sure,
          because};
}

std::size_t ones(const std::vector<Number>& shares) {
  return static_cast<std::size_t>(
      std::ranges::count_if(shares, [](const Number& share) { return *share > 0; }));
}

/// In most launches of one side and in no more than half of the other's.
Finding straggler_change(const Change& change) {
  const auto& shares = change.sides->shares.at(change.rule);
  const auto [sure, because] = surety_of_change(change);
  return {"straggler",
          change.amount() > 0 ? Tone::bad : Tone::good,
          change.sides->other + " against " + change.sides->base,
          Sentence(change.amount() > 0 ? "A rank began to hold the others up at "
                                       : "No rank holds the others up any more at ",
                   counted(change.sides->ranks, "rank"), ": straggler."),
          Sentence(fmt::format("In {} of {} of {}, in {} of {} of {}.", ones(shares.base),
                               counted(change.base_launches, "launch"), change.sides->base,
                               ones(shares.other), counted(change.other_launches, "launch"),
                               change.sides->other)),
          {},
          sure,
          because};
}

}  // namespace

Findings change_findings(const std::vector<SidesEvidence>& points) {
  std::vector<std::pair<std::string, Change>> most;  // by set and rule, in their order
  for (const SidesEvidence& sides : points)
    for (const auto& [rule, shares] : sides.shares) {
      const Change change{&sides,
                          rule,
                          spread_of(shares.base),
                          spread_of(shares.other),
                          shares.base.size(),
                          shares.other.size()};
      if (!change.is_worth_a_word()) continue;
      const std::string key = sides.other + "\n" + rule;
      const auto known = std::ranges::find(most, key, &std::pair<std::string, Change>::first);
      if (known == most.end())
        most.emplace_back(key, change);
      else if (std::abs(change.amount()) > std::abs(known->second.amount()))
        known->second = change;
    }
  Findings findings;
  for (const auto& [key, change] : most)
    findings.push_back(change.rule == "straggler" ? straggler_change(change)
                                                  : share_finding(change));
  return findings;
}

}  // namespace scalemark::diagnosis

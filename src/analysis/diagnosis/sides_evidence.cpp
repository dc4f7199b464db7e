// What the rules need of two sets of launches at the points that both have.
#include "analysis/diagnosis/record_evidence.hpp"

namespace scalemark::diagnosis {
namespace {

Number share_number(const StepShare& share) { return {share.share, share.record, share.pointer}; }

/// How a share was measured; that of a set is one, or it has none.
bool is_alike(const std::vector<const MeasuredLaunch*>& launches, const std::string& rule,
              const std::string& method) {
  for (const MeasuredLaunch* launch : launches) {
    const auto found = launch->shares.find(rule);
    if (found == launch->shares.end() || found->second.method != method) return false;
  }
  return true;
}

std::vector<Number> shares_of(const std::vector<const MeasuredLaunch*>& launches,
                              const std::string& rule) {
  std::vector<Number> shares;
  for (const MeasuredLaunch* launch : launches)
    shares.push_back(share_number(launch->shares.at(rule)));
  return shares;
}

}  // namespace

std::vector<SidesEvidence> sides_evidence(const std::vector<ResultSet>& sets,
                                          const Matching& matching) {
  std::vector<SidesEvidence> points;
  for (std::size_t set = 1; set < sets.size(); ++set)
    for (const MatchedPoint& point : matching.points) {
      const auto &base = point.launches.front(), &other = point.launches[set];
      if (base.empty() || other.empty()) continue;
      SidesEvidence sides{sets.front().label, sets[set].label,
                          static_cast<std::size_t>(point.ranks)};
      for (const auto& [rule, share] : base.front()->shares)
        if (is_alike(base, rule, share.method) && is_alike(other, rule, share.method))
          sides.shares[rule] = {shares_of(base, rule), shares_of(other, rule)};
      points.push_back(std::move(sides));
    }
  return points;
}

}  // namespace scalemark::diagnosis

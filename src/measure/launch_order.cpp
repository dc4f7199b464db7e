// Sorts start times of two sets into pairs.
#include "measure/launch_order.hpp"

#include <algorithm>
#include <cmath>

#include "measure/permutation.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {

using Values = std::vector<double>;

/// Of so many pairs one may have the other order without telling both apart.
constexpr std::size_t kPairsOfOneOrder = 10;
/// Fewer pairs than these have one order by chance too often to say anything.
constexpr std::size_t kLeastOrdered = 5;

bool all_told(std::span<const double> times) {
  return std::ranges::none_of(times, [](double time) { return std::isnan(time); });
}

/// Returns the median time from the first start of a pair to that of the next pair.
double time_between_pairs(std::span<const double> base, std::span<const double> fresh) {
  Values starts, steps;
  for (std::size_t k = 0; k < base.size(); ++k) starts.push_back(std::min(base[k], fresh[k]));
  std::ranges::sort(starts);
  for (std::size_t k = 1; k < starts.size(); ++k) steps.push_back(starts[k] - starts[k - 1]);
  return median(steps);
}

void find_effect(LaunchOrder& order, const Values& base_first, const Values& fresh_first) {
  if (std::min(base_first.size(), fresh_first.size()) < 2) return;
  order.second_differs = permutation_centre(fresh_first, base_first) / 2;
  order.p = permutation_test(fresh_first, base_first, Alternative::two_sided).p;
}

bool lies_before(std::span<const double> a, std::span<const double> b) {
  return std::ranges::max(a) < std::ranges::min(b);
}

Values sorted(std::span<const double> times) {
  Values copy(times.begin(), times.end());
  std::ranges::sort(copy);
  return copy;
}

/// Whether both launches of each pair come before any of the next pair.
bool is_pair_after_pair(const Values& base, const Values& fresh) {
  for (std::size_t k = 1; k < base.size(); ++k)
    if (std::max(base[k - 1], fresh[k - 1]) >= std::min(base[k], fresh[k])) return false;
  return true;
}

}  // namespace

bool LaunchOrder::confounded() const {
  if (design == LaunchDesign::apart) return true;
  return design == LaunchDesign::pairs && pairs() >= kLeastOrdered &&
         std::min(base_first, fresh_first) * kPairsOfOneOrder <= pairs() - 1;
}

LaunchOrder order_of_pairs(std::span<const double> base, std::span<const double> fresh,
                           std::span<const double> log_ratios) {
  LaunchOrder order;
  if (base.size() < 2 || !all_told(base) || !all_told(fresh)) return order;
  const double apart = kTogether * time_between_pairs(base, fresh);
  std::size_t together = 0;
  Values base_first, fresh_first;
  for (std::size_t k = 0; k < base.size(); ++k) {
    if (std::abs(base[k] - fresh[k]) <= apart) {
      ++together;
      continue;
    }
    ++(base[k] < fresh[k] ? order.base_first : order.fresh_first);
    if (!log_ratios.empty())
      (base[k] < fresh[k] ? base_first : fresh_first).push_back(log_ratios[k]);
  }
  if (2 * together > base.size()) {
    order.design = LaunchDesign::together;
    return order;
  }
  order.design = lies_before(base, fresh) || lies_before(fresh, base) ? LaunchDesign::apart
                                                                      : LaunchDesign::pairs;
  find_effect(order, base_first, fresh_first);
  return order;
}

LaunchOrder order_of_sets(std::span<const double> base, std::span<const double> fresh) {
  if (std::min(base.size(), fresh.size()) < 2 || !all_told(base) || !all_told(fresh)) return {};
  if (lies_before(base, fresh) || lies_before(fresh, base))
    return {LaunchDesign::apart, 0, 0, std::nullopt, std::nullopt};
  const Values ours = sorted(base), theirs = sorted(fresh);
  if (ours.size() == theirs.size() && is_pair_after_pair(ours, theirs))
    return order_of_pairs(ours, theirs, {});
  return {LaunchDesign::mixed, 0, 0, std::nullopt, std::nullopt};
}

}  // namespace scalemark

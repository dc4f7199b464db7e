// Sorts start times of two sets into pairs.
#include "measure/launch_order.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "measure/permutation.hpp"
#include "measure/statistics.hpp"
#include "measure/trend.hpp"

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

bool makes_half(double makes, double difference, double least) {
  return std::abs(makes) >= std::max(std::abs(difference), least) / 2;
}

}  // namespace

bool LaunchOrder::is_unbalanced() const {
  return design == LaunchDesign::pairs && pairs() >= kLeastOrdered &&
         2 * std::min(base_first, fresh_first) < std::max(base_first, fresh_first);
}

bool LaunchOrder::hides(double difference, double least, double alpha) const {
  if (design != LaunchDesign::pairs || !p || *p > alpha) return false;
  const double more = static_cast<double>(base_first) - static_cast<double>(fresh_first);
  const double makes = *second_differs * more / static_cast<double>(pairs());
  return makes_half(makes, difference, least);
}

bool LaunchOrder::confounded() const {
  if (design == LaunchDesign::apart) return declared;
  return design == LaunchDesign::pairs && pairs() >= kLeastOrdered &&
         std::min(base_first, fresh_first) * kPairsOfOneOrder <= pairs();
}

LaunchOrder order_of_pairs(std::span<const double> base, std::span<const double> fresh,
                           std::span<const double> log_ratios) {
  LaunchOrder order;
  order.declared = true;
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
  if (lies_before(base, fresh) || lies_before(fresh, base)) return {.design = LaunchDesign::apart};
  const Values ours = sorted(base), theirs = sorted(fresh);
  if (ours.size() != theirs.size() || !is_pair_after_pair(ours, theirs))
    return {.design = LaunchDesign::mixed};
  LaunchOrder order = order_of_pairs(ours, theirs, {});
  order.declared = false;
  return order;
}

namespace {

using TimedValues = std::vector<std::pair<double, double>>;

/// Appends times and values, each less the mean of its set.
void add_centred(TimedValues& all, std::span<const double> times, std::span<const double> values) {
  const double time = mean(times), level = mean(values);
  for (std::size_t i = 0; i < times.size(); ++i)
    all.emplace_back(times[i] - time, values[i] - level);
}

double length_of(std::span<const double> times) {
  return std::ranges::max(times) - std::ranges::min(times);
}

/// Returns the time from the end of one set to the beginning of the other, or less than 0 where
/// they overlap.
double time_between(std::span<const double> a, std::span<const double> b) {
  return std::max(std::ranges::min(b) - std::ranges::max(a),
                  std::ranges::min(a) - std::ranges::max(b));
}

}  // namespace

bool SetDrift::hides(double difference, double least, double alpha) const {
  return p <= alpha && makes_half(makes, difference, least);
}

std::optional<SetDrift> drift_of_sets(std::span<const double> base_times,
                                      std::span<const double> base,
                                      std::span<const double> fresh_times,
                                      std::span<const double> fresh) {
  if (std::min(base.size(), fresh.size()) < 2 || !all_told(base_times) || !all_told(fresh_times))
    return std::nullopt;
  if (time_between(base_times, fresh_times) >
      std::max(length_of(base_times), length_of(fresh_times)))
    return std::nullopt;
  TimedValues all;
  add_centred(all, base_times, base);
  add_centred(all, fresh_times, fresh);
  std::ranges::stable_sort(all, {}, &std::pair<double, double>::first);
  Values times, values;
  for (const auto& [time, value] : all) {
    times.push_back(time);
    values.push_back(value);
  }
  const double span = times.back() - times.front();
  if (!(span > 0)) return std::nullopt;
  const TrendTest trend = find_trend(times, values);
  return SetDrift{trend.p, trend.change / span * (mean(fresh_times) - mean(base_times))};
}

}  // namespace scalemark

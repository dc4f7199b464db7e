// See fastest.hpp.
#include "analysis/compare/fastest.hpp"

#include <algorithm>

#include "analysis/compare/point_test.hpp"

namespace scalemark {
namespace {

constexpr const char* kMetric = "throughput";

std::size_t largest_mean(const std::vector<Repeats>& points) {
  std::size_t best = points.size();
  for (std::size_t i = 0; i < points.size(); ++i)
    if (!points[i].empty() &&
        (best == points.size() || value_of(points[i], kMetric) > value_of(points[best], kMetric)))
      best = i;
  return best;
}

}  // namespace

std::optional<Fastest> find_fastest(const std::vector<Repeats>& points) {
  Fastest fastest;
  fastest.point = largest_mean(points);
  const TestQuestions questions;
  std::vector<Difference> differences;
  std::vector<PointValues> values;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i == fastest.point || points[i].empty()) continue;
    const Pairing pairs = pair_up(points[fastest.point], points[i]);
    Difference& difference = differences.emplace_back();
    difference.paired = !pairs.base.empty() && of_one_sweep(points[fastest.point], points[i]);
    values.push_back(
        difference.paired
            ? test_point(difference, pairs.base, pairs.other, kMetric, questions)
            : test_point(difference, points[fastest.point], points[i], kMetric, questions));
  }
  if (differences.empty()) return std::nullopt;
  judge_points(differences, values, find_metric(kMetric, {}), questions);
  fastest.p = 0;
  const auto tests = static_cast<double>(differences.size());
  for (const Difference& difference : differences) {
    const double p = std::min(1.0, difference.p.value_or(1) * tests);
    fastest.p = std::max(fastest.p, p);
    if (p > questions.alpha || difference.percent >= 0) ++fastest.as_fast;
    fastest.repeats_needed = std::max(fastest.repeats_needed, difference.repeats_needed);
    fastest.too_few =
        fastest.too_few ||
        std::min(difference.base_repeats, difference.other_repeats) < difference.repeats_needed;
  }
  fastest.shown = fastest.as_fast == 0;
  return fastest;
}

}  // namespace scalemark

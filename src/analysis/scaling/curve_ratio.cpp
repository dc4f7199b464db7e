#include "analysis/scaling/curve_ratio.hpp"

#include "analysis/intervals.hpp"

namespace scalemark {
namespace {

/// Throughputs of the repeats with communication, in round order.
std::vector<double> throughputs(const Json& point) {
  std::vector<double> rates;
  for (const Json& repeat : point.at("repeats"))
    if (!repeat.at("baseline").get<bool>()) rates.push_back(repeat.at("throughput"));
  return rates;
}

CurveRatio ratio_of(const Json& point, const Json& reference) {
  CurveRatio made;
  made.ranks = point.at("ranks");
  made.ratio = point.at("throughput").get<double>() / reference.at("throughput").get<double>();
  std::vector<double> ratios = throughputs(point);
  const std::vector<double> others = throughputs(reference);
  if (ratios.size() != others.size()) return made;
  for (std::size_t round = 0; round < ratios.size(); ++round) ratios[round] /= others[round];
  made.ci95 = log_interval(ratios);
  return made;
}

}  // namespace

std::vector<CurveRatio> curve_ratios(const Json& curve, const Json& reference) {
  std::vector<CurveRatio> ratios;
  for (const Json& point : curve.at("points"))
    for (const Json& other : reference.at("points"))
      if (point.at("ranks") == other.at("ranks")) ratios.push_back(ratio_of(point, other));
  return ratios;
}

}  // namespace scalemark

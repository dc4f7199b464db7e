#include "analysis/scaling/curve_ratio.hpp"

#include <map>

#include "analysis/intervals.hpp"

namespace scalemark {
namespace {

/// Throughputs of the repeats with communication by number; in records of before they had one, by
/// place.
std::map<std::int64_t, double> throughputs(const Json& point) {
  std::map<std::int64_t, double> rates;
  for (const Json& repeat : point.at("repeats")) {
    if (repeat.at("baseline").get<bool>()) continue;
    const Json number = repeat.value("repeat", Json());
    rates[number.is_null() ? static_cast<std::int64_t>(rates.size()) + 1
                           : number.get<std::int64_t>()] = repeat.at("throughput");
  }
  return rates;
}

CurveRatio ratio_of(const Json& point, const Json& reference) {
  CurveRatio made;
  made.ranks = point.at("ranks");
  made.ratio = point.at("throughput").get<double>() / reference.at("throughput").get<double>();
  const auto ours = throughputs(point), theirs = throughputs(reference);
  std::vector<double> ratios;
  for (const auto& [number, rate] : ours)
    if (const auto other = theirs.find(number); other != theirs.end())
      ratios.push_back(rate / other->second);
  if (ours.size() == theirs.size() && ratios.size() == ours.size())
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

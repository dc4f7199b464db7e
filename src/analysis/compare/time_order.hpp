// What the time at which sets were measured makes doubtful: one wholly before the other, or a trend
// within one.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/match_sets.hpp"

namespace scalemark {

/// A sentence for each set but the first whose launches all started before, or all after, those of
/// the first (of sets with two starts or more), and for each set whose `metric` rises or falls with
/// time: Mann-Kendall at level `alpha`, adjusted for the number of sets (Holm), of the logarithms
/// less their mean at each point. Launches that do not tell their start, or have no such metric
/// (efficiency: throughput), are not looked at.
std::vector<std::string> time_warnings(const std::vector<ResultSet>& sets, const Matching& matching,
                                       const std::string& metric, double alpha);

/// Seconds since 1970 of an RFC 3339 time in UTC, "2026-01-31T12:00:00.5Z"; NaN where it is none.
double seconds_of(const std::string& time);

}  // namespace scalemark

// What records about result sets say of the sets themselves, and what the time at which sets were
// measured makes doubtful: one wholly before the other, or a trend within one.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/match_sets.hpp"

namespace scalemark {

/// {"label", "path", "records", "revisions", "hosts", "left_out"}.
Json set_json(const ResultSet& set);

/// What differs between the sets and is no key of a point, and the notes of the matching.
std::vector<std::string> set_notes(const std::vector<ResultSet>& sets, const Matching& matching,
                                   const std::vector<std::string>& varied);

/// "the machines of a and b differ in cpu_model (a: ...; b: ...)", for each set but the first.
std::vector<std::string> machine_notes(const std::vector<ResultSet>& sets);

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

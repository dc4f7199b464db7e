// What can't be matched: refusals that name keys and values.
#pragma once

#include <vector>

#include "analysis/compare/matched_groups.hpp"
#include "result/result_set.hpp"

namespace scalemark {

/// ConfigError where a set differs from the first one in a key at all points of a rank count.
/// Points that one of two sets has more than the other are no fault.
void refuse_unlike(const std::vector<ResultSet>& sets, const std::vector<KeyGroup>& groups);

/// ConfigError where a set has no point in common with the first one, naming what the nearest two
/// differ in.
void refuse_disjoint(const std::vector<ResultSet>& sets, const std::vector<KeyGroup>& groups);

/// ConfigError where launches that are to be pooled differ in what is compared.
void refuse_pooled(const std::vector<ResultSet>& sets, const std::vector<KeyGroup>& groups);

}  // namespace scalemark

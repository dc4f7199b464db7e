// What records about result sets say of the sets themselves.
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

}  // namespace scalemark

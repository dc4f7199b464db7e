// Findings of a record on the console: what is found, why, and what to try.
#pragma once

#include <string>
#include <vector>

#include "json.hpp"

namespace scalemark {

/// Of each finding of the record its sentence and how sure it is, then, indented, why and what to
/// try; each line at most 100 columns wide and ended. Empty where there are none, and of a record
/// that is older than findings. `told`: rules whose finding the caller says in words of its own,
/// between spaces.
std::string finding_lines(const Json& record, const std::string& told = "");

/// Of each finding one line: what, how sure, and why; as they stand in the record, not yet safe to
/// show. For lists below a table.
std::vector<std::string> finding_sentences(const Json& record, const std::string& told = "");

}  // namespace scalemark

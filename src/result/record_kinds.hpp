// The kinds of records, each with the type of src/record that describes it.
#pragma once

#include <string>
#include <vector>

#include "json.hpp"

namespace scalemark {

/// "run", "scaling", ...
const std::vector<std::string>& record_kinds();

/// Returns the revision of the records that this program writes: that of the newest key.
int schema_revision();

/// Throws RecordFault for the first value of a record that is not as the type of its kind says:
/// types, ranges, words and sizes. Keys may be missing, and those that the type has no place for
/// are of a later revision.
void check_values(const Json& record);

/// Keys that are newer than the record become null, with the reason.
void add_newer_keys(Json& record);

}  // namespace scalemark

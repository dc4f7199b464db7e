// The schemas of records (docs/schema), which this program carries: a record is made with the keys
// of its kind, and one that an older scalemark wrote gets those that it lacks.
#pragma once

#include <string>
#include <vector>

#include "json.hpp"

namespace scalemark {

/// docs/schema/NAME.schema.json, with what its references name in their place. Throws
/// std::out_of_range where there is none.
const Json& schema_of(const std::string& name);

/// "run", "scaling", ...
const std::vector<std::string>& record_kinds();

/// A record of this kind before anything is known: its keys in the schema's order, null where that
/// is a legal value, otherwise an empty list or an object of such values.
Json blank_record(const std::string& kind);

/// Of the records that this program writes: the largest "since" of any key.
int schema_revision();

/// Keys that are newer than the record become null, with the reason.
void add_newer_keys(Json& record);

}  // namespace scalemark

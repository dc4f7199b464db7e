// The schemas of records (docs/schema), which this program carries: a record that an older
// scalemark wrote gets the keys that it lacks.
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

/// Of the records that this program writes: the largest "since" of any key.
int schema_revision();

/// Keys that are newer than the record become null, with the reason.
void add_newer_keys(Json& record);

}  // namespace scalemark

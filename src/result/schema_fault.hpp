// A file's content against its schema of docs/schema, so that whoever reads a field finds it as it
// is written there.
#pragma once

#include <optional>
#include <string>

#include "json.hpp"

namespace scalemark {

enum class MissingKeys { allowed, refused };

/// The first value that is not as docs/schema/`schema`.schema.json says, with its JSON pointer:
/// "/throughput/mean is \"fast\", not of type number". Checked are types, ranges, words and sizes;
/// keys that are unknown are of a later revision. Left to the tests, which
/// have a whole validator: patterns of texts, conditions, what a later revision requires.
std::optional<std::string> schema_fault(const Json& content, const std::string& schema,
                                        MissingKeys missing = MissingKeys::allowed);

/// Why a reader stumbled over content that schema_fault() let through: the key that is missing,
/// with its pointer, else what the reader said.
std::string why_not(const Json& content, const std::string& schema, const std::exception& error);

}  // namespace scalemark

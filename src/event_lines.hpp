// stderr for programs (--progress jsonl): one JSON object a line, {"event": ..., "time": ..., ...},
// in place of what people read. docs/records.md lists the events.
#pragma once

#include <string_view>

#include "json.hpp"

namespace scalemark {

/// For the rest of this process; all that say() and tell() are given becomes an event, too.
void use_event_lines();
bool uses_event_lines();

/// {"event": `event`, "time": seconds since 1970, and `fields`}, written at once. Never throws.
void write_event(std::string_view event, const Json& fields) noexcept;

}  // namespace scalemark

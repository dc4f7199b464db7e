// JSON Schema (2020-12), tables for people and lists of fields, from descriptions.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "record/describe.hpp"

namespace scalemark {

/// Of a kind of record: `unavailable` last, and what its status asks of its values.
Json record_schema(const std::string& kind, const Fields& fields);

/// Of a file that is no record: its keys alone.
Json format_schema(const std::string& title, const Fields& fields);

/// A schema as it is committed: what fits stands on one line.
std::string schema_text(const Json& schema);

/// Lines "| `communication.total_seconds` | s | meaning |" of a Markdown table: a line for each
/// key, those of objects and lists below it. `elsewhere`: keys that are not unfolded, since a table
/// of their own has what is in them.
std::string record_table(const Fields& fields, const std::set<std::string>& elsewhere = {});

/// All fields, those of objects and lists too, each with its JSON pointer: of a list in its first
/// item.
void visit_fields(const Fields& fields,
                  const std::function<void(const Field& field, const std::string& pointer)>& visit);

/// The largest revision of any key.
int newest_revision(const Fields& fields);

}  // namespace scalemark

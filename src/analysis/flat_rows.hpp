// Records as rows of a table whose columns have names that stay: what scalemark export writes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "json.hpp"
#include "result/journal.hpp"

namespace scalemark {

/// A column; its values are those of the records, in their units. Those that fields of a run or an
/// inference, a curve or instances fill are described with the fields (Field::column).
struct FlatColumn {
  int place;  ///< in a row
  std::string name;
  std::string about;  ///< for docs/export.md; a unit where the name tells none
  /// Into the record of a run or an inference; empty: null. Of several places the first with a
  /// value counts.
  std::vector<Json::json_pointer> launch;
  std::vector<Json::json_pointer> point;  ///< of a curve or of instances: into the point,
  std::vector<Json::json_pointer> curve;  ///< or, where that has none, its record; as launch
};

/// In the order of a row; new ones come last.
std::span<const FlatColumn> flat_columns();

/// What a file tells of its records beside what they hold.
struct FlatPlace {
  std::string file;
  Json settings = nullptr;  ///< of the sweep that it is a launch of
  Json repeat = nullptr;    ///< of that launch
};

/// Whether flat_rows() makes rows of a record of this kind.
bool has_flat_rows(const std::string& kind);

/// A row of a run or an inference, one for each point of a curve or of instances (one alone where a
/// failed one has no points): values of flat_columns(), in their order.
std::vector<std::vector<Json>> flat_rows(const Json& record, const FlatPlace& place);

/// A launch that left no record: what the journal of its sweep tells.
std::vector<Json> flat_row(const JournalEntry& entry, const FlatPlace& place);

/// A line with its end: as RFC 4180 has it, null is empty, objects are JSON.
std::string csv_header();
std::string csv_line(const std::vector<Json>& row);
/// A line with its end: an object of all columns.
std::string json_line(const std::vector<Json>& row);

}  // namespace scalemark

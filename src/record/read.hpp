// Records and wire formats from JSON, by their descriptions: nothing is trusted before it is
// checked.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/json_text.hpp"
#include "error.hpp"
#include "record/describe.hpp"

namespace scalemark {

/// The first value that is not as described: "/throughput/mean is \"fast\", not of type number".
struct RecordFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A key that nothing is described by.
struct UnknownKey : RecordFault {
  using RecordFault::RecordFault;
};

enum class MissingKeys { allowed, refused };

/// As a whole number may stand in JSON: 4 or 4.0.
bool is_whole(const Json& json);

class JsonReader {
 public:
  /// `reasons`: of the record's nulls. Keys that are newer than `revision` may be missing or null.
  JsonReader(const Json& reasons, int revision) : reasons_(&reasons), revision_(revision) {}
  void read(const Fields& fields, const Json& json, void* object);
  void read_below(std::string_view key, const Field& field, const Shape& shape, const Json& json,
                  void* value);
  void read_item(std::size_t index, const Field& field, const Shape& shape, const Json& json,
                 void* value);
  [[noreturn]] void refuse(const std::string& what) const;
  /// Why what stands here is null.
  std::string reason() const;
  /// Whether null is legal for the value that is read now.
  bool nullable = false;
  /// Whether a key without which no record is written may be missing: its member keeps its default.
  MissingKeys missing = MissingKeys::refused;
  /// Whether keys without a place are refused.
  bool only_known = false;

 private:
  void refuse_unknown(const Fields& fields, const Json& json);
  void check_alternatives(const Fields& fields, const Json& json) const;
  std::string pointer() const;
  void read_field(const Field& field, const Json& json, void* object);
  const Json* reasons_;
  int revision_;
  std::vector<std::variant<std::string_view, std::size_t>> place_;
};

/// Of a record as it stands in a file, its `unavailable` included. Keys that it has no place for
/// are passed over: they are of a later revision. Throws RecordFault.
template <typename T>
T record_from(const Json& json, MissingKeys missing = MissingKeys::refused) {
  static const Json none = Json::object();
  const auto reasons = json.find("unavailable");
  const bool told = reasons != json.end() && reasons->is_object();
  const auto revision = json.find("schema_revision");
  const bool numbered = revision != json.end() && revision->is_number_integer();
  JsonReader reader(told ? *reasons : none, numbered ? revision->template get<int>() : 1);
  reader.missing = missing;
  T record;
  reader.read(fields_of<T>(), json, &record);
  return record;
}

/// Of a part of a record, or of a format without reasons. `reasons`: by paths from that part on.
template <typename T>
T part_from(const Json& json, const Json& reasons = Json::object(), int revision = 1 << 20) {
  JsonReader reader(reasons, revision);
  T part;
  reader.read(fields_of<T>(), json, &part);
  return part;
}

/// Of a file that people write: UnknownKey for a word that would be silently without effect.
template <typename T>
T written_from(const Json& json) {
  static const Json none = Json::object();
  JsonReader reader(none, 1 << 20);
  reader.only_known = true;
  T written;
  reader.read(fields_of<T>(), json, &written);
  return written;
}

/// The same of the text of such a file. `name` and `what`: see parse_json_object(). Throws
/// ConfigError with `name` and the place.
template <typename T>
T written_in(std::string_view text, std::string_view name, std::string_view what) {
  try {
    return written_from<T>(parse_json_object(text, name, what));
  } catch (const RecordFault& fault) {
    throw ConfigError(std::string(name) + ": " + fault.what());
  }
}

/// Returns the part of an object at a path of keys, "throughput/mean", or null where there is none.
const Json* find_part(const Json& json, std::string_view path);

/// The first value of a record that its other values contradict, by the identities of
/// docs/measurements.md, with both: "/throughput/mean is 5, not 10 = steps x units_per_step /
/// wall_seconds". Values that are unknown, or missing in an older record, say nothing. Of a record
/// whose types are as described.
std::optional<std::string> contradiction(const Json& record);

}  // namespace scalemark

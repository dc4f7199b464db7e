// Records and wire formats as JSON, from their descriptions.
#pragma once

#include <string>
#include <string_view>

#include "record/describe.hpp"
#include "record/known.hpp"

namespace scalemark {

/// The reason why what stands at `path` is null, beside those that are known already.
void join_reason(Json& reasons, const std::string& path, const std::string& reason);

/// Collects, while an object is written, why its nulls are unknown: by dotted path, without
/// indices of arrays.
class JsonWriter {
 public:
  /// `otherwise`: the reason for what has none.
  explicit JsonWriter(std::string otherwise) : otherwise_(std::move(otherwise)) {}
  Json write(const Fields& fields, const void* object);
  void explain(const Field& field, const std::string& why);
  Json write_below(std::string_view key, const Field& field, const Shape& shape, const void* value);
  Json take_reasons() { return std::move(reasons_); }

 private:
  std::string otherwise_, path_;
  Json reasons_ = Json::object();
};

/// What is known alone; the reason is told elsewhere.
template <typename T>
Json or_null(const Known<T>& value) {
  return value ? Json(*value) : Json();
}

/// A record: the keys of its fields in their order, and last `unavailable`, the reasons for its
/// nulls; `otherwise` is that of nulls without one.
template <typename T>
Json record_json(const T& record, std::string otherwise = "not reported") {
  JsonWriter writer(std::move(otherwise));
  Json json = writer.write(fields_of<T>(), &record);
  json["unavailable"] = writer.take_reasons();
  return json;
}

/// Of a measurement that came to an end.
template <typename T>
Json measured_json(const T& record) {
  return record_json(record, "not reported by the engine");
}

/// Of a run that ended before it was measured.
template <typename T>
Json unmeasured_json(const T& record) {
  return record_json(record, "the run ended before it was measured: " + record.reason);
}

/// A part of a record, or a format without reasons.
template <typename T>
Json part_json(const T& part) {
  JsonWriter writer("");
  return writer.write(fields_of<T>(), &part);
}

}  // namespace scalemark

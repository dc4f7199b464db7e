// Values as JSON, shape by shape.
#include "record/write.hpp"

#include <cmath>

namespace scalemark {

Json JsonWriter::write(const Fields& fields, const void* object) {
  Json json = Json::object();
  for (const Field& field : fields)
    json[field.key] = write_below(field.key, field, *field.shape,
                                  static_cast<const char*>(object) + field.offset);
  return json;
}

Json JsonWriter::write_below(std::string_view key, const Field& field, const Shape& shape,
                             const void* value) {
  const std::size_t length = path_.size();
  if (!path_.empty()) path_ += '.';
  path_ += key;
  Json json = shape.write(*this, field, value);
  path_.resize(length);
  return json;
}

void JsonWriter::explain(const Field& field, const std::string& why) {
  const std::string& reason = !why.empty()             ? why
                              : *field.unknown != '\0' ? field.unknown
                                                       : otherwise_;
  join_reason(reasons_, path_, reason);
}

void join_reason(Json& reasons, const std::string& path, const std::string& reason) {
  Json& known = reasons[path];
  if (known.is_null())
    known = reason;
  else if (known.get_ref<const std::string&>().find(reason) == std::string::npos)
    known.get_ref<std::string&>() += "; " + reason;
}

Json ObjectShape::write(JsonWriter& writer, const Field&, const void* value) const {
  return writer.write(fields_(), value);
}

Json ListShape::write(JsonWriter& writer, const Field& field, const void* value) const {
  Json list = Json::array();
  for (std::size_t i = 0; i < count(value); ++i)
    list.push_back(inner_.write(writer, field, item(value, i)));
  return list;
}

Json NumbersShape::write(JsonWriter& writer, const Field& field, const void* value) const {
  Json list = Json::array();
  bool all = true;
  for (const double number : *static_cast<const std::vector<double>*>(value)) {
    const bool finite = std::isfinite(number) || field.null_numbers == nullptr;
    list.push_back(finite ? Json(number) : Json(nullptr));
    all = all && finite;
  }
  if (!all) writer.explain(field, field.null_numbers);
  return list;
}

Json IntervalShape::write(JsonWriter&, const Field&, const void* value) const {
  return *static_cast<const Interval*>(value);
}

Json MapShape::write_entry(JsonWriter& writer, const Field& field, const std::string& key,
                           const void* value) const {
  return writer.write_below(key, field, inner_, value);
}

Json NullableShape::write(JsonWriter& writer, const Field& field, const void* value) const {
  if (const void* known = get(value)) return inner_.write(writer, field, known);
  if (const std::string* reason = why(value)) writer.explain(field, *reason);
  return nullptr;
}

}  // namespace scalemark

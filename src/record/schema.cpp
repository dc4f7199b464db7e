// Schemas and tables that say what the writer writes and the reader accepts.
#include "record/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "record/parts.hpp"

namespace scalemark {
namespace {

// The words of JSON Schema (draft 2020-12) that are written.
constexpr const char *kAllOf = "allOf", *kComment = "$comment", *kConst = "const",
                     *kDescription = "description", *kElse = "else", *kEnum = "enum", *kIf = "if",
                     *kItems = "items", *kMaxItems = "maxItems", *kMinItems = "minItems",
                     *kNot = "not", *kOneOf = "oneOf", *kPattern = "pattern",
                     *kProperties = "properties", *kPropertyNames = "propertyNames",
                     *kRequired = "required", *kSince = "since", *kThen = "then", *kType = "type";

void add_limits(Json& schema, const Limits& limits) {
  const auto add = [&](const char* key, const std::optional<double>& limit) {
    if (!limit) return;
    const auto whole = static_cast<std::int64_t>(*limit);
    schema[key] = static_cast<double>(whole) == *limit ? Json(whole) : Json(*limit);
  };
  add("minimum", limits.least);
  add("exclusiveMinimum", limits.above);
  add("maximum", limits.most);
  add("exclusiveMaximum", limits.below);
}

/// `of`: "Length", "Items", "Properties".
void add_sizes(Json& schema, const Limits& limits, const std::string& of) {
  if (limits.fewest) schema["min" + of] = *limits.fewest;
  if (limits.longest) schema["max" + of] = *limits.longest;
}

Json words_schema(const Json& words) {
  return words.size() == 1 ? Json{{kConst, words[0]}} : Json{{kEnum, words}};
}

void add_conditions(Json& schema, const Fields& fields);
void add_unknown_where(Json& schema, const Fields& fields);

/// Whether an object says what became of something: its status decides what of it is known.
bool is_outcome(const Fields& fields) {
  const auto is_status = [](const Field& field) { return field.shape == &shape_of<Status>(); };
  const auto is_reason = [](const Field& field) { return field.key == std::string_view("reason"); };
  return std::ranges::any_of(fields, is_status) && std::ranges::any_of(fields, is_reason);
}

Json object_schema(const Fields& fields) {
  Json required = Json::array(), properties = Json::object();
  for (const Field& field : fields) {
    if (field.first_revision == 1 && !field.may_lack) required.push_back(field.key);
    Json property = field.shape->schema(field);
    if (property.is_boolean()) property = Json::object();
    if (field.first_revision > 1) property[kSince] = field.first_revision;
    if (*field.text != '\0')
      property[kDescription] = *field.of == '\0' ? std::string(field.text)
                                                 : fmt::format("{} ({})", field.text, field.of);
    properties[field.key] = std::move(property);
  }
  Json schema{{kType, "object"},
              {"additionalProperties", false},
              {kRequired, std::move(required)},
              {kProperties, std::move(properties)}};
  for (const std::string& key : fields.alternatives())
    schema[kOneOf].push_back({{kRequired, {key}}});
  if (is_outcome(fields)) add_conditions(schema, fields);
  add_unknown_where(schema, fields);
  return schema;
}

/// That a value is known, by the schema of what it may be.
Json known_schema(const Json& schema) {
  Json known = Json::object();
  if (schema.contains(kType)) {
    const Json& type = schema[kType];
    known[kType] = type.is_array() ? type[0] : type;
    if (known[kType] == "array") known[kMinItems] = 1;
  } else {
    known[kNot] = {{kType, "null"}};
  }
  return known;
}

const Json kNull{{kType, "null"}};

/// That a value is unknown; a list that is never null is then empty.
Json unknown_schema(const Field& field) {
  const bool empty = !field.shape->may_be_unknown() && field.shape->path() == "[]";
  return empty ? Json{{kMaxItems, 0}} : kNull;
}

Json of_status(const Json& words) { return {{kProperties, {{"status", words_schema(words)}}}}; }

/// What a status that is ok asks of a part that has one of its own: the same, and all of its
/// values.
Json asked_of_outcome(const Fields& fields) {
  Json asked = of_status({"ok"});
  for (const Field& field : fields)
    if (field.presence == Presence::when_all_ok)
      asked[kProperties][field.key] = known_schema(field.shape->schema(field));
  return asked;
}

/// What a status asks of the fields and of those below them; empty where it asks nothing.
Json asked(const Fields& fields, bool ok) {
  Json properties = Json::object();
  for (const Field& field : fields) {
    const Presence presence = field.presence;
    const bool is_known =
        ok && (presence == Presence::when_ok || presence == Presence::only_when_ok);
    const bool is_unknown =
        ok ? presence == Presence::not_when_ok || presence == Presence::when_partial
           : presence == Presence::only_when_ok || presence == Presence::if_ok ||
                 presence == Presence::when_all_ok;
    Json of_field = is_known     ? known_schema(field.shape->schema(field))
                    : is_unknown ? unknown_schema(field)
                                 : Json::object();
    const Fields* inner = field.shape->fields();
    const std::string path = field.shape->path();
    if (inner != nullptr && !is_unknown && (path.empty() || path == "[]")) {
      Json below = !is_outcome(*inner) ? asked(*inner, ok)
                   : ok                ? asked_of_outcome(*inner)
                                       : Json::object();
      if (!below.empty() && path.empty())
        of_field.update(below);
      else if (!below.empty())
        of_field[kItems] = std::move(below);
    }
    if (!of_field.empty()) properties[field.key] = std::move(of_field);
  }
  return properties.empty() ? Json::object() : Json{{kProperties, std::move(properties)}};
}

/// By the text of another key of the object.
void add_unknown_where(Json& schema, const Fields& fields) {
  Json rule = Json::object();
  for (const Field& field : fields) {
    if (field.unknown_by == nullptr) continue;
    rule[kIf] = {{kProperties, {{field.unknown_by, {{kConst, field.unknown_word}}}}}};
    rule[kThen][kProperties][field.key] = kNull;
    if (field.known_elsewhere)
      rule[kElse][kProperties][field.key] = known_schema(field.shape->schema(field));
  }
  if (schema.contains(kIf) && !rule.empty())
    schema[kAllOf] = Json::array({std::move(rule)});
  else
    schema.update(rule);
}

void add_conditions(Json& schema, const Fields& fields) {
  schema[kIf] = of_status({"ok"});
  schema[kThen] = asked(fields, true);
  schema[kThen][kProperties]["reason"] = {{kConst, ""}};
  schema[kElse] = asked(fields, false);
  schema[kElse][kProperties]["reason"] = {{"minLength", 1}};
  Json properties = Json::object();
  for (const Field& field : fields)
    if (field.presence == Presence::when_partial) properties[field.key] = kNull;
  if (properties.empty()) return;
  schema[kElse][kIf] = of_status({"interrupted", "timeout"});
  schema[kElse][kElse] = {{kProperties, std::move(properties)}};
}

constexpr std::size_t kLine = 120;

/// Indented by two spaces; a value that fits into the rest of its line stands on it.
std::string pretty(const Json& value, std::size_t indent, std::size_t used) {
  std::string line = value.dump();
  if (!value.is_structured() || value.empty() || used + line.size() <= kLine) return line;
  const std::string margin(indent + 2, ' ');
  std::string text(1, value.is_array() ? '[' : '{');
  for (const auto& [key, part] : value.items()) {
    const std::string name = value.is_array() ? "" : Json(key).dump() + ": ";
    text += (text.size() > 1 ? ",\n" : "\n") + margin + name +
            pretty(part, indent + 2, margin.size() + name.size() + 1);
  }
  return text + "\n" + std::string(indent, ' ') + (value.is_array() ? "]" : "}");
}

/// " (`weak`, `strong`)": legal words that the text does not tell itself.
std::string words_of(const Field& field) {
  const Json schema = field.shape->schema(field);
  if (!schema.is_object() || !schema.contains(kEnum)) return "";
  std::string words;
  for (const Json& word : schema[kEnum]) {
    if (!word.is_string()) continue;
    const std::string shown = fmt::format("`{}`", word.get<std::string>());
    if (std::string_view(field.text).find(shown) != std::string_view::npos) return "";
    words += (words.empty() ? "" : ", ") + shown;
  }
  return words.empty() ? "" : " (" + words + ")";
}

std::string table_line(const Field& field, const std::string& path) {
  const std::string since =
      field.first_revision > 1 ? fmt::format(" (since revision {})", field.first_revision) : "";
  return fmt::format("| `{}` | {} | {}{}{} |\n", path, field.of, field.text, words_of(field),
                     since);
}

std::string table_below(const Fields& fields, const std::string& above,
                        const std::set<std::string>& elsewhere) {
  std::string lines;
  for (const Field& field : fields) {
    const std::string path = above + field.key + field.shape->path();
    lines += table_line(field, path);
    if (field.shape->fields() != nullptr && !elsewhere.contains(field.key))
      lines += table_below(*field.shape->fields(), path + ".", elsewhere);
  }
  return lines;
}

Json with_null(Json types) {
  if (types.is_string()) return {std::move(types), "null"};
  types.push_back("null");
  return types;
}

}  // namespace

Json ScalarShape::schema(const Field& field) const {
  if (!field.limits.words.is_null()) return words_schema(field.limits.words);
  constexpr const char* kTypes[] = {"boolean", "integer", "number", "string"};
  Json schema{{kType, kTypes[static_cast<std::size_t>(scalar_)]}};
  if (scalar_ == Scalar::whole || scalar_ == Scalar::number) add_limits(schema, field.limits);
  if (scalar_ != Scalar::text) return schema;
  add_sizes(schema, field.limits, "Length");
  if (!field.limits.pattern.empty()) schema[kPattern] = field.limits.pattern;
  return schema;
}

Json NameShape::schema(const Field& field) const {
  if (!field.limits.words.is_null()) return words_schema(field.limits.words);
  Json words = Json::array();
  for (const std::string_view name : names_) words.push_back(name);
  return words_schema(words);
}

Json AnyShape::schema(const Field& field) const {
  if (field.json_types.is_null()) return true;
  return {{kType, field.json_types.size() == 1 ? field.json_types[0] : field.json_types}};
}

Json ObjectShape::schema(const Field& field) const {
  Json schema = object_schema(fields_());
  add_sizes(schema, field.limits, "Properties");
  return schema;
}

Json ListShape::schema(const Field& field) const {
  Json schema{{kType, "array"}, {kItems, inner_.schema(field.inner())}};
  add_sizes(schema, field.limits, "Items");
  if (fixed() > 0) schema[kMinItems] = schema[kMaxItems] = fixed();
  return schema;
}

Json NumbersShape::schema(const Field& field) const {
  Json items = shape_of<double>().schema(field.inner());
  if (field.null_numbers != nullptr) items[kType] = {"number", "null"};
  Json schema{{kType, "array"}, {kItems, std::move(items)}};
  add_sizes(schema, field.limits, "Items");
  return schema;
}

Json IntervalShape::schema(const Field&) const {
  return {{kType, "array"}, {kItems, {{kType, "number"}}}, {kMinItems, 2}, {kMaxItems, 2}};
}

Json MapShape::schema(const Field& field) const {
  Json schema{{kType, "object"}, {"additionalProperties", inner_.schema(field.inner())}};
  if (!field.limits.keys.empty()) schema[kPropertyNames] = {{kPattern, field.limits.keys}};
  add_sizes(schema, field.limits, "Properties");
  return schema;
}

Json NullableShape::schema(const Field& field) const {
  Json schema = inner_.schema(field);
  if (!schema.is_object() || field.may_lack) return schema;
  if (schema.contains(kConst)) return {{kEnum, {schema[kConst], nullptr}}};
  if (schema.contains(kEnum))
    schema[kEnum].push_back(nullptr);
  else
    schema[kType] = with_null(schema[kType]);
  return schema;
}

Json format_schema(const std::string& title, const Fields& fields) {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", title},
              {kComment, "Generated from the descriptions in src."}};
  schema.update(object_schema(fields));
  return schema;
}

Json record_schema(const std::string& kind, const Fields& fields) {
  Json schema = format_schema(fmt::format("scalemark {} record", kind), fields);
  schema[kComment] =
      "Generated from src/record. A key with since: N belongs to records of schema_revision N and "
      "later, which must have it.";
  schema[kRequired].push_back("unavailable");
  schema[kProperties]["unavailable"] = {
      {kType, "object"},
      {"additionalProperties", {{kType, "string"}, {"minLength", 1}}},
      {kDescription, "why a key is null, by its dotted path without indices of arrays"}};
  return schema;
}

std::string schema_text(const Json& schema) { return pretty(schema, 0, kLine) + "\n"; }

std::string record_table(const Fields& fields, const std::set<std::string>& elsewhere) {
  return "| key | unit | meaning |\n| --- | --- | --- |\n" + table_below(fields, "", elsewhere);
}

namespace {

using Visit = std::function<void(const Field& field, const std::string& pointer)>;

void visit_below(const Fields& fields, const std::string& above, const Visit& visit) {
  for (const Field& field : fields) {
    std::string pointer = above + "/" + field.key;
    visit(field, pointer);
    if (field.shape->fields() == nullptr) continue;
    for (const char part : field.shape->path())
      if (part == '[') pointer += "/0";
    visit_below(*field.shape->fields(), pointer, visit);
  }
}

}  // namespace

void visit_fields(const Fields& fields, const Visit& visit) { visit_below(fields, "", visit); }

int newest_revision(const Fields& fields) {
  int newest = 1;
  visit_fields(fields, [&](const Field& field, const std::string&) {
    newest = std::max(newest, field.first_revision);
  });
  return newest;
}

}  // namespace scalemark

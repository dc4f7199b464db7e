// See record_schemas.hpp.
#include "result/record_schemas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "schema_texts.hpp"

namespace scalemark {
namespace {

const Json& schemas() {
  static const Json all = [] {
    Json parsed;
    for (const auto& [name, text] : schema_texts::kTexts) parsed[name] = Json::parse(text);
    return parsed;
  }();
  return all;
}

Json blank(const SchemaPart& unresolved) {
  const SchemaPart part = unresolved.resolved();
  const Json type = part.node.value("type", Json());
  if (type == "array") return Json::array();
  if (type != "object") return nullptr;
  Json object = Json::object();
  if (part.node.contains("properties"))
    for (const auto& [key, property] : part.node["properties"].items())
      object[key] = blank({part.home, property});
  return object;
}

/// [part of a schema]: the largest "since" of it and of all below it, references followed; 1 where
/// there is none.
using NewestSince = std::unordered_map<const Json*, int>;

int find_newest(NewestSince& known, const SchemaPart& part) {
  const auto [at, is_new] = known.try_emplace(&part.node, 1);
  if (!is_new) return at->second;
  int newest = 1;
  if (part.node.contains("$ref")) newest = find_newest(known, part.resolved());
  for (const auto& [key, below] : part.node.items())
    if (below.is_structured())
      newest = std::max(newest, find_newest(known, {part.home, below}));
    else if (key == "since" && below.is_number_integer())
      newest = std::max(newest, below.get<int>());
  return known[&part.node] = newest;
}

int newest_since(const SchemaPart& part) {
  static const NewestSince known = [] {
    NewestSince all;
    for (const auto& [name, schema] : schemas().items()) {
      const int newest = find_newest(all, {name, schema});
      all[&schemas()] = std::max(all[&schemas()], newest);
    }
    return all;
  }();
  return known.at(&part.node);
}

/// Of the record `reasons` belongs to; `path` is that of `value`. Most of a schema is as old as any
/// record and not looked at.
struct KeyAdder {
  int revision;
  Json& reasons;

  void add(Json& value, const SchemaPart& unresolved, const std::string& path) const {
    if (newest_since(unresolved) <= revision) return;
    const SchemaPart part = unresolved.resolved();
    for (const char* either : {"anyOf", "oneOf"})
      if (part.node.contains(either))
        for (const Json& one : part.node[either]) add(value, {part.home, one}, path);
    if (value.is_array() && part.node.contains("items"))
      for (Json& item : value) add(item, {part.home, part.node["items"]}, path);
    if (value.is_object() && part.node.contains("properties"))
      for (const auto& [key, property] : part.node["properties"].items())
        add_key(value, key, {part.home, property}, path.empty() ? key : path + "." + key);
  }

  void add_key(Json& object, const std::string& key, const SchemaPart& part,
               const std::string& path) const {
    if (newest_since(part) <= revision) return;
    if (object.contains(key)) return add(object[key], part, path);
    const int since = part.node.value("since", 1);
    if (since <= revision) return;
    object[key] = nullptr;
    reasons[path] = fmt::format("not in records before schema_revision {}", since);
  }
};

}  // namespace

int schema_revision() { return newest_since({"", schemas()}); }
SchemaPart SchemaPart::resolved() const {
  if (!node.contains("$ref")) return *this;
  const std::string reference = node["$ref"];
  const std::size_t hash = reference.find('#');
  const std::string name = hash == 0 ? home : reference.substr(0, reference.find('.'));
  return {name, schemas().at(name).at(Json::json_pointer(reference.substr(hash + 1)))};
}

SchemaPart schema_of(const std::string& name) { return {name, schemas().at(name)}; }

void add_newer_keys(Json& record) {
  const int revision = record.value("schema_revision", 1);
  const std::string kind = record.at("kind");
  if (revision >= schema_revision()) return;
  if (!record.contains("unavailable") || !record["unavailable"].is_object()) return;
  record["schema_revision"] = revision;  // the first records did not say it
  Json reasons = record["unavailable"];
  KeyAdder{revision, reasons}.add(record, {kind, schemas().at(kind)}, "");
  record["unavailable"] = std::move(reasons);
}

const std::vector<std::string>& record_kinds() {
  static const auto kinds = [] {
    std::vector<std::string> names;
    for (const auto& [name, schema] : schemas().items())
      if (schema.contains(Json::json_pointer("/properties/schema_revision"))) names.push_back(name);
    return names;
  }();
  return kinds;
}

Json blank_record(const std::string& kind, const std::string& part) {
  return blank({kind, schemas().at(kind).at(Json::json_pointer(part))});
}

}  // namespace scalemark

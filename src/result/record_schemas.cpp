// See record_schemas.hpp.
#include "result/record_schemas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "schema_texts.hpp"

namespace scalemark {
namespace {

/// [part of a schema]: the largest "since" of it and of all below it; 1 where there is none.
using NewestSince = std::unordered_map<const Json*, int>;

int find_newest(NewestSince& known, const Json& part) {
  int newest = 1;
  for (const auto& [key, below] : part.items())
    if (below.is_structured())
      newest = std::max(newest, find_newest(known, below));
    else if (key == "since" && below.is_number_integer())
      newest = std::max(newest, below.get<int>());
  return known[&part] = newest;
}

struct Schema {
  Json whole;  ///< what references name is in their place
  NewestSince newest_since;
};

/// Parses only what is asked for: all of them together take as long as a short command does.
class Schemas {
 public:
  const Schema& get(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = whole_.find(name);
    if (found != whole_.end()) return found->second;
    Json whole = with_references(name, written(name));
    Schema& schema = whole_[name];
    schema.whole = std::move(whole);
    find_newest(schema.newest_since, schema.whole);
    return schema;
  }

 private:
  /// As it stands in docs/schema.
  const Json& written(const std::string& name) {
    if (const auto found = written_.find(name); found != written_.end()) return found->second;
    const auto text = std::ranges::find(schema_texts::kTexts, name, [](const auto& named) {
      return std::string_view(named.first);
    });
    if (text == std::end(schema_texts::kTexts)) throw std::out_of_range("no schema " + name);
    return written_[name] = Json::parse(text->second);
  }

  /// Puts in the place of every reference of `home` what it names, "#/$defs/rank" or
  /// "common.schema.json#/$defs/uuid", beside the keys that stand with it. None leads back to
  /// itself.
  Json with_references(const std::string& home, const Json& node) {
    if (!node.is_structured()) return node;
    Json whole = node.is_array() ? Json::array() : Json::object();
    if (const auto found = node.find("$ref"); found != node.end()) {
      const std::string reference = *found;
      const std::size_t hash = reference.find('#');
      const std::string name = hash == 0 ? home : reference.substr(0, reference.find('.'));
      const Json::json_pointer place(reference.substr(hash + 1));
      whole = with_references(name, written(name).at(place));
    }
    for (const auto& [key, part] : node.items()) {
      if (node.is_array())
        whole.push_back(with_references(home, part));
      else if (key != "$ref" && key != "$defs")
        whole[key] = with_references(home, part);
    }
    return whole;
  }

  std::mutex mutex_;
  std::unordered_map<std::string, Json> written_;
  std::unordered_map<std::string, Schema> whole_;
};

const Schema& schema(const std::string& name) {
  static Schemas all;
  return all.get(name);
}

/// Of the record `reasons` belongs to; `path` is that of `value`. Most of a schema is as old as any
/// record and not looked at.
struct KeyAdder {
  int revision;
  const NewestSince& newest_since;
  Json& reasons;

  void add(Json& value, const Json& part, const std::string& path) const {
    if (newest_since.at(&part) <= revision) return;
    for (const char* either : {"anyOf", "oneOf"})
      if (part.contains(either))
        for (const Json& one : part[either]) add(value, one, path);
    if (value.is_array() && part.contains("items"))
      for (Json& item : value) add(item, part["items"], path);
    if (value.is_object() && part.contains("properties"))
      for (const auto& [key, property] : part["properties"].items())
        add_key(value, key, property, path.empty() ? key : path + "." + key);
  }

  void add_key(Json& object, const std::string& key, const Json& part,
               const std::string& path) const {
    if (newest_since.at(&part) <= revision) return;
    if (object.contains(key)) return add(object[key], part, path);
    const int since = part.value("since", 1);
    if (since <= revision) return;
    object[key] = nullptr;
    reasons[path] = fmt::format("not in records before schema_revision {}", since);
  }
};

}  // namespace

const Json& schema_of(const std::string& name) { return schema(name).whole; }

/// Read off the texts: to parse them all takes as long as a short command does.
int schema_revision() {
  static const int newest = [] {
    constexpr std::string_view key = "\"since\":";
    int found = 1;
    for (const auto& [name, text] : schema_texts::kTexts)
      for (const char* at = std::strstr(text, key.data()); at; at = std::strstr(at, key.data()))
        found = std::max(found, std::atoi(at += key.size()));
    return found;
  }();
  return newest;
}

void add_newer_keys(Json& record) {
  const int revision = record.value("schema_revision", 1);
  const std::string kind = record.at("kind");
  if (revision >= schema_revision()) return;
  if (!record.contains("unavailable") || !record["unavailable"].is_object()) return;
  record["schema_revision"] = revision;  // the first records did not say it
  Json reasons = record["unavailable"];
  const Schema& of_kind = schema(kind);
  KeyAdder{revision, of_kind.newest_since, reasons}.add(record, of_kind.whole, "");
  record["unavailable"] = std::move(reasons);
}

const std::vector<std::string>& record_kinds() {
  static const auto kinds = [] {
    std::vector<std::string> names;
    for (const auto& [name, text] : schema_texts::kTexts)
      if (std::string_view(name) != "common" && std::strstr(text, "\"schema_revision\": {"))
        names.push_back(name);
    return names;
  }();
  return kinds;
}

}  // namespace scalemark

// See schema_fault.hpp.
#include "result/schema_fault.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <vector>

#include "config/json_text.hpp"
#include "record/read.hpp"
#include "result/record_schemas.hpp"

namespace scalemark {
namespace {

/// `at`: the pointer from where the search began.
struct Fault {
  std::string at, what;
};
using MaybeFault = std::optional<Fault>;

MaybeFault within(std::string_view pointer, MaybeFault found) {
  if (found) found->at.insert(0, pointer);
  return found;
}

bool is_of_type(const Json& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "integer") return is_whole(value);
  if (type == "boolean") return value.is_boolean();
  return value.is_null();
}

/// "of type integer or null".
std::string words_of(const Json& types) {
  if (types.is_string()) return "of type " + types.get<std::string>();
  return fmt::format("of type {}", fmt::join(types.get<std::vector<std::string>>(), " or "));
}

class Checker {
 public:
  explicit Checker(MissingKeys missing) : missing_(missing) {}

  MaybeFault check(const Json& value, const Json& part) const {
    if (auto found = check_alternatives(value, part)) return found;
    if (auto found = check_word(value, part)) return found;
    if (value.is_number()) return check_range(value, part);
    if (value.is_string())
      return check_size(value, value.get_ref<const std::string&>().size(), part, "minLength",
                        "maxLength");
    if (value.is_array()) return check_items(value, part);
    if (value.is_object()) return check_members(value, part);
    return std::nullopt;
  }

 private:
  /// Where none fits, what the first of them misses: the others are "null" and the like.
  MaybeFault check_alternatives(const Json& value, const Json& part) const {
    for (const char* either : {"anyOf", "oneOf"}) {
      const auto found = part.find(either);
      if (found == part.end()) continue;
      MaybeFault first;
      for (const Json& one : *found) {
        MaybeFault missed = check(value, one);
        if (!missed) return std::nullopt;
        if (!first) first = std::move(missed);
      }
      return first;
    }
    return std::nullopt;
  }

  static MaybeFault check_word(const Json& value, const Json& node) {
    const auto no = [&](const std::string& what) {
      return Fault{"", fmt::format("is {}, not {}", shown_value(value), what)};
    };
    if (const auto only = node.find("const"); only != node.end() && *only != value)
      return no(only->dump());
    if (const auto words = node.find("enum"); words != node.end())
      if (std::ranges::find(*words, value) == words->end()) return no("one of " + words->dump());
    const auto types = node.find("type");
    if (types == node.end()) return std::nullopt;
    const auto fits = [&](const Json& type) {
      return is_of_type(value, type.get_ref<const std::string&>());
    };
    if (types->is_string() ? fits(*types) : std::ranges::any_of(*types, fits)) return std::nullopt;
    return no(words_of(*types));
  }

  static MaybeFault check_range(const Json& value, const Json& node) {
    const double number = value.get<double>();
    const auto refuse = [&](const char* key, const char* what, auto&& fits) -> MaybeFault {
      const auto limit = node.find(key);
      if (limit == node.end() || fits(number, limit->get<double>())) return std::nullopt;
      return Fault{"", fmt::format("is {}, not {} {}", value.dump(), what, limit->dump())};
    };
    if (auto found = refuse("minimum", "at least", std::greater_equal<>())) return found;
    if (auto found = refuse("maximum", "at most", std::less_equal<>())) return found;
    if (auto found = refuse("exclusiveMinimum", "above", std::greater<>())) return found;
    return refuse("exclusiveMaximum", "below", std::less<>());
  }

  /// `fewest`, `longest`: keys of the schema, "minItems" and "maxItems".
  static MaybeFault check_size(const Json& value, std::size_t size, const Json& node,
                               const char* fewest, const char* longest) {
    const auto least = node.find(fewest), most = node.find(longest);
    if ((least == node.end() || size >= least->get<std::size_t>()) &&
        (most == node.end() || size <= most->get<std::size_t>()))
      return std::nullopt;
    const auto limit = [&](auto found, const char* otherwise) {
      return found == node.end() ? otherwise : found->dump();
    };
    return Fault{"", fmt::format("({}) has a size of {}, not from {} to {}", shown_value(value),
                                 size, limit(least, "0"), limit(most, "any"))};
  }

  MaybeFault check_items(const Json& value, const Json& part) const {
    if (auto found = check_size(value, value.size(), part, "minItems", "maxItems")) return found;
    const auto items = part.find("items");
    if (items == part.end()) return std::nullopt;
    for (std::size_t i = 0; i < value.size(); ++i)
      if (auto found = check(value[i], *items)) return within(fmt::format("/{}", i), found);
    return std::nullopt;
  }

  MaybeFault check_members(const Json& value, const Json& part) const {
    if (auto found = check_size(value, value.size(), part, "minProperties", "maxProperties"))
      return found;
    const auto required = part.find("required");
    if (missing_ == MissingKeys::refused && required != part.end())
      for (const Json& key : *required)
        if (!value.contains(key)) return Fault{pointer_to(key), "is missing"};
    const Json none = Json::object();
    const auto known = part.find("properties");
    const Json& properties = known == part.end() ? none : *known;
    auto next = value.begin();
    for (const auto& [key, schema] : properties.items()) {
      // Keys stand in the schema's order in nearly every record: no search.
      const auto member = next != value.end() && next.key() == key ? next : value.find(key);
      if (member == value.end()) continue;
      next = std::next(member);
      if (auto found = check(*member, schema)) return within(pointer_to(key), found);
    }
    const auto others = part.find("additionalProperties");
    if (others == part.end() || !others->is_object()) return std::nullopt;
    for (const auto& [key, member] : value.items())
      if (!properties.contains(key))
        if (auto found = check(member, *others)) return within(pointer_to(key), found);
    return std::nullopt;
  }

  MissingKeys missing_;
};

}  // namespace

std::optional<std::string> schema_fault(const Json& content, const std::string& schema,
                                        MissingKeys missing) {
  const MaybeFault found = Checker(missing).check(content, schema_of(schema));
  if (!found) return std::nullopt;
  return fmt::format("{}{}{}", found->at, found->at.empty() ? "" : " ", found->what);
}

std::string why_not(const Json& content, const std::string& schema, const std::exception& error) {
  // Only a missing key makes readers of checked content ask for what is not there.
  if (!dynamic_cast<const Json::exception*>(&error)) return error.what();
  return schema_fault(content, schema, MissingKeys::refused).value_or(error.what());
}

}  // namespace scalemark

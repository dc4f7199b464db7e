// JSON as records, plans and configurations hold it: members keep their order, unknown is null.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace scalemark {

using Json = nlohmann::ordered_json;

template <typename J = Json, typename T>
J or_null(const std::optional<T>& value) {
  return value ? J(*value) : J(nullptr);
}

/// A text; null where it is empty.
inline Json null_if_empty(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace scalemark

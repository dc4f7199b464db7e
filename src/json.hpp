// JSON as records, plans and configurations hold it: members keep their order, unknown is null.
#pragma once

#include <compare>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#if NLOHMANN_JSON_VERSION_MAJOR == 3 && NLOHMANN_JSON_VERSION_MINOR < 11
namespace nlohmann {
/// Versions before 3.11 have none. GCC then makes one up of their implicit conversions, by which
/// all values are alike as elements of a vector or tuple, and so in every array.
inline std::partial_ordering operator<=>(const ordered_json& a, const ordered_json& b) noexcept {
  if (a < b) return std::partial_ordering::less;
  if (b < a) return std::partial_ordering::greater;
  return a == b ? std::partial_ordering::equivalent : std::partial_ordering::unordered;
}
}  // namespace nlohmann
#endif

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

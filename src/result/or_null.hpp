// Unknown values of records.
#pragma once

#include <optional>

#include "result/records.hpp"

namespace scalemark {

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace scalemark

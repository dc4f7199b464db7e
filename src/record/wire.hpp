// What ranks send each other, as text.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "error.hpp"
#include "record/read.hpp"
#include "record/write.hpp"

namespace scalemark {

/// Numbers that are not finite travel as null, where their field lets them.
template <typename T>
std::string to_wire(const T& value) {
  return part_json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Throws RunError, with the place, for anything that to_wire() of the same type does not write.
template <typename T>
T from_wire(std::string_view text) {
  try {
    return part_from<T>(Json::parse(text));
  } catch (const RecordFault& fault) {
    throw RunError(fmt::format("what a rank sent: {}", fault.what()));
  } catch (const Json::exception& fault) {
    throw RunError(fmt::format("what a rank sent: {}", fault.what()));
  }
}

}  // namespace scalemark

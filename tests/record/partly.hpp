// Records of which a test writes down no more than what is looked at.
#pragma once

#include "record/read.hpp"

namespace scalemark::test {

/// What `record` lacks is unknown, empty or 0.
template <typename Record>
Record partly(const Json& record) {
  return part_from<Record>(record, record.value("unavailable", Json::object()), /*revision=*/0);
}

}  // namespace scalemark::test

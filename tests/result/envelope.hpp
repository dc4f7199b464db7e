// A record of any kind that has nothing but what all records have.
#pragma once

#include <string>

#include "record/write.hpp"
#include "result/records.hpp"

namespace scalemark {

inline Json envelope(const std::string& kind, Status status, const std::string& reason = {}) {
  record::AnyRecord record;
  set_envelope(record, kind, {status, reason});
  Json json = part_json(record);
  json.erase("findings");
  return json;
}

}  // namespace scalemark

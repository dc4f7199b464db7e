// A baseline: the launches of one build on one machine, kept to be compared with.
#pragma once

#include "measure/work.hpp"
#include "record/parts.hpp"

namespace scalemark {

template <>
struct Description<Work> {
  static void of(Fields& fields);
};

namespace record {

struct BaselineReference {
  std::string id, created_at, checksum;
  static void describe(Fields& fields);
};
/// The one that was replaced.
struct PreviousBaseline : BaselineReference {
  std::string because;
  static void describe(Fields& fields);
};
struct BaselineLaunch {
  std::string id, started_at, host, unit;
  std::int64_t ranks = 1;
  std::optional<std::int64_t> sweep;
  std::vector<Work> repeats;
  std::map<std::string, double> metrics;
  std::map<std::string, Json> keys;
  std::vector<std::string> defaults, unknown;
  std::map<std::string, std::string> environment;
  static void describe(Fields& fields);
};

}  // namespace record

struct Baseline : record::Envelope {
  std::string label, revision;
  Json fingerprint = Json::object();
  std::vector<record::BaselineLaunch> launches;
  Known<record::PreviousBaseline> previous;
  std::string checksum;
  static void describe(Fields& fields);
};

}  // namespace scalemark

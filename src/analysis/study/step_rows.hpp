// What a step of a study has left, as rows that figures are read from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "json.hpp"

namespace scalemark {

/// A launch of a sweep, a round or a point of a curve, a check, a point of a projection or a plan.
struct StepRow {
  Json settings = Json::object();  ///< of the sweep's point
  Json columns = Json::object();   ///< of flat_columns()
  Json part = nullptr;             ///< the record, point or check itself: pointers lead into it
  std::optional<std::int64_t> repeat = {};
  bool of_round = false;  ///< one of the repeats that a point is made of: `throughput` alone

  /// A setting, else a column, else a member of `part`; null where there is none.
  Json value(const std::string& name) const;
};

/// Of a sweep's folder (launches of the build `revision` alone) or a record. ResultError where it
/// can't be read.
std::vector<StepRow> read_step_rows(const std::filesystem::path& result,
                                    const std::string& revision);
/// Of a plan that a dry run has printed into a file. Likewise.
std::vector<StepRow> read_plan_rows(const std::filesystem::path& plan);
/// Of one record, or of a plan that a dry run has printed.
std::vector<StepRow> step_rows(const Json& record);

}  // namespace scalemark

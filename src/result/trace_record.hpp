// What the record says of a trace: trace and operators (docs/records.md), from what every rank
// noted down.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json.hpp"
#include "measure/rank_trace.hpp"

namespace scalemark {

struct TraceFacts {
  std::string path;
  std::vector<RankTrace> ranks;          ///< totals
  std::int64_t events = 0;               ///< spans in the file, of all ranks
  double seconds = 0;                    ///< of the whole pass, until the file was there
  double clock_uncertainty_seconds = 0;  ///< of the worst rank
};

/// trace and operators of a run or inference record whose other parts are filled: the cost is
/// relative to its measured steps, and the roof is its own. Formulas: docs/measurements.md.
void fill_trace(Json& record, const TraceFacts& facts);

/// Both are null for this reason.
void fill_no_trace(Json& record, const std::string& reason);

}  // namespace scalemark

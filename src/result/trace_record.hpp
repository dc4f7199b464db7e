// What the record says of a trace: trace and operators (docs/records.md), from what every rank
// noted down.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/rank_trace.hpp"
#include "record/inference.hpp"
#include "record/run.hpp"

namespace scalemark {

struct TraceFacts {
  std::string path;
  std::vector<RankTrace> ranks;          ///< totals
  std::int64_t events = 0;               ///< spans in the file, of all ranks
  double seconds = 0;                    ///< of the whole pass, until the file was there
  double clock_uncertainty_seconds = 0;  ///< of the worst rank
};

/// The mean step that a trace of this measurement is compared with; unset where none was measured.
std::optional<double> measured_step(const RunResult& run);
std::optional<double> measured_step(const InferenceResult& inference);

/// trace and operators of a run or an inference whose other parts are filled: the cost is relative
/// to its measured steps, and the GEMM peak is its own. Formulas: docs/measurements.md.
void fill_trace(record::Measured& run, std::optional<double> measured_step,
                const TraceFacts& facts);

/// Both are unknown for this reason.
void fill_no_trace(record::Measured& run, const std::string& reason);

}  // namespace scalemark

// The numbers of a preflight record by the names that rules know them by.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/preflight.hpp"

namespace scalemark {

struct PreflightValue {
  std::string check;      ///< "gemm.fp32", "collective.allreduce.mpi.1024", "host"
  std::string statistic;  ///< "flops", "busbw", "governor"
  std::string unit;       ///< "FLOP/s", "bytes/s", "s", or empty
  bool higher_is_better = true;
  Json value = nullptr;     ///< number, text or truth value; null: unknown
  std::optional<int> rank;  ///< empty: of a host, or of all ranks
  std::string host;         ///< empty: of all ranks
  std::string detail;       ///< what is wrong, where the number alone does not say it
};

/// All that a record holds: the keys that say in src/record which way they are better, and what is
/// computed from others. docs/preflight.md lists checks and statistics.
std::vector<PreflightValue> preflight_values(const PreflightResult& record);

/// "4.52 GB/s", "183 GFLOP/s", "1.02 ms", "0.5": for people.
std::string shown_value(const Json& value, const std::string& unit);

}  // namespace scalemark

// `scalemark compare A B ...`: result sets against the first of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare.hpp"
#include "error.hpp"
#include "launch/record_output.hpp"

namespace scalemark {

struct CompareRequest {
  std::vector<std::string> sets;  ///< PATH or LABEL=PATH; the first is the base
  std::optional<std::string> by;  ///< key that one path is split by
  std::vector<std::string> by_values;
  CompareQuestions questions;
  RecordOutput output;
};

/// The words after `compare`. ConfigError where they are wrong.
CompareRequest read_compare_request(std::span<const std::string> arguments);

std::string compare_help();

/// Prints the comparison and writes its record. Exit code 0 whatever the verdicts are.
ExitCode run_compare(const CompareRequest& request);

}  // namespace scalemark

// From --fused to the operators that a network and its training are computed with.
#pragma once

#include "config/run_config.hpp"
#include "models/operator_set.hpp"

namespace scalemark {

inline const OperatorSet& operators_of(const ResolvedConfig& config) {
  return config.fused == Fused::on ? standard_operators() : torch_operators();
}

}  // namespace scalemark

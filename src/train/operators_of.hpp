// From --kernels to the operators that a network and its training are computed with.
#pragma once

#include <stdexcept>

#include "config/run_config.hpp"
#include "models/operator_set.hpp"

namespace scalemark {

inline const OperatorSet& operators_of(const ResolvedConfig& config) {
  if (config.kernels == Kernels::torch) return torch_operators();
  if (!own_operators()) throw std::logic_error("--kernels scalemark in a build without them");
  return *own_operators();
}

}  // namespace scalemark

// Says in which arithmetic a configuration computes: the type, the operators, and how denormal
// floats count, that is those below 1.2e-38, which CPUs process in microcode: a hundred cycles or
// more instead of one.
#pragma once

#include <ATen/ATen.h>

#include "config/run_config.hpp"
#include "models/operator_set.hpp"

namespace scalemark {

/// Returns the type of activations and of the weights that layers compute with. tf32 is fp32 in
/// memory: the GPU's matrix units round it as they read (DeviceBackend::set_precision). int8 is
/// fp32 between its layers.
at::ScalarType compute_dtype(Precision precision);

/// Makes denormal numbers count as zero, or as what they are, in this thread and in those that it
/// starts later. A model that has learnt its synthetic data has many of them in its gradients, and
/// its steps then take twice as long (docs/measurements.md). Returns false where the CPU does not
/// support this.
bool flush_denormals(bool on);

/// Returns whether this thread flushes denormals. The result is computed, not remembered.
bool denormals_are_flushed();

/// Returns the operators of --kernels, with which a network and its training are computed.
const OperatorSet& operators_of(const ResolvedConfig& config);

}  // namespace scalemark

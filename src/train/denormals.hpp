// Floats below 1.2e-38, which CPUs compute with in microcode: some hundred cycles instead of one.
#pragma once

namespace scalemark {

/// Of this thread and of those that it starts later: such numbers count as zero, or as what they
/// are. A model that has learnt its synthetic data has many in its gradients, and its steps take
/// twice as long (docs/measurements.md). False where the CPU can't.
bool flush_denormals(bool on);

/// Whether this thread does: computed, not remembered.
bool denormals_are_flushed();

}  // namespace scalemark

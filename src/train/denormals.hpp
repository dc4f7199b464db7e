// Controls denormal floats, that is those below 1.2e-38, which CPUs process in microcode: a hundred
// cycles or more instead of one.
#pragma once

namespace scalemark {

/// Makes denormal numbers count as zero, or as what they are, in this thread and in those that it
/// starts later. A model that has learnt its synthetic data has many of them in its gradients, and
/// its steps then take twice as long (docs/measurements.md). Returns false where the CPU does not
/// support this.
bool flush_denormals(bool on);

/// Returns whether this thread flushes denormals. The result is computed, not remembered.
bool denormals_are_flushed();

}  // namespace scalemark

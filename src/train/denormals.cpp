// Sets and tests the processor's flags for denormal numbers.
#include "train/denormals.hpp"

#include <ATen/Context.h>

#include <limits>

namespace scalemark {

bool flush_denormals(bool on) { return at::globalContext().setFlushDenormal(on); }

bool denormals_are_flushed() {
  const volatile float smallest = std::numeric_limits<float>::min();
  const volatile float half = smallest / 2;
  return half == 0;
}

}  // namespace scalemark

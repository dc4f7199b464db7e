// What rank 0 hears of a rank's trace: the sums, without the spans.
#pragma once

#include "measure/rank_trace.hpp"
#include "record/describe.hpp"

namespace scalemark {

template <>
struct Description<OperatorTotal> {
  static void of(Fields& fields);
};
template <>
struct Description<RankTrace> {
  static void of(Fields& fields);
};

}  // namespace scalemark

// Defines what one rank records of a few steps, each item with its begin and end, before it is
// written anywhere.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace scalemark {

/// The properties that many spans have in common.
struct SpanLabel {
  std::string name;
  std::string category;  ///< "step", "phase", "operator", "autograd", "wait", "bucket", "kernel" or
                         ///< "copy"
  std::string shapes;    ///< shapes of the operands of an operator; empty: none
  std::string amount;    ///< what Span::amount counts: "flops", "bytes"; empty: nothing
};

/// An interval of time in the trace of a rank.
struct Span {
  std::uint32_t label = 0;    ///< index
  int thread = 0;             ///< a key of RankTrace::threads
  double begin = 0, end = 0;  ///< steady_seconds() of the rank's machine
  std::int64_t amount = 0;    ///< 0: not known
};

/// The sum of all calls of an operator in the traced steps, kept separately for each group that the
/// calls belong to.
struct OperatorTotal {
  std::string name;
  std::string group;  ///< a word of kOperatorGroups
  std::int64_t calls = 0;
  double self_seconds = 0;  ///< time without called operators; of n threads in one loop 1/n each
  std::optional<double> flops = 0;  ///< FLOPs of counted operators; unset: unknown
};

/// All that one rank recorded of its traced steps.
struct RankTrace {
  std::int64_t steps = 0;
  double step_seconds = 0;           ///< sum
  double communication_seconds = 0;  ///< sum: waiting for gradients, without operators meanwhile
  std::vector<OperatorTotal> operators;
  std::vector<SpanLabel> labels;
  std::vector<Span> spans;             ///< within a thread they are nested or apart
  std::map<int, std::string> threads;  ///< number to name
  std::int64_t dropped_spans = 0;  ///< spans left out for lack of space; `operators` includes them
};

}  // namespace scalemark

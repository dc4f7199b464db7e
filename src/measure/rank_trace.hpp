// What one rank noted down of a few steps, each thing with its begin and end, before it is written
// anywhere.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace scalemark {

/// What many spans have in common.
struct SpanLabel {
  std::string name;
  std::string category;  ///< "step", "phase", "operator", "autograd", "wait", "bucket", "kernel" or
                         ///< "copy"
  std::string shapes;    ///< of the operands of an operator; empty: none
  std::string amount;    ///< what Span::amount counts: "flops", "bytes"; empty: nothing
};

struct Span {
  std::uint32_t label = 0;    ///< index
  int thread = 0;             ///< a key of RankTrace::threads
  double begin = 0, end = 0;  ///< steady_seconds() of the rank's machine
  std::int64_t amount = 0;    ///< 0: not known
};

/// All calls of an operator in the traced steps, apart by the group that they belong to.
struct OperatorTotal {
  std::string name;
  std::string group;  ///< a word of kOperatorGroups
  std::int64_t calls = 0;
  double self_seconds = 0;  ///< without what it called; of n threads in one loop 1/n of each
  std::optional<double> flops =
      0;  ///< of counted operators; unset: it has some, nobody knows how many
};

struct RankTrace {
  std::int64_t steps = 0;
  double step_seconds = 0;           ///< sum
  double communication_seconds = 0;  ///< sum: waiting for gradients, without operators meanwhile
  std::vector<OperatorTotal> operators;
  std::vector<SpanLabel> labels;
  std::vector<Span> spans;             ///< within a thread they are nested or apart
  std::map<int, std::string> threads;  ///< number to name
  std::int64_t dropped_spans = 0;      ///< for want of room; `operators` has them all the same
};

}  // namespace scalemark

// The keys of a rank's trace, in the form in which it travels.
#include "record/rank_trace.hpp"

namespace scalemark {

void Description<OperatorTotal>::of(Fields& fields) {
  fields.add("name", &OperatorTotal::name);
  fields.add("group", &OperatorTotal::group);
  fields.add("calls", &OperatorTotal::calls);
  fields.add("self_seconds", &OperatorTotal::self_seconds);
  fields.add("flops", &OperatorTotal::flops);
}

void Description<RankTrace>::of(Fields& fields) {
  fields.add("steps", &RankTrace::steps);
  fields.add("step_seconds", &RankTrace::step_seconds);
  fields.add("communication_seconds", &RankTrace::communication_seconds);
  fields.add("dropped_spans", &RankTrace::dropped_spans);
  fields.add("operators", &RankTrace::operators);
}

}  // namespace scalemark

// What the rules need of the verdict of a gate.
#include "analysis/diagnosis/record_evidence.hpp"
#include "analysis/diagnosis/record_view.hpp"

namespace scalemark::diagnosis {

GateEvidence gate_evidence(const Json& record) {
  const RecordView gate(record);
  return {"gate", gate.words("verdict"), gate.number("slowdown_percent"), gate.number("repeats"),
          gate.bounds("interval_percent")};
}

}  // namespace scalemark::diagnosis

// What the rules need of a history record.
#include "analysis/diagnosis/record_evidence.hpp"
#include "analysis/diagnosis/record_view.hpp"

namespace scalemark::diagnosis {

HistoryEvidence history_evidence(const Json& record) {
  HistoryEvidence evidence{"history", {}};
  for (const RecordView& change : RecordView(record).list("changes"))
    evidence.changes.push_back({change.words("kind", 20), change.text("at", 60),
                                change.number("change_percent"), change.number("p")});
  return evidence;
}

}  // namespace scalemark::diagnosis

// What the rules need of a preflight record.
#include "analysis/diagnosis/record_evidence.hpp"
#include "analysis/diagnosis/record_view.hpp"

namespace scalemark::diagnosis {

PreflightEvidence preflight_evidence(const Json& record) {
  PreflightEvidence evidence;
  for (const RecordView& check : RecordView(record).list("checks"))
    if (check.words("status") == "fail")
      evidence.failed.push_back({check.words("host", 60), check.text("message", 200)});
  return evidence;
}

}  // namespace scalemark::diagnosis

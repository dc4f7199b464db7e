// See diagnose.hpp.
#include "analysis/diagnosis/diagnose.hpp"

#include <variant>

#include "analysis/diagnosis/record_view.hpp"
#include "analysis/diagnosis/rules.hpp"

namespace scalemark::diagnosis {
namespace {

Json number_json(const Quote& quote, const char* sentence) {
  return {{"name", quote.name},
          {"value", std::visit([](const auto& value) { return Json(value); }, quote.value)},
          {"text", quote.text},
          {"record", quote.record},
          {"pointer", quote.pointer},
          {"sentence", sentence},
          {"begin", quote.begin}};
}

Json finding_json(const Finding& finding) {
  Json numbers = Json::array();
  for (const Quote& quote : finding.what.quotes()) numbers.push_back(number_json(quote, "what"));
  for (const Quote& quote : finding.why.quotes()) numbers.push_back(number_json(quote, "why"));
  return {{"rule", finding.rule},
          {"tone", to_string(finding.tone)},
          {"about", finding.about},
          {"what", finding.what.text()},
          {"why", finding.why.text()},
          {"try", finding.tries},
          {"sure", to_string(finding.sure)},
          {"because", finding.because},
          {"numbers", numbers}};
}

}  // namespace

Findings diagnose(const Json& record, const std::vector<RunEvidence>& runs,
                  const Settings& settings) {
  const std::string kind = RecordView(record).words("kind");
  if (kind == "run") return run_findings(run_evidence(record, settings));
  if (kind == "scaling") return curve_findings(curve_evidence(record, runs));
  if (kind == "inference") {
    Findings findings = straggler_findings({run_evidence(record, settings)});
    for (const Finding& finding : inference_findings(inference_evidence(record, settings)))
      findings.push_back(finding);
    return findings;
  }
  if (kind == "instances") return instances_findings(instances_evidence(record));
  if (kind == "comparison") return comparison_findings(comparison_evidence(record));
  if (kind == "verdict") return gate_findings(gate_evidence(record));
  if (kind == "history") return history_findings(history_evidence(record));
  if (kind == "projection") return projection_findings(projection_evidence(record));
  if (kind == "preflight") return preflight_findings(preflight_evidence(record));
  if (kind == "study") return study_findings(study_evidence(record));
  return {};
}

Json findings_json(const Findings& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) list.push_back(finding_json(finding));
  return list;
}

void add_findings(Json& record, const std::vector<RunEvidence>& runs) {
  record["findings"] = findings_json(diagnose(record, runs));
}

void add_findings(Json& record, const std::vector<ResultSet>& sets, const Matching& matching) {
  Findings findings = diagnose(record);
  for (const Finding& finding : change_findings(sides_evidence(sets, matching)))
    findings.push_back(finding);
  record["findings"] = findings_json(findings);
}

}  // namespace scalemark::diagnosis

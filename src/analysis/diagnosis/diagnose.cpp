// Applies the rules to records and folders of records.
#include "analysis/diagnosis/diagnose.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <variant>

#include "analysis/diagnosis/record_view.hpp"
#include "analysis/diagnosis/rules.hpp"
#include "record/write.hpp"

namespace scalemark::diagnosis {
namespace {

void add_numbers(record::Finding& finding, const Sentence& sentence, const char* name) {
  for (const Quote& quote : sentence.quotes())
    finding.numbers.push_back(
        {quote.name, std::visit([](const auto& value) { return Json(value); }, quote.value),
         quote.text, quote.record, quote.pointer, name, static_cast<std::int64_t>(quote.begin)});
}

record::Finding written(const Finding& finding) {
  record::Finding made{finding.rule,
                       to_string(finding.tone),
                       finding.about,
                       finding.what.text(),
                       finding.why.text(),
                       finding.tries,
                       to_string(finding.sure),
                       finding.because,
                       {}};
  add_numbers(made, finding.what, "what");
  add_numbers(made, finding.why, "why");
  return made;
}

/// Makes likely what would be sure if the record did not warn of what it was measured with. A note
/// claims no effect, so it stays.
Findings doubted(Findings findings, const RecordView& record) {
  const std::string warning = record.first_words("warnings", 160);
  if (warning.empty()) return findings;
  for (Finding& finding : findings) {
    if (finding.sure != Certainty::sure || finding.tone == Tone::note) continue;
    finding.sure = Certainty::likely;
    finding.because += "; but the record warns: " + warning;
  }
  return findings;
}

}  // namespace

Findings diagnose(const Json& record, const std::vector<RunEvidence>& runs,
                  const Settings& settings) {
  const RecordView view(record);
  const std::string kind = view.words("kind");
  if (kind == "run") return run_findings(run_evidence(record, settings));
  if (kind == "scaling") return doubted(curve_findings(curve_evidence(record, runs)), view);
  if (kind == "inference") {
    Findings findings = straggler_findings({run_evidence(record, settings)});
    for (const Finding& finding : inference_findings(inference_evidence(record, settings)))
      findings.push_back(finding);
    return findings;
  }
  if (kind == "instances") return instances_findings(instances_evidence(record));
  if (kind == "comparison") return doubted(comparison_findings(comparison_evidence(record)), view);
  if (kind == "verdict") return doubted(gate_findings(gate_evidence(record)), view);
  if (kind == "history") return history_findings(history_evidence(record));
  if (kind == "projection") return projection_findings(projection_evidence(record));
  if (kind == "preflight") return preflight_findings(preflight_evidence(record));
  if (kind == "study") return doubted(study_findings(study_evidence(record)), view);
  return {};
}

std::vector<record::Finding> written(const Findings& findings) {
  std::vector<record::Finding> list;
  for (const Finding& finding : findings) list.push_back(written(finding));
  return list;
}

Json findings_json(const Findings& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) list.push_back(part_json(written(finding)));
  return list;
}

void add_findings(ScalingCurve& curve, const std::vector<RunEvidence>& runs) {
  curve.findings = written(diagnose(curve_json(curve), runs));
}

void add_findings(Json& record) { record["findings"] = findings_json(diagnose(record)); }

std::vector<record::Finding> written_findings(const Json& record,
                                              const std::vector<ResultSet>& sets,
                                              const Matching& matching) {
  Findings findings = diagnose(record);
  for (const Finding& finding : change_findings(sides_evidence(sets, matching)))
    findings.push_back(finding);
  return written(findings);
}

namespace {

constexpr std::size_t kMostCurves = 40;
constexpr std::size_t kMostTails = 5;

/// Those of a record; what is no object is passed by.
Json own_findings(const Json& record, const std::vector<RunEvidence>& runs) {
  const auto own = record.find("findings");
  if (own == record.end() || !own->is_array()) return findings_json(diagnose(record, runs));
  Json findings = Json::array();
  std::ranges::copy_if(*own, std::back_inserter(findings),
                       [](const Json& finding) { return finding.is_object(); });
  return findings;
}

void append(Json& list, const Json& findings, const Json& of) {
  for (const Json& finding : findings) {
    list.push_back(finding);
    list.back()["of"] = of;
  }
}

std::set<std::string> runs_of_curve(const RecordView& curve) {
  std::set<std::string> ids;
  for (const RecordView& point : curve.list("points")) {
    std::vector<RecordView> lists = point.list("exposed_collectives");
    lists.push_back(point);
    for (const RecordView& of_list : lists)
      for (const RecordView& repeat : of_list.list("repeats")) ids.insert(repeat.words("run"));
  }
  return ids;
}

}  // namespace

void Collection::add(Json record, const Settings& settings) {
  const RecordView view(record);
  const std::string kind = view.words("kind");
  if (kind == "run") {
    runs_.push_back(run_evidence(record, settings));
  } else if (kind == "inference") {
    inferences_.push_back(run_evidence(record, settings));
    served_.emplace(view.id(), inference_evidence(record, settings));
  } else if (kind == "scaling") {
    add_curve(std::move(record));
  } else {
    if (kind == "instances") add_instances(record);
    by_kind_[kind].push_back({view.id(), own_findings(record, {})});
  }
}

void Collection::add_curve(Json record) {
  of_others_.merge(runs_of_curve(RecordView(record)));
  curves_.push_back(std::move(record));
}

void Collection::add_instances(const Json& record) {
  const RecordView view(record);
  for (const char* part : {"alone", "points"})
    for (const RecordView& launch : view.list(part))
      for (const RecordView& repeat : launch.list("repeats"))
        for (const RecordView& job : repeat.list("instances")) of_others_.insert(job.words("run"));
}

Json Collection::findings() const {
  Json list = Json::array();
  const auto append_kind = [&](const std::string& kind) {
    const auto found = by_kind_.find(kind);
    if (found == by_kind_.end()) return;
    for (const Found& one : found->second) append(list, one.findings, one.id);
  };
  append_kind("study");
  for (std::size_t i = 0; i < std::min(curves_.size(), kMostCurves); ++i)
    append(list, own_findings(curves_[i], runs_), RecordView(curves_[i]).id());

  std::vector<RunEvidence> alone, inferences;
  const auto is_alone = [&](const RunEvidence& run) { return !of_others_.contains(run.id); };
  std::ranges::copy_if(runs_, std::back_inserter(alone), is_alone);
  std::ranges::copy_if(inferences_, std::back_inserter(inferences), is_alone);
  alone.insert(alone.end(), inferences.begin(), inferences.end());
  append(list, findings_json(straggler_findings(alone)), nullptr);
  append(list, findings_json(runs_findings(runs_)), nullptr);

  for (const char* kind : {"comparison", "verdict", "history", "preflight", "instances"})
    append_kind(kind);
  std::size_t tails = 0;
  for (const RunEvidence& inference : inferences)
    for (const Finding& finding : inference_findings(served_.at(inference.id)))
      if (finding.rule != "tail" || tails++ < kMostTails)
        append(list, findings_json({finding}), nullptr);
  append_kind("projection");
  return list;
}

}  // namespace scalemark::diagnosis

// Findings of a record, how they stand in it (docs/records.md, "Findings"), and those of a folder
// of records: each record's own, and what several of them say together.
#pragma once

#include <concepts>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/diagnosis/evidence.hpp"
#include "record/parts.hpp"
#include "record/scaling.hpp"
#include "record/write.hpp"

namespace scalemark::diagnosis {

/// By its kind; none of a kind that has no rule. `runs`: of a curve, those that it was made of.
/// `settings`: of the sweep that it is a launch of.
Findings diagnose(const Json& record, const std::vector<RunEvidence>& runs = {},
                  const Settings& settings = {});

/// Returns findings as they stand in a record.
std::vector<record::Finding> written(const Findings& findings);
/// A list, as `findings` of a record.
Json findings_json(const Findings& findings);

/// Sets the findings of a curve. `runs`: those that it was made of.
void add_findings(ScalingCurve& curve, const std::vector<RunEvidence>& runs);
/// Sets record["findings"].
void add_findings(Json& record);
/// Returns the findings of a comparison or a gate, whose sides may have changed in what a step is
/// spent on.
std::vector<record::Finding> written_findings(const Json& record,
                                              const std::vector<ResultSet>& sets,
                                              const Matching& matching);
/// Adds the findings of a typed record to it.
template <std::derived_from<record::Envelope> T>
void add_findings(T& result) {
  result.findings = written(diagnose(record_json(result)));
}

/// Takes records one by one and keeps of each no more than what is needed.
class Collection {
 public:
  /// `settings`: of the sweep that it is a launch of.
  void add(Json record, const Settings& settings = {});

  /// A list, as `findings` of a record, in which `of` is the id of the record that the finding is
  /// about; null where it is about runs. First studies, then curves, each with the runs of its
  /// points, then runs, then the rest. What a record says itself is taken as it is; what is older
  /// than findings is diagnosed here. A straggler, and what takes time in a step, of all runs is
  /// named once.
  Json findings() const;

 private:
  struct Found {
    std::string id;
    Json findings;
  };
  void add_curve(Json record);
  void add_instances(const Json& record);

  std::vector<Json> curves_;
  std::vector<RunEvidence> runs_, inferences_;
  std::map<std::string, InferenceEvidence> served_;    ///< by the id of an inference
  std::map<std::string, std::vector<Found>> by_kind_;  ///< of records that are neither
  std::set<std::string> of_others_;                    ///< runs of curves and of instances
};

}  // namespace scalemark::diagnosis

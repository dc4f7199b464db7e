// What the rules need of the record of a study.
#include "analysis/diagnosis/record_evidence.hpp"
#include "analysis/diagnosis/record_view.hpp"

namespace scalemark::diagnosis {
namespace {

std::string evidence_words(const std::string& name) {
  if (name == "effect") return "the effect itself";
  if (name == "stand_in") return "a stand-in";
  return name == "arithmetic" ? "arithmetic" : "evidence";
}

}  // namespace

StudyEvidence study_evidence(const Json& record) {
  const RecordView study(record);
  StudyEvidence evidence{"study: " + study.words("study", 60),
                         study.words("title"),
                         evidence_words(study.words("evidence")),
                         {}};
  for (const RecordView& figure : study.list("figures"))
    if (const std::string verdict = figure.words("verdict", 40); !verdict.empty())
      evidence.judged.push_back({figure.text("name"), verdict});
  return evidence;
}

}  // namespace scalemark::diagnosis

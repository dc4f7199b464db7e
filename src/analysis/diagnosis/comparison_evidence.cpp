// What the rules need of a comparison record.
#include "analysis/diagnosis/record_evidence.hpp"
#include "analysis/diagnosis/record_view.hpp"

namespace scalemark::diagnosis {

ComparisonEvidence comparison_evidence(const Json& record) {
  const RecordView comparison(record);
  ComparisonEvidence evidence{comparison.words("base", 60), {}};
  for (const RecordView& point : comparison.list("points"))
    evidence.points.push_back({.set = point.text("set", 60),
                               .verdict = point.words("verdict"),
                               .ranks = point.number("ranks"),
                               .difference_percent = point.number("difference_percent"),
                               .p_adjusted = point.number("p_adjusted"),
                               .repeats = point.number("repeats"),
                               .repeats_needed = point.number("repeats_needed"),
                               .interval_percent = point.bounds("interval_percent")});
  return evidence;
}

}  // namespace scalemark::diagnosis

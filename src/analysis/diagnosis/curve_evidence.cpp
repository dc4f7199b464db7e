// What the rules need of a scaling record, with the runs that it was made of.
#include <algorithm>
#include <set>

#include "analysis/diagnosis/record_evidence.hpp"
#include "analysis/diagnosis/record_view.hpp"

namespace scalemark::diagnosis {
namespace {

std::vector<RunEvidence> runs_of(const RecordView& point, const std::vector<RunEvidence>& runs) {
  std::set<std::string> ids;
  for (const RecordView& repeat : point.list("repeats"))
    if (!repeat.is_true("baseline")) ids.insert(repeat.words("run"));
  std::vector<RunEvidence> found;
  std::ranges::copy_if(runs, std::back_inserter(found),
                       [&](const RunEvidence& run) { return ids.contains(run.id); });
  return found;
}

PointEvidence point_evidence(const RecordView& point, const std::vector<RunEvidence>& runs) {
  return {.ranks = point.number("ranks"),
          .resources = point.number("resources"),
          .throughput = point.number("throughput"),
          .speedup = point.number("speedup"),
          .efficiency = point.number("efficiency"),
          .baseline_throughput = point.number("baseline_throughput"),
          .exposed_seconds = point.number("exposed_seconds"),
          .expected_efficiency = point.number("trend/expected_efficiency"),
          .ci95 = point.bounds("ci95"),
          .efficiency_ci95 = point.bounds("efficiency_ci95"),
          .exposed_ci95 = point.bounds("exposed_ci95"),
          .dip = point.is_true("trend/dip"),
          .runs = runs_of(point, runs)};
}

}  // namespace

std::string curve_name(const Json& record) {
  const RecordView curve(record);
  std::string name;
  for (const std::string& word :
       {curve.config("model"), curve.config("precision"), curve.words("scaling")})
    if (!word.empty()) name += (name.empty() ? "" : " ") + word;
  return name;
}

CurveEvidence curve_evidence(const Json& record, const std::vector<RunEvidence>& runs) {
  const RecordView curve(record);
  CurveEvidence evidence{.name = curve_name(record),
                         .unit = curve.words("unit"),
                         .scaling = curve.words("scaling"),
                         .of_launches = curve.words("repeat_unit") == "launch",
                         .wire_dtype = curve.config("wire_dtype"),
                         .overlap = curve.config("overlap"),
                         .points = {}};
  for (const RecordView& point : curve.list("points")) {
    const Number ranks = point.number("ranks"), throughput = point.number("throughput");
    if (ranks && *ranks > 0 && throughput && *throughput > 0)
      evidence.points.push_back(point_evidence(point, runs));
  }
  return evidence;
}

}  // namespace scalemark::diagnosis

// What the rules need of an instances record.
#include "analysis/diagnosis/record_evidence.hpp"
#include "analysis/diagnosis/record_view.hpp"

namespace scalemark::diagnosis {

InstancesEvidence instances_evidence(const Json& record) {
  const RecordView instances(record);
  InstancesEvidence evidence{
      instances.words("job") + " " + instances.words("model", 60), instances.words("unit"), {}};
  for (const RecordView& point : instances.list("points"))
    if (const Number efficiency = point.number("efficiency"))
      evidence.points.push_back(
          {point.number("instances"), efficiency, point.number("cumulative/mean")});
  return evidence;
}

}  // namespace scalemark::diagnosis

// What the rules need of a projection record.
#include "analysis/diagnosis/record_evidence.hpp"
#include "analysis/diagnosis/record_view.hpp"

namespace scalemark::diagnosis {

ProjectionEvidence projection_evidence(const Json& record) {
  const RecordView projection(record);
  const std::string model = projection.words("curve/model", 60);
  return {model.empty() ? "projection" : "projection: " + model, projection.number("errors/points"),
          projection.number("errors/in_band"), projection.number("errors/model_percent")};
}

}  // namespace scalemark::diagnosis

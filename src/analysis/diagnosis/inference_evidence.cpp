// What the rules need of an inference record.
#include "analysis/diagnosis/record_evidence.hpp"
#include "analysis/diagnosis/record_view.hpp"

namespace scalemark::diagnosis {

InferenceEvidence inference_evidence(const Json& record, const Settings& settings) {
  const RecordView inference(record);
  return {.name = run_name(record, settings),
          .p50 = inference.number("latency_seconds/p50"),
          .p99 = inference.number("latency_seconds/p99"),
          .holds = inference.flag("server/holds"),
          .overload = inference.words("server/ended_by") == "overload",
          .arrival_rate = inference.number("server/arrival_rate"),
          .quantile = inference.number("server/latency_quantile"),
          .at_quantile_seconds = inference.number("server/latency_at_quantile_seconds"),
          .bound_seconds = inference.number("server/latency_bound_seconds")};
}

}  // namespace scalemark::diagnosis

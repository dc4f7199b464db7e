// The parts of a run record that speak of what is around the step: how the batch was found, where
// it comes from.
#include "config/names.hpp"
#include "result/run_metrics.hpp"

namespace scalemark {
void fill_batch_search(Json& record, const std::optional<BatchSearch>& search) {
  if (!search)
    return set_unavailable(record, "batch_size_search", "--batch_size max was not asked for");
  record["batch_size_search"] = to_json(*search);
  if (!search->limit_bytes)
    set_unavailable(record, "batch_size_search.limit_bytes",
                    "neither the host nor the device tells how much memory is left");
}

void fill_input(Json& record, const std::vector<RankReport>& reports, const RunMetrics& metrics) {
  const double steps = static_cast<double>(metrics.step_seconds.size());
  if (reports.empty() || steps == 0)
    return set_unavailable(record, "input", "no step was completed");
  double copy = 0, wait = 0;  // means over ranks
  for (const RankReport& report : reports) {
    copy += report.samples.input.copy_seconds / static_cast<double>(reports.size());
    wait += report.samples.input.wait_seconds / static_cast<double>(reports.size());
  }
  const InputSamples& input = reports.front().samples.input;
  record["input"] = {{"place", to_string(input.place)}, {"bytes_per_step", input.bytes_per_step}};
  set_number(record, "input.copy_seconds", copy / steps, "");
  set_number(record, "input.wait_seconds", wait / steps, "");
}

}  // namespace scalemark

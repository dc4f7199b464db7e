// Where a rank's step goes: the phases of the ranks' samples as seconds and shares of a step.
#include <numeric>

#include "result/run_metrics.hpp"

namespace scalemark {

void fill_phases(Json& record, const RunFacts& facts, const std::vector<RankReport>& reports) {
  PhaseSeconds mean{};  // over ranks, a step
  for (const RankReport& report : reports) {
    const auto steps = static_cast<double>(report.samples.step_seconds.size());
    for (std::size_t i = 0; i < mean.size() && steps > 0; ++i)
      mean[i] += report.samples.phase_seconds[i] / steps / static_cast<double>(reports.size());
  }
  const double step = std::accumulate(mean.begin(), mean.end(), 0.);
  if (!(step > 0)) return set_unavailable(record, "phases", "no step was completed");
  record["phases"] = {{"clock", facts.device == "cuda" ? "events of the stream" : "host"}};
  for (std::size_t i = 0; i < mean.size(); ++i) {
    record["phases"]["seconds"][kStepPhases[i]] = mean[i];
    record["phases"]["fractions"][kStepPhases[i]] = mean[i] / step;
  }
  if (facts.device != "cuda" || facts.reducer != "c10d") return;
  for (const char* of : {"seconds", "fractions"})
    set_unavailable(record, std::string("phases.") + of + ".communication",
                    "c10d's stream waits within the backward pass, where it is counted");
}

}  // namespace scalemark

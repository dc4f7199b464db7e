#include "analysis/scaling/point_repeat.hpp"

#include <limits>

#include "analysis/resources.hpp"

namespace scalemark {

PointRepeat point_repeat(const Json& run, const std::string& path, bool baseline,
                         Resource resource) {
  PointRepeat repeat;
  repeat.run_id = run.at("id");
  repeat.run_path = path;
  repeat.baseline = baseline;
  const auto steps = static_cast<double>(run.at("step_seconds").at("samples").size());
  repeat.units = run.at("units_per_step").get<double>() * steps;
  repeat.seconds = repeat.units / run.at("throughput").at("mean").get<double>();
  repeat.step_seconds_mean = repeat.seconds / steps;
  for (const auto& rank : run.at("ranks")) {
    const Json& wait = rank.at("wait_seconds_mean");
    repeat.wait_seconds_mean +=
        (wait.is_null() ? std::numeric_limits<double>::quiet_NaN() : wait.get<double>()) /
        static_cast<double>(run.at("ranks").size());
  }
  repeat.resources = count_resources(run, resource);
  const auto loss = run.find("loss");
  if (loss == run.end() || !loss->is_object()) return repeat;
  const Json target = loss->value("target", Json());
  if (target.is_object() && target.at("reached") == true) {
    repeat.target_steps = target.at("steps").get<double>();
    repeat.target_seconds = target.at("seconds").get<double>();
  }
  return repeat;
}

}  // namespace scalemark

#include "session/step_printer.hpp"

#include <fmt/format.h>

#include <cmath>

#include "measure/clock.hpp"
#include "measure/statistics.hpp"
#include "models/catalog.hpp"
#include "streams.hpp"

namespace scalemark {

StepPrinter::StepPrinter(const Session& session, double units_per_step) {
  if (!session.is_root() || session.config().json) return;
  const bool timestamps = session.config().timestamps;
  lines_.emplace(
      std::string(find_model(session.config().model)->unit), units_per_step,
      [timestamps](const std::string& line) {
        show((timestamps ? utc_timestamp() + " " : "") + line + "\n");
      },
      session.loaded.command == Command::infer ? "p50_ms" : "total_loss");
}

StepObserver StepPrinter::observer() {
  if (!lines_) return nullptr;
  lines_->header();
  return [this](long step, double loss, const std::vector<double>& seconds) {
    lines_->step(step, std::isnan(loss) ? 1000 * median(seconds) : loss, seconds);
  };
}

void StepPrinter::total(const Json& record) {
  if (lines_ && !record["throughput"].is_null()) lines_->total(record["throughput"]["mean"]);
}

}  // namespace scalemark

// Prints the last lines of `run` and of `infer`, and those of --trace, from what the record says.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "config/names.hpp"
#include "record/write.hpp"
#include "report/console.hpp"
#include "report/shown_text.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

std::string milliseconds(const Known<double>& seconds) {
  return seconds ? four_digits(1000 * *seconds) : "unknown";
}

std::string run_title(const record::Measured& run) {
  return fmt::format("{} {}{}, {} rank{}{}", run.model, to_string(run.precision),
                     run.kernels ? ", " + to_string(*run.kernels) + " kernels" : "", run.world_size,
                     run.world_size == 1 ? "" : "s",
                     run.batch_size_per_rank ? fmt::format(" x {}", *run.batch_size_per_rank) : "");
}

/// Returns the throughput with its interval. That of a server has none, because it is decided by
/// what the server is offered.
std::string throughput(const record::Measured& run, bool server = false) {
  const double mean = run.throughput->mean;
  const std::string text = fmt::format("{}: {} {}", run_title(run), four_digits(mean), *run.unit);
  if (server) return text;
  const auto& ci95 = run.throughput->ci95;
  if (!ci95) return text + ", no interval (fewer than 30 effective samples)";
  return fmt::format("{}, 95 % interval [{}, {}] of {}", text, four_digits(ci95->lo, mean),
                     four_digits(ci95->hi, mean), run.throughput->ci95_scope);
}

std::string steps(const RunResult& run) {
  const record::Summary& step = *run.step_seconds;
  return fmt::format("steps: {}, mean {} ms, p50 {}, p90 {}, p99 {} ms", *run.steps,
                     milliseconds(step.mean), milliseconds(step.p50), milliseconds(step.p90),
                     milliseconds(step.p99));
}

/// Collects shares of a thousandth or more, the longest first.
struct Shares {
  std::vector<std::pair<double, std::string>> all;

  void add(const Known<double>& share, const std::string& name, const std::string& after = "") {
    if (share && *share >= 0.001)
      all.emplace_back(*share, fmt::format("{} {:.1f} %{}", name, 100 * *share, after));
  }
  std::string words() {
    std::ranges::sort(all, std::greater());
    std::string text;
    for (const auto& [share, words] : all) text += (text.empty() ? "" : ", ") + words;
    return text;
  }
};

std::string phases(const RunResult& run) {
  if (!run.phases) return "";
  Shares shares;
  const Json fractions = part_json(run.phases->fractions);
  for (const auto& [name, share] : fractions.items())
    if (share.is_number()) shares.add(share.get<double>(), name);
  return "of a step: " + shares.words();
}

std::string windows(const record::Measured& run) {
  if (!run.windows) return "";
  const std::string title = fmt::format(
      "{} of {:g} s: ", counted(run.windows->series.size(), "window"), run.windows->seconds);
  if (!run.windows->drift) return title + "too few to tell whether the throughput drifts";
  const record::Drift& drift = *run.windows->drift;
  const std::string words = drift.verdict == "steady" ? "the throughput is steady"
                            : drift.verdict == "not shown"
                                ? "no drift is shown, nor that there is none"
                                : "the throughput gets " + drift.verdict;
  return fmt::format("{}{}, {:+.2g} % from begin to end, 95 % interval [{:+.2g}, {:+.2g}] %", title,
                     words, 100 * drift.change, 100 * drift.ci95.lo, 100 * drift.ci95.hi);
}

std::string communication(const RunResult& run) {
  if (!run.communication || !run.communication->exposed_seconds) return "";
  const record::Communication& c = *run.communication;
  return fmt::format(
      "communication: {}, {:.1f} MB per rank and step, {} ms a step of which {} ms exposed ({})",
      c.communicator, static_cast<double>(c.bytes_per_step) / 1e6, milliseconds(c.total_seconds),
      milliseconds(c.exposed_seconds),
      c.exposed_method == "baseline" ? "against the same ranks without communication"
                                     : "waiting time");
}

std::string batch_search(const record::Measured& run) {
  if (!run.batch_size_search) return "";
  return fmt::format("batch size: the largest of {} tried, limited by {}",
                     run.batch_size_search->tried.size(), run.batch_size_search->limited_by);
}

std::string input(const RunResult& run) {
  if (!run.input || run.input->place != InputPlace::host) return "";
  return fmt::format("input: {:.1f} MB a step from host memory in {} ms, of which {} ms waited for",
                     static_cast<double>(run.input->bytes_per_step) / 1e6,
                     milliseconds(run.input->copy_seconds), milliseconds(run.input->wait_seconds));
}

std::string checkpoints(const RunResult& run) {
  if (!run.checkpoint) return "";
  const record::Checkpoint& checkpoint = *run.checkpoint;
  if (!checkpoint.write_seconds)
    return fmt::format("checkpoints: none within the measured steps (every {})", checkpoint.every);
  const std::string text = fmt::format(
      "checkpoints: {} of {}{:.1f} MB, {} ms each ({:.2f} GB/s), {:.2g} % of the run",
      checkpoint.count, checkpoint.files == 1 ? "" : fmt::format("{} x ", *checkpoint.files),
      static_cast<double>(*checkpoint.bytes) / 1e6, milliseconds(checkpoint.write_seconds->mean),
      *checkpoint.total_bytes_per_second / 1e9, 100 * *checkpoint.step_overhead_fraction);
  if (!checkpoint.storage) return text;
  const record::Storage& storage = *checkpoint.storage;
  return fmt::format("{}; on {:g} Gbit/s of storage {} ms each (limited by the {}), {:.2g} %", text,
                     storage.bytes_per_second * 8 / 1e9, milliseconds(storage.seconds),
                     storage.limited_by, 100 * storage.overhead_fraction);
}

std::string compute(const record::Measured& run) {
  if (!run.achieved_flops) return "";
  const std::string text =
      fmt::format("compute: {} GFLOP/s", four_digits(*run.achieved_flops / 1e9));
  const auto percent = [](const Known<double>& fraction, const char* of) {
    return fraction ? fmt::format(", {:.0f} % of the {}", 100 * *fraction, of) : "";
  };
  return text + percent(run.roofline.fraction, "measured GEMM rate") +
         percent(run.roofline.published_fraction, "published peak");
}

std::string without_throughput(const record::Measured& run) {
  std::string text = fmt::format("{}: {}: {}", run_title(run), to_string(run.status), run.reason);
  if (run.partial_throughput)
    text += fmt::format("\nuntil then {} {} (not a result)", four_digits(*run.partial_throughput),
                        *run.unit);
  return text;
}

std::string target(const RunResult& run) {
  if (!run.loss || !run.loss->target) return "";
  const record::TargetLoss& target = *run.loss->target;
  const std::string title = fmt::format("target loss {}: ", target.loss);
  if (!target.reached)
    return title + fmt::format("not reached, the last loss is {}",
                               four_digits(run.loss->last.value_or(NAN)));
  return title + fmt::format("reached after {} steps and {} s of training, warm-up included",
                             *target.steps, four_digits(*target.seconds));
}

std::string latencies(const InferenceResult& inference) {
  const record::Latency& latency = *inference.latency_seconds;
  return fmt::format("latency of {} queries, {}: mean {}, p50 {}, p90 {}, p99 {}, p99.9 {} ms",
                     *inference.queries, to_string(inference.mode), milliseconds(latency.mean),
                     milliseconds(latency.p50), milliseconds(latency.p90),
                     milliseconds(latency.p99), milliseconds(latency.p99_9));
}

std::string search_words(const record::ArrivalRateSearch& search) {
  return fmt::format("\nlargest rate that holds the bound: {}, after {} ({})",
                     search.found ? four_digits(*search.found) + " queries/s" : "none",
                     counted(search.trials.size(), "trial"), search.limited_by);
}

std::string server(const InferenceResult& inference) {
  if (!inference.server) return "";
  const record::Server& server = *inference.server;
  std::string text = fmt::format(
      "server: {} queries/s offered, {} answered; in the queue {} ms, in service {} ms (means)",
      four_digits(server.arrival_rate), four_digits(server.achieved_rate),
      milliseconds(server.queue_seconds->mean), milliseconds(server.service_seconds->mean));
  if (server.ended_by != ServerEnd::all_served)
    text += "; " + server.latency_at_quantile_seconds.why();
  if (server.holds)
    text += fmt::format("\nbound: quantile {} of the latency is {} ms, {} the bound of {} ms",
                        server.latency_quantile, milliseconds(server.latency_at_quantile_seconds),
                        *server.holds ? "within" : "not within",
                        milliseconds(server.latency_bound_seconds));
  return server.search ? text + search_words(*server.search) : text;
}

std::string fused(const InferenceResult& inference) {
  if (inference.fused == "on") return "fused: batch normalisation folded, oneDNN's fused operators";
  return inference.fused == "off" ? "fused: off" : "fused: batch normalisation folded";
}

/// Joins `text`, the lines that are not empty, the warnings, and why the run falls short.
std::string summary(std::string text, const std::vector<std::string>& lines,
                    const record::Measured& run, std::size_t told) {
  for (const std::string& line : lines)
    if (!line.empty()) text += "\n" + line;
  text += "\n" + warning_lines(run.warnings, told) + finding_lines(run.findings, "server");
  text.pop_back();
  return text;
}

}  // namespace

std::string run_summary(const RunResult& run, std::size_t told) {
  if (run.status != Status::ok) return without_throughput(run);
  return summary(throughput(run),
                 {steps(run), phases(run), windows(run), batch_search(run), communication(run),
                  input(run), checkpoints(run), compute(run), target(run), trace_summary(run)},
                 run, told);
}

std::string inference_summary(const InferenceResult& inference, std::size_t told) {
  if (inference.status != Status::ok) return without_throughput(inference);
  return summary(
      throughput(inference, inference.mode == InferenceMode::server),
      {latencies(inference), server(inference), windows(inference), batch_search(inference),
       compute(inference), fused(inference), trace_summary(inference)},
      inference, told);
}

namespace {

std::string trace_cost(const record::Trace& trace) {
  if (!trace.slowdown) return "";
  const double percent = 100 * *trace.slowdown;
  return fmt::format(", {:.3g} % {} than measured ones", std::abs(percent),
                     percent < 0 ? "faster" : "slower");
}

std::string group_shares(const record::Operators& operators) {
  const record::OperatorGroups& groups = operators.groups;
  Shares shares;
  for (const auto& [name, group] : {std::pair{"convolution", &groups.convolution},
                                    {"matrix product", &groups.matrix_product},
                                    {"normalisation", &groups.normalisation},
                                    {"optimizer", &groups.optimizer},
                                    {"communication", &groups.communication},
                                    {"other", &groups.other}})
    shares.add(group->share, name,
               group->roofline_fraction
                   ? fmt::format(" (at {:.0f} % of the GEMM rate)", 100 * *group->roofline_fraction)
                   : "");
  shares.add(operators.outside.share, "outside of operators");
  return shares.words();
}

}  // namespace

std::string trace_summary(const record::Measured& run) {
  if (!run.trace) return "";
  const record::Trace& trace = *run.trace;
  std::string text = fmt::format(
      "trace: {}: {}{}; https://ui.perfetto.dev or chrome://tracing opens it", trace.path,
      counted(static_cast<std::size_t>(trace.steps), "step"), trace_cost(trace));
  if (trace.dropped_events > 0)
    text += fmt::format("\ntrace: full, {} operators are left out (fewer: --trace_steps)",
                        trace.dropped_events);
  const std::string shares = run.operators ? group_shares(*run.operators) : "";
  return shares.empty() ? text : text + "\noperators: " + shares;
}

}  // namespace scalemark

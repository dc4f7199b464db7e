// The last lines of `run` and of `infer`, and those of --trace: they say what the record says.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "report/console.hpp"
#include "report/shown_text.hpp"
#include "report/text_table.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

std::string milliseconds(const Json& seconds) {
  return seconds.is_null() ? "unknown" : four_digits(1000 * seconds.get<double>());
}

std::string run_title(const Json& record) {
  const std::string batch = record.at("batch_size_per_rank").is_null()
                                ? ""
                                : " x " + record["batch_size_per_rank"].dump();
  const int ranks = record.at("world_size");
  return fmt::format("{} {}{}, {} rank{}{}", record.at("model").get<std::string>(),
                     record.at("precision").get<std::string>(), kernels_words(record), ranks,
                     ranks == 1 ? "" : "s", batch);
}

std::string throughput(const Json& record) {
  const Json& rate = record.at("throughput");
  const double mean = rate.at("mean");
  const std::string text = fmt::format("{}: {} {}", run_title(record), four_digits(mean),
                                       record.at("unit").get<std::string>());
  if (record.value("mode", "") == "server") return text;  // as much as was offered
  if (rate.at("ci95").is_null()) return text + ", no interval (fewer than 30 effective samples)";
  return fmt::format("{}, 95 % interval [{}, {}] of {}", text, four_digits(rate["ci95"][0], mean),
                     four_digits(rate["ci95"][1], mean), rate.at("ci95_scope").get<std::string>());
}

std::string steps(const Json& record) {
  const Json& step = record.at("step_seconds");
  return fmt::format("steps: {}, mean {} ms, p50 {}, p90 {}, p99 {} ms", record.at("steps").dump(),
                     milliseconds(step.at("mean")), milliseconds(step.at("p50")),
                     milliseconds(step.at("p90")), milliseconds(step.at("p99")));
}

/// The phases that take a thousandth of a step or more, the longest first.
std::string phases(const Json& record) {
  const Json& phases = record.at("phases");
  if (phases.is_null()) return "";
  std::vector<std::pair<double, std::string>> shares;
  for (const auto& [name, share] : phases.at("fractions").items())
    if (share.is_number() && share >= 0.001) shares.emplace_back(share, name);
  std::ranges::sort(shares, std::greater());
  std::string text = "of a step:";
  for (const auto& [share, name] : shares)
    text += fmt::format("{} {} {:.1f} %", text.back() == ':' ? "" : ",", name, 100 * share);
  return text;
}

std::string windows(const Json& record) {
  const Json& windows = record.at("windows");
  if (windows.is_null()) return "";
  const std::string title =
      fmt::format("{} of {:g} s: ", counted(windows.at("series").size(), "window"),
                  windows.at("seconds").get<double>());
  const Json& drift = windows.at("drift");
  if (drift.is_null()) return title + "too few to tell whether the throughput drifts";
  const std::string verdict = drift.at("verdict");
  const std::string words = verdict == "steady"      ? "the throughput is steady"
                            : verdict == "not shown" ? "no drift is shown, nor that there is none"
                                                     : "the throughput gets " + verdict;
  return fmt::format("{}{}, {:+.2g} % from begin to end, 95 % interval [{:+.2g}, {:+.2g}] %", title,
                     words, 100 * drift.at("change").get<double>(),
                     100 * drift.at("ci95")[0].get<double>(),
                     100 * drift.at("ci95")[1].get<double>());
}

std::string communication(const Json& record) {
  const Json& c = record.at("communication");
  if (c.is_null() || c.at("exposed_seconds").is_null()) return "";
  const bool baseline = c.at("exposed_method") == "baseline";
  return fmt::format(
      "communication: {}, {:.1f} MB per rank and step, {} ms a step of which {} ms exposed ({})",
      c.at("communicator").get<std::string>(), c.at("bytes_per_step").get<double>() / 1e6,
      milliseconds(c.at("total_seconds")), milliseconds(c.at("exposed_seconds")),
      baseline ? "against the same ranks without communication" : "waiting time");
}

std::string batch_search(const Json& record) {
  const Json& search = record.at("batch_size_search");
  if (search.is_null()) return "";
  return fmt::format("batch size: the largest of {} tried, limited by {}",
                     search.at("tried").size(), search.at("limited_by").get<std::string>());
}

std::string input(const Json& record) {
  const Json& from = record.at("input");
  if (from.is_null() || from.at("place") != "host") return "";
  return fmt::format("input: {:.1f} MB a step from host memory in {} ms, of which {} ms waited for",
                     from.at("bytes_per_step").get<double>() / 1e6,
                     milliseconds(from.at("copy_seconds")), milliseconds(from.at("wait_seconds")));
}

std::string checkpoints(const Json& record) {
  const Json& checkpoint = record.at("checkpoint");
  if (checkpoint.is_null()) return "";
  if (checkpoint.at("write_seconds").is_null())
    return fmt::format("checkpoints: none within the measured steps (every {})",
                       checkpoint.at("every").dump());
  const int files = checkpoint.at("files");
  const std::string text =
      fmt::format("checkpoints: {} of {}{:.1f} MB, {} ms each ({:.2f} GB/s), {:.2g} % of the run",
                  checkpoint.at("count").dump(), files == 1 ? "" : fmt::format("{} x ", files),
                  checkpoint.at("bytes").get<double>() / 1e6,
                  milliseconds(checkpoint.at("write_seconds").at("mean")),
                  checkpoint.at("total_bytes_per_second").get<double>() / 1e9,
                  100 * checkpoint.at("step_overhead_fraction").get<double>());
  const Json& storage = checkpoint.at("storage");
  if (storage.is_null()) return text;
  return fmt::format("{}; on {:g} Gbit/s of storage {} ms each (limited by the {}), {:.2g} %", text,
                     storage.at("bytes_per_second").get<double>() * 8 / 1e9,
                     milliseconds(storage.at("seconds")),
                     storage.at("limited_by").get<std::string>(),
                     100 * storage.at("overhead_fraction").get<double>());
}

std::string compute(const Json& record) {
  if (record.at("achieved_flops").is_null()) return "";
  const std::string text =
      fmt::format("compute: {} GFLOP/s", four_digits(record["achieved_flops"].get<double>() / 1e9));
  const Json& fraction = record.at("roofline").at("fraction");
  return fraction.is_null() ? text
                            : fmt::format("{}, {:.0f} % of the measured GEMM rate", text,
                                          100 * fraction.get<double>());
}

std::string without_throughput(const Json& record) {
  std::string text =
      fmt::format("{}: {}: {}", run_title(record), record.at("status").get<std::string>(),
                  record.at("reason").get<std::string>());
  if (!record.at("partial_throughput").is_null())
    text += fmt::format("\nuntil then {} {} (not a result)",
                        four_digits(record["partial_throughput"].get<double>()),
                        record.at("unit").get<std::string>());
  return text;
}

std::string target(const Json& record) {
  const auto loss = record.find("loss");
  if (loss == record.end() || !loss->is_object() || !loss->contains("target")) return "";
  const Json& target = loss->at("target");
  if (target.is_null()) return "";
  const std::string title = fmt::format("target loss {}: ", target.at("loss").get<double>());
  if (target.at("reached") == false)
    return title + fmt::format("not reached, the last loss is {}", four_digits(loss->at("last")));
  return title + fmt::format("reached after {} steps and {} s of training, warm-up included",
                             target.at("steps").dump(),
                             four_digits(target.at("seconds").get<double>()));
}

std::string latencies(const Json& record) {
  const Json& latency = record.at("latency_seconds");
  std::string text =
      fmt::format("latency of {} queries, {}: mean {}", record.at("queries").dump(),
                  record.at("mode").get<std::string>(), milliseconds(latency.at("mean")));
  for (const auto& [key, name] :
       {std::pair{"p50", "p50"}, {"p90", "p90"}, {"p99", "p99"}, {"p99_9", "p99.9"}})
    text += fmt::format(", {} {}", name, milliseconds(latency.at(key)));
  return text + " ms";
}

std::string server(const Json& record) {
  const Json& server = record.at("server");
  if (server.is_null()) return "";
  std::string text = fmt::format(
      "server: {} queries/s offered, {} answered; in the queue {} ms, in service {} ms (means)",
      four_digits(server.at("arrival_rate")), four_digits(server.at("achieved_rate")),
      milliseconds(server.at("queue_seconds").at("mean")),
      milliseconds(server.at("service_seconds").at("mean")));
  if (server.at("ended_by") != "all_served")
    text +=
        "; " + record.at("unavailable").at("server.latency_at_quantile_seconds").get<std::string>();
  if (!server.at("holds").is_null())
    text += fmt::format("\nbound: quantile {} of the latency is {} ms, {} the bound of {} ms",
                        server.at("latency_quantile").get<double>(),
                        milliseconds(server.at("latency_at_quantile_seconds")),
                        server.at("holds") == true ? "within" : "not within",
                        milliseconds(server.at("latency_bound_seconds")));
  const Json& search = server.at("search");
  if (!search.is_null())
    text += fmt::format(
        "\nlargest rate that holds the bound: {}, after {} ({})",
        search.at("found").is_null() ? "none" : four_digits(search["found"]) + " queries/s",
        counted(search.at("trials").size(), "trial"), search.at("limited_by").get<std::string>());
  return text;
}

std::string fused(const Json& record) {
  const std::string how = record.at("fused");
  if (how == "on") return "fused: batch normalisation folded, oneDNN's fused operators";
  return how == "off" ? "fused: off" : "fused: batch normalisation folded";
}

/// `text`, the lines that are not empty, the warnings, and why the run falls short.
std::string summary(std::string text, const std::vector<std::string>& lines, const Json& record,
                    std::size_t told) {
  for (const std::string& line : lines)
    if (!line.empty()) text += "\n" + line;
  text += "\n" + warning_lines(record, told) + finding_lines(record, "server");
  text.pop_back();
  return text;
}

}  // namespace

std::string run_summary(const Json& record, std::size_t told) {
  if (record.at("status") != "ok") return without_throughput(record);
  return summary(
      throughput(record),
      {steps(record), phases(record), windows(record), batch_search(record), communication(record),
       input(record), checkpoints(record), compute(record), target(record), trace_summary(record)},
      record, told);
}

std::string inference_summary(const Json& record, std::size_t told) {
  if (record.at("status") != "ok") return without_throughput(record);
  return summary(throughput(record),
                 {latencies(record), server(record), windows(record), batch_search(record),
                  compute(record), fused(record), trace_summary(record)},
                 record, told);
}

namespace {

std::string trace_cost(const Json& trace) {
  const Json& slowdown = trace.at("slowdown");
  if (slowdown.is_null()) return "";
  const double percent = 100 * slowdown.get<double>();
  return fmt::format(", {:.3g} % {} than measured ones", std::abs(percent),
                     percent < 0 ? "faster" : "slower");
}

/// The groups that take a thousandth of a step or more, the longest first.
std::string group_shares(const Json& operators) {
  std::vector<std::pair<double, std::string>> shares;
  const auto add = [&](const std::string& name, const Json& group) {
    if (!group.at("share").is_number() || group.at("share") < 0.001) return;
    std::string text = fmt::format("{} {:.1f} %", name, 100 * group.at("share").get<double>());
    if (group.contains("roofline_fraction") && group["roofline_fraction"].is_number())
      text += fmt::format(" (at {:.0f} % of the GEMM rate)",
                          100 * group["roofline_fraction"].get<double>());
    shares.emplace_back(group.at("share"), text);
  };
  for (const auto& [name, group] : operators.at("groups").items()) {
    std::string words = name;
    std::ranges::replace(words, '_', ' ');
    add(words, group);
  }
  add("outside of operators", operators.at("outside"));
  std::ranges::sort(shares, std::greater());
  std::string text;
  for (const auto& [share, words] : shares) text += (text.empty() ? "" : ", ") + words;
  return text;
}

}  // namespace

std::string trace_summary(const Json& record) {
  const Json& trace = record.at("trace");
  if (trace.is_null()) return "";
  const auto steps = trace.at("steps").get<std::size_t>();
  std::string text =
      fmt::format("trace: {}: {}{}; https://ui.perfetto.dev or chrome://tracing opens it",
                  trace.at("path").get<std::string>(), counted(steps, "step"), trace_cost(trace));
  if (trace.at("dropped_events") > 0)
    text += fmt::format("\ntrace: full, {} operators are left out (fewer: --trace_steps)",
                        trace["dropped_events"].dump());
  const std::string shares = group_shares(record.at("operators"));
  return shares.empty() ? text : text + "\noperators: " + shares;
}

}  // namespace scalemark

// Fills in what a record says of its trace.
#include "result/trace_record.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "config/names.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kTopOperators = 20;
constexpr const char* kHostTimes =
    "on a GPU operators only queue kernels: the host's times tell nothing of the GPU's";

/// Sums over all ranks and traced steps.
struct TracedSums {
  double steps = 0;  ///< steps of all ranks
  double ranks = 0;
  double step_seconds = 0, communication_seconds = 0;
  std::vector<OperatorTotal> operators;

  double per_step(double sum) const { return sum / steps; }
};

TracedSums sums_of(const std::vector<RankTrace>& ranks) {
  TracedSums sums;
  std::map<std::pair<std::string, std::string>, OperatorTotal> totals;
  for (const RankTrace& rank : ranks) {
    sums.steps += static_cast<double>(rank.steps);
    sums.ranks += 1;
    sums.step_seconds += rank.step_seconds;
    sums.communication_seconds += rank.communication_seconds;
    for (const OperatorTotal& one : rank.operators) {
      const auto [place, is_new] = totals.try_emplace({one.name, one.group}, one);
      OperatorTotal& all = place->second;
      if (is_new) continue;
      all.calls += one.calls;
      all.self_seconds += one.self_seconds;
      all.flops = all.flops && one.flops ? std::optional(*all.flops + *one.flops) : std::nullopt;
    }
  }
  for (auto& [key, total] : totals) sums.operators.push_back(std::move(total));
  std::ranges::stable_sort(sums.operators, [](const OperatorTotal& a, const OperatorTotal& b) {
    return a.self_seconds > b.self_seconds;
  });
  return sums;
}

std::vector<record::TopOperator> top_operators(const TracedSums& sums) {
  std::vector<record::TopOperator> top;
  for (std::size_t i = 0; i < std::min(kTopOperators, sums.operators.size()); ++i) {
    const OperatorTotal& one = sums.operators[i];
    top.push_back({one.name, one.group, sums.per_step(static_cast<double>(one.calls)),
                   sums.per_step(one.self_seconds), one.self_seconds / sums.step_seconds});
  }
  return top;
}

/// The sum of one group over all ranks and steps.
struct GroupSum {
  double seconds = 0;
  std::optional<double> flops = 0;
};

GroupSum sum_of_group(const TracedSums& sums, const std::string& group) {
  GroupSum sum;
  for (const OperatorTotal& one : sums.operators) {
    if (one.group != group) continue;
    sum.seconds += one.self_seconds;
    sum.flops = sum.flops && one.flops ? std::optional(*sum.flops + *one.flops) : std::nullopt;
  }
  if (group == "communication") sum.seconds += sums.communication_seconds;
  return sum;
}

/// What the record says already that the trace is judged by.
struct TracedRun {
  bool on_gpu = false, int8 = false;
  std::optional<double> gemm_peak;
};

/// FLOPs are of all ranks, seconds a mean over them: their ratio is the rate of all together, as
/// the peak is.
record::OperatorGroup group_of(const TracedSums& sums, const std::string& name,
                               const TracedRun& run) {
  const GroupSum sum = sum_of_group(sums, name);
  record::OperatorGroup group;
  group.seconds = run.on_gpu ? Unknown{kHostTimes} : Known(sums.per_step(sum.seconds));
  group.share = run.on_gpu ? Unknown{kHostTimes} : Known(sum.seconds / sums.step_seconds);
  const bool counted = name == "convolution" || name == "matrix_product";
  const Unknown uncounted{
      counted ? "quantised layers do not show the shapes of their weights"
              : "bound by memory or the network: neither FLOPs nor bytes of this group are "
                "counted"};
  // Some int8 layers are called past LibTorch's operators.
  group.flops =
      counted && sum.flops && !run.int8 ? Known(sums.per_step(*sum.flops) * sums.ranks) : uncounted;
  const Unknown why = !group.flops ? uncounted
                      : run.on_gpu ? Unknown{kHostTimes}
                                   : Unknown{"no operator of this group ran"};
  group.achieved_flops = group.flops && !run.on_gpu && sum.seconds > 0
                             ? Known(*group.flops / sums.per_step(sum.seconds))
                             : why;
  if (!group.achieved_flops)
    group.roofline_fraction = why;
  else if (!run.gemm_peak)
    group.roofline_fraction = Unknown{"the GEMM rate was not measured in this run"};
  else
    group.roofline_fraction = *group.achieved_flops / *run.gemm_peak;
  return group;
}

record::Operators operators_of(const TracedSums& sums, const TracedRun& run) {
  const auto group = [&](const char* name) { return group_of(sums, name, run); };
  record::Operators operators;
  operators.top = top_operators(sums);
  operators.groups = {group("convolution"), group("matrix_product"), group("normalisation"),
                      group("optimizer"),   group("communication"),  group("other")};
  double inside = sums.communication_seconds;
  for (const OperatorTotal& one : sums.operators) inside += one.self_seconds;
  const double outside = std::max(0., sums.step_seconds - inside);
  if (run.on_gpu) {
    operators.outside = {Unknown{kHostTimes}, Unknown{kHostTimes}};
  } else {
    operators.outside = {sums.per_step(outside), outside / sums.step_seconds};
  }
  return operators;
}

}  // namespace

std::optional<double> measured_step(const RunResult& run) {
  if (!run.step_seconds || !run.step_seconds->mean) return std::nullopt;
  return *run.step_seconds->mean;
}

std::optional<double> measured_step(const InferenceResult& inference) {
  if (!inference.latency_seconds || !inference.latency_seconds->mean) return std::nullopt;
  return *inference.latency_seconds->mean;
}

void fill_trace(record::Measured& run, std::optional<double> measured, const TraceFacts& facts) {
  const TracedSums sums = sums_of(facts.ranks);
  if (!(sums.step_seconds > 0)) return fill_no_trace(run, "no step was traced");
  std::int64_t steps = facts.ranks.front().steps, dropped = 0;
  for (const RankTrace& rank : facts.ranks) {
    steps = std::min(steps, rank.steps);
    dropped += rank.dropped_spans;
  }
  const double step = sums.per_step(sums.step_seconds);
  const Known<double> slowdown{measured ? std::optional(step / *measured - 1) : std::nullopt, ""};
  run.trace = record::Trace{facts.path, steps,    facts.events,  dropped,
                            step,       slowdown, facts.seconds, facts.clock_uncertainty_seconds};
  TracedRun traced{run.device == "cuda", run.precision == Precision::int8, {}};
  if (run.roofline.gemm_flops) traced.gemm_peak = *run.roofline.gemm_flops;
  run.operators = operators_of(sums, traced);
}

void fill_no_trace(record::Measured& run, const std::string& reason) {
  run.trace = Unknown{reason};
  run.operators = Unknown{reason};
}

}  // namespace scalemark

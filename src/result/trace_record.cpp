// See trace_record.hpp.
#include "result/trace_record.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "result/records.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kTopOperators = 20;
constexpr const char* kHostTimes =
    "on a GPU operators only queue kernels: the host's times tell nothing of the GPU's";

/// Of all ranks and traced steps.
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

/// Mean step that the trace is compared with; unset where none was measured.
std::optional<double> measured_step(const Json& record) {
  for (const char* key : {"step_seconds", "latency_seconds"})
    if (record.contains(key) && record[key].is_object() && record[key]["mean"].is_number())
      return record[key]["mean"].get<double>();
  return std::nullopt;
}

Json top_operators(const TracedSums& sums) {
  Json top = Json::array();
  for (std::size_t i = 0; i < std::min(kTopOperators, sums.operators.size()); ++i) {
    const OperatorTotal& one = sums.operators[i];
    top.push_back({{"name", one.name},
                   {"group", one.group},
                   {"calls_per_step", sums.per_step(static_cast<double>(one.calls))},
                   {"self_seconds", sums.per_step(one.self_seconds)},
                   {"share", one.self_seconds / sums.step_seconds}});
  }
  return top;
}

/// Of one group, in all ranks and steps.
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

/// FLOPs are of all ranks, seconds a mean over them: their ratio is the rate of all together, as
/// the roof is.
void fill_group(Json& record, const TracedSums& sums, const std::string& group, bool on_gpu) {
  const std::string path = "operators.groups." + group;
  const GroupSum sum = sum_of_group(sums, group);
  const auto timed = [&](double value) { return on_gpu ? std::nullopt : std::optional(value); };
  set_number(record, path + ".seconds", timed(sums.per_step(sum.seconds)), kHostTimes);
  set_number(record, path + ".share", timed(sum.seconds / sums.step_seconds), kHostTimes);
  const bool counted = group == "convolution" || group == "matrix_product";
  const std::string uncounted =
      counted ? "quantised layers do not show the shapes of their weights"
              : "bound by memory or the network: neither FLOPs nor bytes of this group are counted";
  std::optional<double> flops, rate, fraction;
  // Some int8 layers are called past LibTorch's operators.
  if (counted && sum.flops && record["precision"] != "int8")
    flops = sums.per_step(*sum.flops) * sums.ranks;
  set_number(record, path + ".flops", flops, uncounted);
  if (flops && !on_gpu && sum.seconds > 0) rate = *flops / sums.per_step(sum.seconds);
  const std::string why = !flops   ? uncounted
                          : on_gpu ? kHostTimes
                                   : "no operator of this group ran";
  set_number(record, path + ".achieved_flops", rate, why);
  const Json& roof = record["roofline"]["gemm_flops"];
  if (rate && roof.is_number()) fraction = *rate / roof.get<double>();
  set_number(record, path + ".roofline_fraction", fraction,
             rate ? "the GEMM rate was not measured in this run" : why);
}

}  // namespace

Json totals_to_json(const RankTrace& trace) {
  Json operators = Json::array();
  for (const OperatorTotal& one : trace.operators)
    operators.push_back({one.name, one.group, one.calls, one.self_seconds,
                         one.flops ? Json(*one.flops) : Json(nullptr)});
  return {{"steps", trace.steps},
          {"step_seconds", trace.step_seconds},
          {"communication_seconds", trace.communication_seconds},
          {"dropped_spans", trace.dropped_spans},
          {"operators", std::move(operators)}};
}

RankTrace totals_from_json(const nlohmann::json& json) {
  RankTrace trace;
  trace.steps = json.at("steps");
  trace.step_seconds = json.at("step_seconds");
  trace.communication_seconds = json.at("communication_seconds");
  trace.dropped_spans = json.at("dropped_spans");
  for (const auto& one : json.at("operators"))
    trace.operators.push_back({one[0], one[1], one[2], one[3],
                               one[4].is_null() ? std::nullopt : std::optional<double>(one[4])});
  return trace;
}

void fill_trace(Json& record, const TraceFacts& facts) {
  const TracedSums sums = sums_of(facts.ranks);
  if (!(sums.step_seconds > 0)) return fill_no_trace(record, "no step was traced");
  std::int64_t steps = facts.ranks.front().steps, dropped = 0;
  for (const RankTrace& rank : facts.ranks) {
    steps = std::min(steps, rank.steps);
    dropped += rank.dropped_spans;
  }
  const double step = sums.per_step(sums.step_seconds);
  for (const char* key : {"trace", "operators"}) record["unavailable"].erase(key);
  record["trace"] = {
      {"path", facts.path},       {"steps", steps},
      {"events", facts.events},   {"dropped_events", dropped},
      {"step_seconds", step},     {"slowdown", nullptr},
      {"seconds", facts.seconds}, {"clock_uncertainty_seconds", facts.clock_uncertainty_seconds}};
  const auto measured = measured_step(record);
  set_number(record, "trace.slowdown",
             measured ? std::optional(step / *measured - 1) : std::nullopt,
             "no mean step was measured");
  const bool on_gpu = record["device"] == "cuda";
  record["operators"] = {{"clock", "host"}, {"top", top_operators(sums)}};
  double inside = 0;
  for (const char* group :
       {"convolution", "matrix_product", "normalisation", "optimizer", "communication", "other"}) {
    fill_group(record, sums, group, on_gpu);
    inside += sum_of_group(sums, group).seconds;
  }
  const double outside = std::max(0., sums.step_seconds - inside);
  const auto timed = [&](double value) { return on_gpu ? std::nullopt : std::optional(value); };
  set_number(record, "operators.outside.seconds", timed(sums.per_step(outside)), kHostTimes);
  set_number(record, "operators.outside.share", timed(outside / sums.step_seconds), kHostTimes);
}

void fill_no_trace(Json& record, const std::string& reason) {
  set_unavailable(record, "trace", reason);
  set_unavailable(record, "operators", reason);
}

}  // namespace scalemark

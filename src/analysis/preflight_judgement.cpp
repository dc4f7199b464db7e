// See preflight_judgement.hpp.
#include "analysis/preflight_judgement.hpp"

namespace scalemark {
namespace {

CheckResult gpu_check(const Json& record) {
  CheckResult result;
  result.name = "gpu";
  result.statistic = "health";
  result.status = CheckStatus::skip;
  result.bound = Bound::equals;
  const auto reason = record.at("unavailable").find("system.gpu_driver");
  if (record.at("device") == "cuda")
    result.message = "of GPUs this version measures GEMM alone";
  else
    result.message =
        "the ranks use no GPU" +
        (reason != record["unavailable"].end() ? ": " + reason->get<std::string>() : std::string());
  return result;
}

}  // namespace

void judge_preflight(Json& record, const std::vector<PreflightRule>& rules) {
  const bool pinning = record.at("config").at("pinning").at("value") == true;
  std::vector<PreflightRule> applied;
  for (const PreflightRule& rule : rules)
    if (!pinning || rule.check == "binding") applied.push_back(rule);
  auto results = evaluate(applied, preflight_values(record));
  if (!pinning) results.push_back(gpu_check(record));
  for (const CheckResult& result : results) {
    record["checks"].push_back(to_json(result));
    for (const char* key : {"value", "limit", "rank", "host"})
      if (record["checks"].back()[key].is_null())
        record["unavailable"][std::string("checks.") + key] =
            "skipped, or not of one rank or host alone";
  }
  record["verdict"] = to_string(verdict_of(results));
}

}  // namespace scalemark

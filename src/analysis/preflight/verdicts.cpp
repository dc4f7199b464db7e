// Rules applied to values; see rules.hpp.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/preflight/rules.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {

bool names(const std::string& pattern, const std::string& check) {
  if (!pattern.ends_with('*')) return pattern == check;
  return check.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
}

std::string place_of(const PreflightValue& value) {
  if (value.rank) return fmt::format("rank {} on {}", *value.rank, value.host);
  return value.host;
}

/// What the rule looks at, of one check: the values that are known.
struct RuleGroup {
  std::vector<const PreflightValue*> known;
  const PreflightValue* first = nullptr;  ///< known or not
};

double reference_of(const RuleGroup& group) {
  std::vector<double> numbers;
  for (const PreflightValue* value : group.known) numbers.push_back(value->value);
  if (numbers.size() != 2) return median(numbers);
  return group.first->higher_is_better ? std::ranges::max(numbers) : std::ranges::min(numbers);
}

CheckResult result_of(const PreflightRule& rule, const PreflightValue& value) {
  CheckResult result;
  result.name = value.check;
  result.statistic = value.statistic;
  result.bound = rule.bound;
  result.limit = rule.limit;
  result.unit = rule.bound == Bound::relative_to_median ? "" : value.unit;
  result.rank = value.rank;
  result.host = value.host;
  result.value = value.value;
  return result;
}

CheckResult skipped(const PreflightRule& rule, const std::string& name, const std::string& why) {
  CheckResult result;
  result.name = name;
  result.statistic = rule.statistic;
  result.status = CheckStatus::skip;
  result.bound = rule.bound;
  result.limit = rule.limit;
  result.message = why;
  return result;
}

std::string median_words(const PreflightValue& value, std::size_t count) {
  const std::string one = value.rank ? "rank" : "host";
  return count == 2 ? "better " + one : "median of the " + one + "s";
}

/// `reference`: of relative_to_median.
CheckResult check_value(const PreflightRule& rule, const PreflightValue& value, double reference,
                        std::size_t ranks) {
  CheckResult result = result_of(rule, value);
  const std::string place = place_of(value);
  const std::string begin = place.empty() ? "" : place + ": ";
  const std::string what = shown_value(value.value, value.unit);
  const auto limit = [&] { return shown_value(rule.limit, value.unit); };
  bool kept = true;
  switch (rule.bound) {
    case Bound::min:
      kept = value.value.get<double>() >= rule.limit.get<double>();
      result.message = fmt::format("{}{}, at least {}", begin, what, limit());
      break;
    case Bound::max:
      kept = value.value.get<double>() <= rule.limit.get<double>();
      result.message = fmt::format("{}{}, at most {}", begin, what, limit());
      break;
    case Bound::equals:
      kept = value.value == rule.limit;
      result.message = fmt::format("{}{}, to be {}", begin, what, limit());
      break;
    case Bound::relative_to_median: {
      const double number = value.value;
      const double worse = value.higher_is_better ? number : reference;
      const double better = value.higher_is_better ? reference : number;
      result.value = better > 0 ? worse / better : 1.;
      kept = result.value.get<double>() >= rule.limit.get<double>();
      result.message =
          fmt::format("{}{}, {:.2f} of the {} ({})", begin, what, result.value.get<double>(),
                      median_words(value, ranks), shown_value(reference, value.unit));
    }
  }
  result.status = kept ? CheckStatus::pass : rule.level;
  if (!kept && !value.detail.empty()) result.message = begin + value.detail;
  return result;
}

/// Whether `a` is nearer to its limit than `b`.
bool nearer(const PreflightRule& rule, const CheckResult& a, const CheckResult& b) {
  if (!a.value.is_number() || !b.value.is_number()) return false;
  return rule.bound == Bound::max ? a.value > b.value : a.value < b.value;
}

void apply(const PreflightRule& rule, const RuleGroup& group, std::vector<CheckResult>& results) {
  const std::string& name = group.first->check;
  const bool relative = rule.bound == Bound::relative_to_median;
  if (group.known.empty())
    return results.push_back(
        skipped(rule, name, "not known here: see `unavailable` in the record"));
  if (relative && group.known.size() < 2)
    return results.push_back(skipped(rule, name, "one rank has no others to be compared with"));
  if (rule.bound != Bound::equals)
    for (const PreflightValue* value : group.known)
      if (!value->value.is_number())
        return results.push_back(
            skipped(rule, name,
                    fmt::format("{} is no number: \"equals\" compares it", value->value.dump())));
  const double reference = relative ? reference_of(group) : 0;
  std::optional<CheckResult> nearest;
  bool kept = true;
  for (const PreflightValue* value : group.known) {
    CheckResult result = check_value(rule, *value, reference, group.known.size());
    if (result.status != CheckStatus::pass) {
      kept = false;
      results.push_back(std::move(result));
    } else if (!nearest || nearer(rule, result, *nearest)) {
      nearest = std::move(result);
    }
  }
  if (kept) results.push_back(std::move(*nearest));
}

}  // namespace

std::vector<CheckResult> evaluate(const std::vector<PreflightRule>& rules,
                                  const std::vector<PreflightValue>& values) {
  std::vector<CheckResult> results;
  for (const PreflightRule& rule : rules) {
    std::vector<std::string> checks;  // in the order of the values
    for (const PreflightValue& value : values)
      if (names(rule.check, value.check) && value.statistic == rule.statistic &&
          std::ranges::find(checks, value.check) == checks.end())
        checks.push_back(value.check);
    if (checks.empty())
      results.push_back(skipped(rule, rule.check, "nothing of this name was measured here"));
    for (const std::string& check : checks) {
      RuleGroup group;
      for (const PreflightValue& value : values) {
        if (value.check != check || value.statistic != rule.statistic) continue;
        if (!group.first) group.first = &value;
        if (!value.value.is_null()) group.known.push_back(&value);
      }
      apply(rule, group, results);
    }
  }
  return results;
}

CheckStatus verdict_of(const std::vector<CheckResult>& results) {
  CheckStatus worst = CheckStatus::pass;
  for (const CheckResult& result : results)
    if (result.status != CheckStatus::skip) worst = std::max(worst, result.status);
  return worst;
}

Json to_json(const CheckResult& result) {
  return {{"name", result.name},
          {"statistic", result.statistic},
          {"status", to_string(result.status)},
          {"value", result.value},
          {"bound", to_string(result.bound)},
          {"limit", result.limit},
          {"unit", result.unit},
          {"rank", or_null(result.rank)},
          {"host", null_if_empty(result.host)},
          {"message", result.message}};
}

}  // namespace scalemark

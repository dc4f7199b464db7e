// See rate_search.hpp.
#include "measure/rate_search.hpp"

#include <cmath>

#include "config/names.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kMostTrials = 40;

/// `held`: rates that did, ascending.
struct Bracket {
  std::vector<double> held = {};
  std::optional<double> fails = {};

  /// The next rate to offer; nullopt: the largest that held is to be confirmed, or none holds.
  std::optional<double> next(double first, double lowest) const {
    if (held.empty() && !fails) return first;
    if (!fails) return 2 * held.back();
    if (held.empty()) return *fails / 2 < lowest ? std::nullopt : std::optional(*fails / 2);
    if (*fails <= kRateTolerance * held.back()) return std::nullopt;
    return std::sqrt(held.back() * *fails);
  }
};

}  // namespace

RateSearch search_rate(
    double first, double lowest,
    const std::function<std::optional<RateTrial>(double rate, bool confirms)>& attempt) {
  RateSearch search;
  Bracket bracket;
  while (search.trials.size() < kMostTrials) {
    const std::optional<double> rate = bracket.next(first, lowest);
    if (!rate && bracket.held.empty()) {
      search.limited_by = "no rate held it";
      return search;
    }
    const auto trial = attempt(rate ? *rate : bracket.held.back(), !rate);
    if (!trial) {
      search.limited_by = "signal";
      return search;
    }
    search.trials.push_back(*trial);
    if (rate && trial->holds) bracket.held.push_back(*rate);
    if (rate && !trial->holds) bracket.fails = *rate;
    if (rate) continue;
    if (trial->holds) {
      search.found = bracket.held.back();
      search.limited_by = "latency bound";
      return search;
    }
    bracket.fails = bracket.held.back();
    bracket.held.pop_back();
  }
  search.limited_by = "trials";
  return search;
}

}  // namespace scalemark

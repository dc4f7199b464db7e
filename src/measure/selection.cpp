// Estimates candidates and rounds together, and the chance of each candidate to be the better one.
#include "measure/selection.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

namespace scalemark {
namespace {

constexpr int kMostSweeps = 200;
constexpr double kSettled = 1e-10;
constexpr double kLeastDeviation = 1e-4;  // of launches that happen to agree

using Rates = std::vector<std::vector<double>>;

/// Candidate + round, by least squares: one is the mean of what the other leaves, in turns.
struct Levels {
  std::vector<double> candidates, rounds;
};

Levels levels_of(const Rates& rates, std::size_t rounds) {
  Levels levels{std::vector<double>(rates.size(), -std::numeric_limits<double>::infinity()),
                std::vector<double>(rounds, 0)};
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double moved = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      double sum = 0;
      for (std::size_t r = 0; r < rates[i].size(); ++r) sum += rates[i][r] - levels.rounds[r];
      if (!rates[i].empty()) levels.candidates[i] = sum / static_cast<double>(rates[i].size());
    }
    for (std::size_t r = 1; r < rounds; ++r) {  // the first stays 0
      double sum = 0, count = 0;
      for (std::size_t i = 0; i < rates.size(); ++i)
        if (r < rates[i].size()) {
          sum += rates[i][r] - levels.candidates[i];
          ++count;
        }
      moved = std::max(moved, std::abs(levels.rounds[r] - sum / count));
      levels.rounds[r] = sum / count;
    }
    if (moved < kSettled) break;
  }
  return levels;
}

/// The deviation of a launch: of all, and each candidate's own where it has two rounds or more.
struct Deviations {
  double all = 0, degrees_of_freedom = 0;
  std::vector<double> own;
  double of(std::size_t i) const { return std::max({all, own[i], kLeastDeviation}); }
};

Deviations deviations_of(const Rates& rates, const Levels& levels) {
  Deviations found{0, 1 - static_cast<double>(levels.rounds.size()),
                   std::vector<double>(rates.size(), 0)};
  double squares = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (rates[i].empty()) continue;
    double own = 0;
    for (std::size_t r = 0; r < rates[i].size(); ++r)
      own += std::pow(rates[i][r] - levels.candidates[i] - levels.rounds[r], 2);
    const double freedom = static_cast<double>(rates[i].size()) - 1;
    squares += own;
    found.degrees_of_freedom += freedom;
    if (freedom > 0) found.own[i] = std::sqrt(own / freedom);
  }
  if (found.degrees_of_freedom > 0) found.all = std::sqrt(squares / found.degrees_of_freedom);
  return found;
}

}  // namespace

Selection select_fastest(const Rates& log_rates, double margin) {
  std::size_t rounds = 0;
  for (const auto& rates : log_rates) rounds = std::max(rounds, rates.size());
  const Levels levels = levels_of(log_rates, rounds);
  Selection found{0, levels.candidates, std::vector<double>(log_rates.size(), 0), 1};
  for (std::size_t i = 0; i < log_rates.size(); ++i)
    if (log_rates[i].size() == rounds &&
        (log_rates[found.best].size() < rounds || found.levels[i] > found.levels[found.best]))
      found.best = i;
  const Deviations deviations = deviations_of(log_rates, levels);
  for (std::size_t i = 0; i < log_rates.size(); ++i) {
    if (i == found.best || log_rates[i].empty()) continue;
    if (deviations.degrees_of_freedom < 1) {
      found.better[i] = 0.5;
      continue;
    }
    const auto variance = [&](std::size_t candidate) {
      return std::pow(deviations.of(candidate), 2) /
             static_cast<double>(log_rates[candidate].size());
    };
    const double t = (margin - (found.levels[i] - found.levels[found.best])) /
                     std::sqrt(variance(i) + variance(found.best));
    const boost::math::students_t law(deviations.degrees_of_freedom);
    found.better[i] = boost::math::cdf(boost::math::complement(law, t));
  }
  for (const double better : found.better) found.chance -= better;
  found.chance = std::max(found.chance, 0.);
  return found;
}

std::vector<std::size_t> hopeless(const Selection& selection, const std::vector<std::size_t>& alive,
                                  double chance) {
  const double most_better = (1 - chance) / 2 / static_cast<double>(selection.levels.size());
  std::vector<std::size_t> found;
  for (const std::size_t i : alive)
    if (i != selection.best && selection.better[i] < most_better) found.push_back(i);
  return found;
}

}  // namespace scalemark

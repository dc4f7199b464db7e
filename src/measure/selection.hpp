// Chooses the fastest of many candidates that are measured in rounds, each once a round: which can
// be left out, and how sure the choice is.
#pragma once

#include <cstddef>
#include <vector>

namespace scalemark {

/// What some rounds tell of the candidates.
struct Selection {
  std::size_t best = 0;        ///< with the largest level among those of all rounds
  std::vector<double> levels;  ///< of the log rates, without the differences of rounds; least
                               ///< squares of candidate + round. -inf: never measured
  /// Chance of each candidate that it is faster than the best by more than the margin: Student's t
  /// of the difference of their levels, by the larger of the deviation of all and of its own.
  std::vector<double> better;
  /// 1 - the sum of `better`, at least 0: a lower bound of the chance that no candidate is faster
  /// than the best by more than the margin (Branke, Chick and Schmidt 2007, "Selecting a selection
  /// procedure", PGS by Slepian's and Bonferroni's inequality).
  double chance = 0;
};

/// Judges candidates by the logarithms of their rates in rounds 1, 2, ...; one that was left out
/// has fewer. `margin`: a difference of logarithms that does not matter. Before there are two
/// rounds the deviation is unknown, and the chance 0. At least one candidate must have a value.
Selection select_fastest(const std::vector<std::vector<double>>& log_rates, double margin);

/// Returns the candidates among `alive` that need not be measured again: those whose chance of
/// being better is so small that all of them together cost at most half of 1 - `chance`. Never the
/// best.
std::vector<std::size_t> hopeless(const Selection& selection, const std::vector<std::size_t>& alive,
                                  double chance);

}  // namespace scalemark

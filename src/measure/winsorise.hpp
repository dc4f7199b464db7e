// Winsorised values: a launch that a neighbour's burst hit counts as a launch at the edge of the
// others. The limits hang on what the exact tests hold fixed, so the tests stay exact.
#pragma once

#include <vector>

namespace scalemark {

/// Limit of a value in units of the median: chosen by simulation, docs/gate.md "Why this
/// statistic".
inline constexpr double kWinsorLimit = 2.5;

/// Each value brought to at most kWinsorLimit x the median magnitude from 0, its sign kept. The
/// limit does not change when signs are flipped. Where that median is 0 nothing is changed.
std::vector<double> winsorised_magnitudes(std::vector<double> x);

/// Each value brought to at most kWinsorLimit x the median deviation from the median. The limits do
/// not change when values are exchanged. Where that deviation is 0 nothing is changed.
std::vector<double> winsorised_deviations(std::vector<double> x);

}  // namespace scalemark

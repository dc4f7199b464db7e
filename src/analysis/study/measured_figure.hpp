// A published figure and what was measured beside it: pure functions of rows.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/study/step_rows.hpp"
#include "analysis/study/study_plan.hpp"
#include "config/names.hpp"
#include "measure/statistics.hpp"

namespace scalemark {

/// The reason of a figure without a reading.
inline constexpr std::string_view kNotOfThisProfile = "not of this profile";

/// Of each step that has left a result.
using RowsOfSteps = std::map<std::string, std::vector<StepRow>>;

struct MeasuredFigure {
  Json value = nullptr;  ///< in the unit of the publication: a number, word or truth value
  std::optional<Interval> ci95 = {};  ///< Student's t on logarithms over repeats, paired for ratios
  std::size_t repeats = 0;
  std::string reason = {};  ///< why there is no value
};

/// Values of repeats, or pairs of them: their geometric mean where all are positive. As percent,
/// and for "same", 100 (ratio - 1).
MeasuredFigure measure_figure(const Figure& figure, const RowsOfSteps& rows);

enum class FigureVerdict { shown, not_shown, opposite };
constexpr auto names_of(FigureVerdict) { return Names{"shown", "not shown", "opposite"}; }

/// Whether the whole interval (the value, where there is none) is as expected: shown; on the other
/// side: opposite. nullopt where nothing is expected or measured.
std::optional<FigureVerdict> judge(const Json& expect, const MeasuredFigure& measured);

/// "above 0", "within 10 %".
std::string expectation_words(const Json& expect);

/// Whether a figure of this unit is 100 (ratio - 1): "percent", and "same".
bool is_percent(std::string_view unit);

/// {"amount", "unit"}: in points where the unit is percent, else in percent of `from`; null where
/// one of the two is no number, or `from` is 0.
Json figure_difference(const std::string& unit, const Json& from, const Json& to);

/// The number that is published: its value, or the middle of its bounds; nullopt for one bound or
/// none.
std::optional<double> published_number(const Json& published);

}  // namespace scalemark

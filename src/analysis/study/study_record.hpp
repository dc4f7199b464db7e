// The figures of a study: the rows of steps that some are made of, what was measured beside what is
// published, and the record of both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/study/study_plan.hpp"
#include "config/names.hpp"
#include "json.hpp"
#include "measure/statistics.hpp"
#include "record/study.hpp"

namespace scalemark {

/// A launch of a sweep, a round or a point of a curve, a check, a point of a projection or a plan.
struct StepRow {
  Json settings = Json::object();  ///< of the sweep's point
  Json columns = Json::object();   ///< of flat_columns()
  Json part = nullptr;             ///< the record, point or check itself: pointers lead into it
  std::optional<std::int64_t> repeat = {};
  bool of_round = false;  ///< one of the repeats that a point is made of: `throughput` alone
  bool planned = false;   ///< of a dry run, which computes its numbers and measures nothing

  /// A setting, else a column, else a member of `part`; null where there is none.
  Json value(const std::string& name) const;
};

/// Reads the rows of a sweep's folder (launches of the build `revision` alone) or of a record.
/// Throws ResultError where it can't be read.
std::vector<StepRow> read_step_rows(const std::filesystem::path& result,
                                    const std::string& revision);
/// Reads the rows of a plan that a dry run has printed into a file. Throws ResultError where it
/// can't be read.
std::vector<StepRow> read_plan_rows(const std::filesystem::path& plan);
/// Returns the rows of such a plan.
std::vector<StepRow> plan_rows(const Json& plan);
/// Returns the rows of one record.
std::vector<StepRow> step_rows(const Json& record);

/// The reason of a figure without a reading.
inline constexpr std::string_view kNotOfThisProfile = "not of this profile";

/// The rows of each step that has left a result.
using RowsOfSteps = std::map<std::string, std::vector<StepRow>>;

using record::MeasuredFigure;

/// Values of repeats, or pairs of them: their geometric mean where all are positive. A ratio of two
/// steps, which were measured one after the other, is that of their geometric means and has no
/// pairs. As percent, and for "same", 100 (ratio - 1). The interval of a value that has no repeats
/// of its own is the one that stands beside it in the record, in `NAME_ci95`.
Known<MeasuredFigure> measure_figure(const Figure& figure, const RowsOfSteps& rows);

/// Whether a number of the figure would be the same at every repeat: it comes from a dry run, or
/// counts bytes, steps or samples, or is a loss, which the seed decides.
bool is_exact(const Figure& figure, const RowsOfSteps& rows);

/// Whether the whole interval is as expected: shown; on the other side: opposite. A number without
/// an interval shows nothing, unless it is `exact` or has to equal another. nullopt where nothing
/// is expected or measured.
std::optional<FigureVerdict> judge(const std::optional<Expectation>& expect,
                                   const Known<MeasuredFigure>& measured, bool exact = false);

/// Whether the figure is not shown for want of a second value.
bool is_lone_value(const record::StudyFigure& figure);

/// "above 0", "within 10 %".
std::string expectation_words(const std::optional<Expectation>& expect);

/// Whether a figure of this unit is 100 (ratio - 1): "percent", and "same".
bool is_percent(std::string_view unit);

/// In points where the unit is percent, else in percent of `from`; unknown where one of the two is,
/// or `from` is 0.
Known<record::FigureDifference> figure_difference(const std::string& unit,
                                                  const Known<double>& from,
                                                  const Known<double>& to);
/// The value that was measured, where it is a number.
Known<double> number_of(const Known<MeasuredFigure>& measured);

/// The number that is published: its value, or the middle of its bounds; unknown for one bound
/// or none.
Known<double> published_number(const record::Published& published);

using record::StepState;

/// `rows`: of the steps that have left a result.
StudyResult make_study_record(const Study& study, const StudyProfile& profile,
                              const std::string& site, const std::vector<StepState>& states,
                              const RowsOfSteps& rows);

}  // namespace scalemark

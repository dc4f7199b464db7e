// The record of a study: its steps, and its figures beside what was measured.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/measured_figure.hpp"
#include "analysis/study/study_plan.hpp"
#include "config/names.hpp"
#include "json.hpp"

namespace scalemark {

enum class StepStatus { ok, failed, skipped, interrupted, waiting };
constexpr auto names_of(StepStatus) {
  return Names{"ok", "failed", "skipped", "interrupted", "waiting"};
}

/// What became of a step.
struct StepState {
  std::string name, about;
  std::vector<std::string> command;  ///< all words, as typed
  std::string result;                ///< path within the study's folder
  StepStatus status = StepStatus::waiting;
  std::optional<int> exit_code = {};
  std::string reason = {};  ///< why it is not ok
  std::optional<double> seconds = {};
};

/// The states that a record holds.
std::vector<StepState> states_of(const Json& record);

/// kind "study". `rows`: of the steps that have left a result.
Json make_study_record(const Study& study, const StudyProfile& profile, const std::string& site,
                       const std::vector<StepState>& states, const RowsOfSteps& rows);

}  // namespace scalemark

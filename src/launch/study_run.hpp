// Runs the steps of a study, each a command of this program, in a folder from which it continues.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/study/study_record.hpp"
#include "error.hpp"
#include "platform/posix_file.hpp"

namespace scalemark {

/// Says where a study runs, and with which programs.
struct StudyPlace {
  std::filesystem::path program;  ///< scalemark
  std::filesystem::path netlab;   ///< scripts/netlab; empty: it did not come with the program
  std::filesystem::path folder;   ///< of study.json and the results of the steps
  std::string revision;           ///< of the build
  bool is_root = false, has_gpu = false;
};

/// Returns the place on this machine.
StudyPlace study_place(const std::filesystem::path& folder);

/// Returns FOLDER/study.json.
std::filesystem::path study_file(const std::filesystem::path& folder);

/// Locks the folder for this process. Throws EnvironmentError where another study runs in the
/// folder, and ResultError where the lock cannot be made.
std::unique_ptr<FileLock> lock_study(const std::filesystem::path& folder);

/// Returns the words of a step's command, in which {NAME} is replaced by the results of other
/// steps.
std::vector<std::string> step_command(const StudyStep& step, const StudyProfile& profile,
                                      const StudyPlace& place);
/// Returns the folder of a sweep's results, or the file of a record or plan.
std::filesystem::path step_result(const StudyStep& step, const std::filesystem::path& folder);

/// Returns the states of all steps. A step is done where `record` (study.json of the same build, or
/// null) says that the same command did it and its result exists. A step that cannot run here is
/// skipped.
std::vector<StepState> planned_states(const StudyProfile& profile, const StudyPlace& place,
                                      const std::optional<StudyResult>& record = {});

/// Functions that are called before and after a step, with its index.
struct StudyWatch {
  std::function<void(std::size_t)> begins, ended;
};

/// Runs the waiting steps in order. A step that fails ends only those that need its result. The
/// steps write to this stderr; their stdout is kept beside their result.
void run_steps(const StudyProfile& profile, const StudyPlace& place, std::vector<StepState>& states,
               const StudyWatch& watch);

/// Returns the most severe code of the steps that failed, or `environment` where all were skipped.
ExitCode code_of(const std::vector<StepState>& states);

/// Adds the rows that a finished step has left. Throws ResultError where they cannot be read.
void read_rows(RowsOfSteps& rows, const StudyStep& step, const StudyPlace& place,
               const StepState& state);

}  // namespace scalemark

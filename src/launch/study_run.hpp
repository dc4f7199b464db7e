// Runs the steps of a study, each a command of this program, in a folder that it goes on from.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analysis/study/study_record.hpp"
#include "error.hpp"
#include "platform/posix_file.hpp"

namespace scalemark {

/// Where a study runs, and with what.
struct StudyPlace {
  std::filesystem::path program;  ///< scalemark
  std::filesystem::path netlab;   ///< scripts/netlab; empty: it did not come with the program
  std::filesystem::path folder;   ///< of study.json and the results of the steps
  std::string revision;           ///< of the build
  bool is_root = false, has_gpu = false;
};

/// This machine.
StudyPlace study_place(const std::filesystem::path& folder);

/// FOLDER/study.json
std::filesystem::path study_file(const std::filesystem::path& folder);

/// Of this process alone while it lives. EnvironmentError where another study is at work in the
/// folder; ResultError where it cannot be made.
std::unique_ptr<FileLock> lock_study(const std::filesystem::path& folder);

/// The words of a step's command, {NAME} replaced by the results of others.
std::vector<std::string> step_command(const StudyStep& step, const StudyProfile& profile,
                                      const StudyPlace& place);
/// The folder of a sweep's results, or the file of a record or plan.
std::filesystem::path step_result(const StudyStep& step, const std::filesystem::path& folder);

/// All of them: what `record` (study.json of the same build, or null) says is done by the same
/// command, and has its result, is done; what cannot run here is skipped.
std::vector<StepState> planned_states(const StudyProfile& profile, const StudyPlace& place,
                                      const Json& record);

/// Called before and after a step, with its index.
struct StudyWatch {
  std::function<void(std::size_t)> begins, ended;
};

/// Runs what is waiting, in order; one that fails does not end the others, but those that need its
/// result. stderr is the steps' own; what they print is kept beside their result.
void run_steps(const StudyProfile& profile, const StudyPlace& place, std::vector<StepState>& states,
               const StudyWatch& watch);

/// The most severe code of the steps that failed; environment where all were skipped.
ExitCode code_of(const std::vector<StepState>& states);

/// Adds what a step that is done has left. ResultError where it can't be read.
void read_rows(RowsOfSteps& rows, const StudyStep& step, const StudyPlace& place,
               const StepState& state);

}  // namespace scalemark

// Runs the steps of a study and keeps their states.
#include "launch/study_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "config/json_text.hpp"
#include "launch/engine_start.hpp"
#include "launch/gate_builds.hpp"
#include "launch/launch.hpp"
#include "measure/clock.hpp"
#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "result/records.hpp"
#include "result/sweep_folder.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// Returns the step whose result a word stands for, or null for any other word.
const StudyStep* step_of(const std::string& word, const StudyProfile& profile) {
  const auto name = named_step(word);
  if (!name) return nullptr;
  const auto found = std::ranges::find(profile.steps, *name, &StudyStep::name);
  return found == profile.steps.end() ? nullptr : &*found;
}

std::string text_of(const fs::path& path) {
  try {
    return read_input_file(path, kLargestText);
  } catch (const InputFault&) {
    return "";
  }
}

fs::path plan_file(const StudyStep& step, const fs::path& folder) {
  return folder / (step.name + std::string(kStepPlanEnding));
}

std::string plan_text(const StudyStep& step) { return step.plan.dump(2) + "\n"; }

/// Returns why a step cannot run here, or an empty text where it can.
std::string obstacle(const StudyStep& step, const StudyPlace& place) {
  if (step.needs_gpu && !place.has_gpu) return "it needs a GPU, and none is visible here";
  if (step.needs_root && !place.is_root)
    return step.netlab ? "virtual hosts (scripts/netlab) need root" : "it needs root";
  if (step.netlab && place.netlab.empty()) return "scripts/netlab is missing";
  return "";
}

bool is_done(const StepState& before, const StudyStep& step, const StepState& now,
             const StudyPlace& place) {
  std::error_code error;
  return before.status == StepStatus::ok && before.command == now.command &&
         fs::exists(place.folder / now.result, error) &&
         (!step.is_sweep() || text_of(plan_file(step, place.folder)) == plan_text(step));
}

/// Returns the file to which stdout of a step goes.
fs::path printed(const StudyStep& step, const StudyPlace& place) {
  return step.is_arithmetic() ? step_result(step, place.folder)
                              : place.folder / (step.name + ".txt");
}

SupervisedExits start(const StudyStep& step, const StudyProfile& profile, const StudyPlace& place) {
  const fs::path output = printed(step, place);
  const FileDescriptor file(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.fd < 0) throw ResultError(fmt::format("{}: {}", output.string(), std::strerror(errno)));
  ChildProcess process{step_command(step, profile, place)};
  process.streams = {file.fd, STDERR_FILENO};
  process.before_exec = [&] {
    for (const auto& [name, value] : step.environment) setenv(name.c_str(), value.c_str(), 1);
  };
  Supervision how;
  how.grace_seconds = 600;  // the step stops its own launches, which write what they have
  return supervise_all({process}, how);
}

/// Returns one of scalemark's exit codes other than a verdict, or null for the code of a launcher
/// or a signal.
const ExitCodeWords* our_code(int code) {
  const auto found =
      std::ranges::find(kExitCodes, static_cast<ExitCode>(code), &ExitCodeWords::code);
  return found == std::end(kExitCodes) || found->of_gate ? nullptr : found;
}

/// Returns a text such as "ended with status 7 (environment); see its messages".
std::string why_failed(int code) {
  const ExitCodeWords* ours = our_code(code);
  return end_words(code) + (ours ? fmt::format(" ({})", ours->words) : "") + "; see its messages";
}

void run_step(const StudyStep& step, const StudyProfile& profile, StepState& state,
              const StudyPlace& place) {
  if (step.is_sweep()) ResultFile(plan_file(step, place.folder)).write_text(plan_text(step));
  const double begin = steady_seconds();
  const SupervisedExits exits = start(step, profile, place);
  state.seconds = steady_seconds() - begin;
  const int code = exits.raw_status.front();
  state.exit_code = code;
  const bool accepted = code == 0 || std::ranges::find(step.accepted, code) != step.accepted.end();
  state.status = exits.stopped_by_us ? StepStatus::interrupted
                 : accepted          ? StepStatus::ok
                                     : StepStatus::failed;
  if (state.status == StepStatus::failed) state.reason = why_failed(code);
}

}  // namespace

fs::path study_file(const fs::path& folder) { return folder / "study.json"; }

std::unique_ptr<FileLock> lock_study(const fs::path& folder) {
  const fs::path file = folder / ".study.lock";
  try {
    fs::create_directories(folder);
    if (auto lock = FileLock::try_take(file)) return lock;
  } catch (const std::system_error& error) {
    throw ResultError(fmt::format("{}: {}", folder.string(), error.code().message()));
  }
  throw EnvironmentError(fmt::format(
      "scalemark study: another one is at work in {}; wait for it, or give another --site or "
      "--output. Where none is, one that was killed on a file system without locks has left {}: "
      "remove it",
      folder.string(), file.string()));
}

StudyPlace study_place(const fs::path& folder) {
  StudyPlace place{own_path(), {}, folder, own_build().revision, geteuid() == 0};
  place.has_gpu = !visible_gpus().gpus.empty();
  try {
    place.netlab = find_shipped(place.program, fs::path("scripts") / "netlab");
  } catch (const EnvironmentError&) {
  }
  return place;
}

fs::path step_result(const StudyStep& step, const fs::path& folder) {
  if (step.is_sweep()) return folder / step.name;
  return step.is_arithmetic() ? plan_file(step, folder) : folder / (step.name + ".json");
}

std::vector<std::string> step_command(const StudyStep& step, const StudyProfile& profile,
                                      const StudyPlace& place) {
  std::vector<std::string> command;
  if (step.netlab)
    command = {place.netlab.string(), "--hosts", std::to_string(step.netlab->hosts), "--rate",
               step.netlab->rate,     "--"};
  command.push_back(place.program.string());
  for (const std::string& word : step.words) {
    const StudyStep* other = step_of(word, profile);
    command.push_back(other ? step_result(*other, place.folder).string() : word);
  }
  if (step.is_arithmetic()) return command;
  if (step.is_sweep()) {
    command.push_back(plan_file(step, place.folder).string());
    command.push_back("--retry_failed");
  }
  command.push_back("--output");
  command.push_back(step_result(step, place.folder).string());
  return command;
}

std::vector<StepState> planned_states(const StudyProfile& profile, const StudyPlace& place,
                                      const std::optional<StudyResult>& record) {
  const bool same_build = record && record->build.revision == place.revision;
  const std::vector<StepState> before = same_build ? record->steps : std::vector<StepState>();
  StudyPlace shown = place;  // in a record that travels, paths of programs tell nothing
  shown.program = "scalemark";
  shown.netlab = "scripts/netlab";
  std::vector<StepState> states;
  for (const StudyStep& step : profile.steps) {
    StepState state{step.name, step.about, step_command(step, profile, shown),
                    step_result(step, place.folder).lexically_relative(place.folder).string()};
    const auto found = std::ranges::find(before, step.name, &StepState::name);
    if (found != before.end() && is_done(*found, step, state, place)) {
      state = *found;
    } else if (state.reason = obstacle(step, place); !state.reason.empty()) {
      state.status = StepStatus::skipped;
    }
    states.push_back(std::move(state));
  }
  return states;
}

void run_steps(const StudyProfile& profile, const StudyPlace& place, std::vector<StepState>& states,
               const StudyWatch& watch) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].status != StepStatus::waiting) continue;
    const StudyStep& step = profile.steps[i];
    for (const std::string& word : step.words)
      if (const StudyStep* needed = step_of(word, profile))
        if (states[static_cast<std::size_t>(needed - profile.steps.data())].status !=
            StepStatus::ok) {
          states[i].status = StepStatus::skipped;
          states[i].reason = fmt::format("it needs the result of {}", needed->name);
        }
    if (states[i].status != StepStatus::waiting) continue;
    watch.begins(i);
    run_step(step, profile, states[i], place);
    watch.ended(i);
    if (states[i].status == StepStatus::interrupted) return;
  }
}

ExitCode code_of(const std::vector<StepState>& states) {
  ExitCode code = ExitCode::ok;
  bool any = false;
  for (const StepState& state : states) {
    any = any || state.status != StepStatus::skipped;
    if (state.status == StepStatus::interrupted || state.status == StepStatus::waiting)
      code = most_severe(code, ExitCode::failed);
    if (state.status != StepStatus::failed) continue;
    const ExitCodeWords* ours = our_code(state.exit_code.value_or(-1));
    code = most_severe(code, ours ? ours->code : ExitCode::failed);
  }
  return any ? code : ExitCode::environment;
}

void read_rows(RowsOfSteps& rows, const StudyStep& step, const StudyPlace& place,
               const StepState& state) {
  const fs::path result = step_result(step, place.folder);
  std::error_code error;
  // The record of a step that failed is that of an earlier time; a sweep's launches say when.
  const bool told =
      state.status == StepStatus::ok || (state.status == StepStatus::failed && step.is_sweep());
  if (!told || !fs::exists(result, error)) return;
  rows[step.name] =
      step.is_arithmetic() ? read_plan_rows(result) : read_step_rows(result, place.revision);
}

}  // namespace scalemark

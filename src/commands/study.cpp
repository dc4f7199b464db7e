// Implements `scalemark study`: a published experiment, step by step, and its figures beside those
// measured here.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "commands/list.hpp"
#include "commands/shared_flags.hpp"
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/load.hpp"
#include "config/text.hpp"
#include "launch/engine_start.hpp"
#include "launch/launch.hpp"
#include "launch/launch_builder.hpp"
#include "launch/study_run.hpp"
#include "launch/sweep.hpp"
#include "record/write.hpp"
#include "report/console.hpp"
#include "report/tables.hpp"
#include "result/records.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

struct StudyRequest {
  Study study;
  std::string profile, site;
  std::optional<std::string> output;
  std::vector<std::string> sites;   ///< two, where these are compared
  std::vector<std::string> values;  ///< "NAME=TEXT", of the plans of its sweeps
  bool dry_run = false, json = false, markdown = false;

  fs::path folder(const std::string& of_site) const {
    return output ? fs::path(*output)
                  : fs::path("results") / "studies" / study.name / profile / of_site;
  }
};

Study find_study(const std::string& name) {
  if (name.find('/') != name.npos || name.ends_with(".json")) return read_study(name);
  std::vector<std::string> names;
  for (const fs::path& path : shipped_study_files(own_path())) {
    names.push_back(path.stem());
    if (names.back() == name) return read_study(path);
  }
  throw ConfigError(fmt::format("scalemark study: {} is no study{} (scalemark list studies)",
                                quote(name), did_you_mean(name, names)));
}

void check_site(const std::string& site) {
  if (site.empty() || site == "." || site == ".." || site.find('/') != site.npos)
    refuse_at("--site", quote(site) + " is no name of a folder");
}

StudyRequest read_request(const FlagReader& flags) {
  const std::vector<std::string> words = flags.positionals("study");
  const bool sites = flags.has("sites");
  if (words.size() != (sites ? 3U : 1U))
    throw ConfigError(
        sites ? "scalemark study: --sites takes two: scalemark study NAME --sites A B"
              : "scalemark study takes one study: scalemark study NAME (scalemark list studies)");
  StudyRequest request{
      find_study(words.front()),           flags.text("profile").value_or("laptop"),
      flags.text("site").value_or("here"), flags.text("output"),
      {words.begin() + 1, words.end()},    flags.texts("value")};
  request.study.profile(request.profile);
  check_site(request.site);
  for (const std::string& site : request.sites) check_site(site);
  request.dry_run = flags.has("dry_run");
  request.json = flags.has("json");
  request.markdown = flags.has("markdown");
  if (request.dry_run + request.json + request.markdown > 1)
    throw ConfigError("scalemark study: of --dry_run, --json and --markdown give one");
  if (sites && (request.output || request.dry_run || request.json || request.markdown ||
                !request.values.empty()))
    throw ConfigError("scalemark study: --sites reads what --site has measured, and prints tables");
  return request;
}

/// Prints every command, and every launch of a sweep.
ExitCode print_study(const StudyProfile& profile, const StudyPlace& place) {
  const auto states = planned_states(profile, place);
  for (std::size_t i = 0; i < states.size(); ++i) {
    const StudyStep& step = profile.steps[i];
    say_info(fmt::format("{}: {}; about {}{}", step.name, step.about,
                         format_duration(60 * step.minutes),
                         states[i].reason.empty() ? "" : "; skipped here: " + states[i].reason));
    print_data(shell_quoted(step_command(step, profile, place)) + "\n");
    if (step.is_sweep())
      print_sweep(parse_sweep_plan(step.plan, step.name, environment_lines(), cores_per_host()),
                  step_result(step, place.folder));
  }
  return ExitCode::ok;
}

/// Reports what begins and ends, and updates study.json each time.
class Recorder {
 public:
  Recorder(const StudyRequest& request, const StudyProfile& profile, const StudyPlace& place,
           const std::vector<StepState>& states)
      : request_(request), profile_(profile), place_(place), states_(states) {
    for (std::size_t i = 0; i < states.size(); ++i) read(i);
  }

  void begins(std::size_t index) const {
    say_info(fmt::format("[{}/{}] {}: {}; about {}, {} left in all", index + 1, states_.size(),
                         states_[index].name, states_[index].about,
                         format_duration(60 * profile_.steps[index].minutes),
                         format_duration(60 * minutes_left(index))));
  }
  void ended(std::size_t index) {
    const StepState& state = states_[index];
    say_info(fmt::format("[{}/{}] {}: {} after {}{}", index + 1, states_.size(), state.name,
                         to_string(state.status), format_duration(state.seconds.value_or(0)),
                         state.reason.empty() ? "" : ": " + state.reason));
    read(index);
    write();
  }
  StudyResult write() const {
    StudyResult result = make_study_record(request_.study, profile_, request_.site, states_, rows_);
    ResultFile(study_file(place_.folder)).write(record_json(result));
    return result;
  }

 private:
  void read(std::size_t index) { read_rows(rows_, profile_.steps[index], place_, states_[index]); }
  double minutes_left(std::size_t index) const {
    double minutes = 0;
    for (std::size_t i = index; i < states_.size(); ++i)
      if (states_[i].status == StepStatus::waiting) minutes += profile_.steps[i].minutes;
    return minutes;
  }

  const StudyRequest& request_;
  const StudyProfile& profile_;
  const StudyPlace& place_;
  const std::vector<StepState>& states_;
  RowsOfSteps rows_;  ///< a step's are read once, when it is done
};

ExitCode run_study(const StudyRequest& request, const StudyProfile& profile,
                   const StudyPlace& place) {
  const auto alone = lock_study(place.folder);
  auto states = planned_states(profile, place, result_at<StudyResult>(study_file(place.folder)));
  Recorder recorder(request, profile, place, states);
  for (const StepState& state : states)
    if (state.status == StepStatus::ok)
      say_info(state.name + ": done before");
    else if (state.status == StepStatus::skipped)
      say_error(state.name + " is skipped: " + state.reason);
  recorder.write();
  const HeldSignals until_the_table_is_printed;
  run_steps(profile, place, states,
            {[&](std::size_t index) { recorder.begins(index); },
             [&](std::size_t index) { recorder.ended(index); }});
  const StudyResult result = recorder.write();
  if (request.json)
    print_data(record_text(record_json(result)));
  else if (request.markdown)
    print_data(study_markdown(result));
  else
    print_view(study_table(result));
  say_info("results: " + study_file(place.folder).string() + "; a page of them: scalemark report " +
           place.folder.string());
  return code_of(states);
}

/// Compares both sites' figures, then the launches of each step point by point.
ExitCode compare_sites(const StudyRequest& request, const StudyProfile& profile) {
  std::vector<StudyResult> results;
  std::vector<fs::path> folders;
  for (const std::string& site : request.sites) {
    folders.push_back(request.folder(site));
    results.push_back(read_typed_record<StudyResult>(study_file(folders.back())));
  }
  print_data(sites_table(results[0], results[1]));
  for (const StudyStep& step : profile.steps) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < folders.size(); ++i) {
      const fs::path result = step_result(step, folders[i]);
      std::error_code error;
      if (fs::exists(result, error)) words.push_back(request.sites[i] + "=" + result.string());
    }
    const std::string& kind = step.words.front();
    if (words.size() < 2 || step.is_arithmetic() ||
        (kind != "sweep" && kind != "scale" && kind != "run" && kind != "infer"))
      continue;
    print_data("\n" + step.name + ": " + step.about + "\n");
    commands::compare({words, nullptr});
  }
  return ExitCode::ok;
}

}  // namespace

CommandHelp commands::study_help(const CommandLine&) {
  return {"study",
          "A published experiment with one command: its steps, then its figures beside what was "
          "measured, and what differs. The same command goes on where an earlier one ended.",
          {"NAME [--profile laptop|full] [--site LABEL]", "NAME --sites A B"},
          {{"Study",
            {{.name = "profile",
              .value_name = "NAME",
              .text = "laptop: a few minutes on two cores; full: the published size",
              .standard = "laptop",
              .words = {"laptop", "full"},
              .often_used = true},
             {.name = "site",
              .value_name = "LABEL",
              .text = "where it is measured: vm, bm, a cluster's name",
              .standard = "here",
              .often_used = true},
             {.name = "sites", .text = "compare what two sites have measured", .often_used = true},
             {.name = "output",
              .value_name = "DIR",
              .text = "folder of study.json and the results of its steps",
              .standard = "results/studies/NAME/PROFILE/LABEL",
              .often_used = true},
             value_flag(),
             {.name = "dry_run",
              .text = "print every command and launch, start nothing",
              .often_used = true},
             {.name = "json", .text = "the record on stdout, nothing else"},
             {.name = "markdown", .text = "the table in Markdown"}}}},
          {"scalemark list studies", "scalemark study link_rate",
           "scalemark study weak_scaling_resnet50 --profile full --site vm"},
          "NAME: of scalemark list studies, or the path of a study file of your own "
          "(docs/studies.md). Steps that need root or a GPU are skipped where there is none, and "
          "said so. SCALEMARK_LAUNCHER and SCALEMARK_HOSTFILE reach every step.\n"
          "Exit codes: 0 measured (whatever the figures say), 2 usage, 4 to 7 the most severe of "
          "its steps, 6 results not writable, 7 every step was skipped.\n"};
}

ExitCode commands::study(const CommandLine& line) {
  refuse_ranks("scalemark study launches its ranks itself");
  const StudyRequest request = read_request(FlagReader(study_help(line), "study", line.arguments));
  StudyProfile profile = request.study.profile(request.profile);
  if (!request.sites.empty()) return compare_sites(request, profile);
  std::vector<Json*> plans;
  for (StudyStep& step : profile.steps)
    if (step.is_sweep()) plans.push_back(&step.plan);
  replace_values(plans, request.values, "the profile " + profile.name);
  const StudyPlace place = study_place(request.folder(request.site));
  return request.dry_run ? print_study(profile, place) : run_study(request, profile, place);
}

}  // namespace scalemark

// See study_plan.hpp.
#include "analysis/study/study_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>

#include "config/json_text.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "record/read.hpp"
#include "result/schema_fault.hpp"

namespace scalemark {
namespace {

const std::vector<std::string> kProfiles{"laptop", "full"};
constexpr std::string_view kHere = "{here}";  // the folder of the study's file

std::vector<std::string> split_words(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  return all;
}

StudyStep read_step(const Json& step, const Json& launch, const std::string& place) {
  StudyStep read{step["name"], step["about"], split_words(launch["run"]), launch["minutes"]};
  if (read.words.empty()) refuse_at(place + "/run", "has no word");
  Json plan = step.value("plan", Json());
  if (launch.contains("plan")) {
    if (plan.is_null()) plan = Json::object();
    plan.merge_patch(launch["plan"]);
  }
  if (read.is_sweep() == plan.is_null())
    refuse_at(place, read.is_sweep() ? "a sweep has a \"plan\"" : "only a sweep has a \"plan\"");
  read.plan = plan;
  if (const auto lab = launch.find("netlab"); lab != launch.end())
    read.netlab = VirtualHosts{(*lab)["hosts"], (*lab)["rate"]};
  const Json environment = launch.value("env", Json::object());
  for (const auto& [name, value] : environment.items()) read.environment[name] = value;
  for (const Json& need : launch.value("needs", Json::array()))
    (need == "gpu" ? read.needs_gpu : read.needs_root) = true;
  read.needs_root = read.needs_root || read.netlab;
  read.accepted = launch.value("accept", std::vector<int>());
  return read;
}

Reading read_reading(const Json& json, const std::set<std::string>& steps,
                     const std::string& place) {
  Reading reading{json["step"], json["of"], json.value("where", Json::object()),
                  json.value("over", Json())};
  reading.over_step = json.value("over_step", reading.step);
  reading.over_of = json.value("over_of", reading.of);
  reading.times = json.value("times", 1.);
  reading.expect = json.value("expect", Json());
  if (reading.over.is_null() && (json.contains("over_step") || json.contains("over_of")))
    reading.over = Json::object();
  for (const std::string& step : {reading.step, reading.over_step})
    if (!steps.contains(step))
      refuse_at(place + "/step",
                fmt::format("{} is no step of this profile (its steps: {})", quote(step),
                            join({steps.begin(), steps.end()}, ", ")));
  return reading;
}

StudyProfile read_profile(const Json& json, const std::string& name, const std::string& place) {
  const Json& told = json["profiles"][name];
  StudyProfile profile{name, told["evidence"], told["shows"], told["differs"], told["ranks"]};
  std::set<std::string> names;
  for (std::size_t i = 0; i < json["steps"].size(); ++i) {
    const Json& step = json["steps"][i];
    if (!step.contains(name)) continue;
    const std::string here = fmt::format("{}/steps/{}", place, i);
    if (!names.insert(step["name"]).second)
      refuse_at(here + "/name", quote(step["name"].get<std::string>()) + " is there twice");
    profile.steps.push_back(read_step(step, step[name], here + "/" + name));
    for (const std::string& word : profile.steps.back().words)
      if (const auto other = named_step(word);
          other && (!names.contains(*other) || *other == step["name"]))
        refuse_at(fmt::format("{}/{}/run", here, name),
                  fmt::format("{} names no earlier step of this profile", quote(word)));
  }
  for (std::size_t i = 0; i < json["figures"].size(); ++i) {
    const Json& figure = json["figures"][i];
    const Json& published = figure["published"];
    profile.figures.push_back(
        {figure["name"], published["unit"], part_of_file<record::Published>(published), {}});
    if (figure.contains(name))
      profile.figures.back().reading =
          read_reading(figure[name], names, fmt::format("{}/figures/{}/{}", place, i, name));
  }
  return profile;
}

bool any_step(const StudyProfile& profile, bool StudyStep::*needs) {
  return std::ranges::any_of(profile.steps, needs);
}

}  // namespace

std::optional<std::string> named_step(const std::string& word) {
  if (!word.starts_with('{') || !word.ends_with('}')) return std::nullopt;
  return word.substr(1, word.size() - 2);
}

bool StudyStep::is_arithmetic() const {
  return std::ranges::find(words, "--dry_run") != words.end();
}

double StudyProfile::minutes() const {
  return std::accumulate(steps.begin(), steps.end(), 0.,
                         [](double sum, const StudyStep& step) { return sum + step.minutes; });
}
bool StudyProfile::needs_gpu() const { return any_step(*this, &StudyStep::needs_gpu); }
bool StudyProfile::needs_root() const { return any_step(*this, &StudyStep::needs_root); }

const StudyProfile& Study::profile(const std::string& name) const {
  const auto found = std::ranges::find(profiles, name, &StudyProfile::name);
  if (found == profiles.end())
    refuse_at("--profile", fmt::format("{} is no profile{} (legal: {})", quote(name),
                                       did_you_mean(name, kProfiles), join(kProfiles, ", ")));
  return *found;
}

Study parse_study(std::string_view text, const std::string& name, const std::string& place) {
  const Json json = parse_json_object(text, place, "study");
  // A misspelt member would be a setting that is silently not there.
  if (const auto fault =
          schema_fault(json, "study_plan", MissingKeys::refused, UnknownKeys::refused))
    throw ConfigError(fmt::format("{}: {}", place, *fault));
  Study study{name, json["title"], json["publication"], json["published_on"], json["not_stated"]};
  for (const std::string& profile : kProfiles)
    study.profiles.push_back(read_profile(json, profile, place + ": "));
  return study;
}

Study read_study(const std::filesystem::path& path) {
  Study study = parse_study(read_json_text(path, "study"), path.stem().string(), path.string());
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  for (StudyProfile& profile : study.profiles)
    for (StudyStep& step : profile.steps)
      for (std::string& word : step.words)
        if (word.starts_with(kHere)) word.replace(0, kHere.size(), folder);
  return study;
}

}  // namespace scalemark

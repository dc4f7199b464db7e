// Reads the plan of a study.
#include "analysis/study/study_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>

#include "config/json_text.hpp"
#include "config/names.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "record/read.hpp"

namespace scalemark {
namespace {

const std::vector<std::string> kProfiles{"laptop", "full"};
constexpr std::string_view kHere = "{here}";  // the folder of the study's file
constexpr std::string_view kName = "^[a-z0-9_]+$";

std::vector<std::string> split_words(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  return all;
}

enum class Need { gpu, root };
constexpr auto names_of(Need) { return Names{"gpu", "root"}; }

/// The command of a step in one profile.
struct LaunchOfStep {
  std::string run;
  double minutes = 0;
  Json plan = nullptr;
  std::optional<VirtualHosts> netlab;
  std::map<std::string, std::string> environment;
  std::vector<Need> needs;
  std::vector<int> accepted;

  static void describe(Fields& fields) {
    using L = LaunchOfStep;
    fields
        .add("run", &L::run,
             "The command as it is typed, without scalemark and --output: \"sweep\", \"scale "
             "--model resnet50 --ranks 1,2\". {NAME} is the result of an earlier step: the folder "
             "of a sweep, else the record; {here}/FILE lies beside the study. With --dry_run "
             "--json it is a plan, which is arithmetic.")
        .filled();
    fields.add("minutes", &L::minutes, "That it takes, about.").above(0);
    fields.add("plan", &L::plan, "Merged into the step's (JSON Merge Patch, RFC 7396).")
        .object()
        .optional();
    fields.add("netlab", &L::netlab, "Virtual hosts of scripts/netlab; needs root.").optional();
    fields.add("env", &L::environment, "Variables of the command.").optional();
    fields.add("needs", &L::needs, "Without it the step is skipped.").optional();
    fields
        .add("accept", &L::accepted,
             "Exit codes beside 0 that are an answer too, such as 4 of preflight.")
        .within(1, 7)
        .optional();
  }
};

/// What a file says of each profile.
template <typename T>
struct OfProfiles {
  T laptop = {}, full = {};
  const T& of(const std::string& profile) const { return profile == "full" ? full : laptop; }
};

struct StepOfFile : OfProfiles<std::optional<LaunchOfStep>> {
  std::string name, about;
  Json plan = nullptr;

  static void describe(Fields& fields) {
    using S = StepOfFile;
    fields.add("name", &S::name).pattern(kName);
    fields.add("about", &S::about).filled();
    fields.add("plan", &S::plan, "Of a sweep (docs/sweep.md), for all profiles.")
        .object()
        .optional();
    fields.add("laptop", &S::laptop, "Without it the profile lacks the step.").optional();
    fields.add("full", &S::full, "Likewise.").optional();
  }
};

struct FigureOfFile : OfProfiles<std::optional<Reading>> {
  std::string name;
  PublishedFigure published;

  static void describe(Fields& fields) {
    using F = FigureOfFile;
    fields.add("name", &F::name).filled();
    fields.add("published", &F::published,
               "What is published: a number, or bounds of it, in `unit`; a text alone where there "
               "is no number (\"announced\").");
    fields.add("laptop", &F::laptop, "Without it the profile cannot tell.").optional();
    fields.add("full", &F::full, "Likewise.").optional();
  }
};

struct Profiles : OfProfiles<StudyProfile> {
  static void describe(Fields& fields) {
    fields.add("laptop", &Profiles::laptop);
    fields.add("full", &Profiles::full);
  }
};

struct StudyFile {
  std::string schema, title, publication, published_on;
  std::vector<std::string> not_stated;
  Profiles profiles;
  std::vector<StepOfFile> steps;
  std::vector<FigureOfFile> figures;

  static void describe(Fields& fields) {
    using F = StudyFile;
    fields.add("$schema", &F::schema);
    fields.add("title", &F::title).filled();
    fields.add("publication", &F::publication, "Whose experiment, in words.").filled();
    fields.add("published_on", &F::published_on, "The published hardware, framework and size.")
        .filled();
    fields.add("not_stated", &F::not_stated, "What the publication leaves open.").each(1);
    fields.add("profiles", &F::profiles);
    fields.add("steps", &F::steps, "One command of scalemark each.").filled();
    fields.add("figures", &F::figures, "Published beside measured.").filled();
  }
};

StudyStep step_from(const StepOfFile& step, const LaunchOfStep& launch, const std::string& place) {
  StudyStep made{step.name, step.about,    split_words(launch.run), launch.minutes,
                 step.plan, launch.netlab, launch.environment};
  if (made.words.empty()) refuse_at(place + "/run", "has no word");
  if (!launch.plan.is_null()) {
    if (made.plan.is_null()) made.plan = Json::object();
    made.plan.merge_patch(launch.plan);
  }
  if (made.is_sweep() == made.plan.is_null())
    refuse_at(place, made.is_sweep() ? "a sweep has a \"plan\"" : "only a sweep has a \"plan\"");
  const auto needs = [&](Need need) {
    return std::ranges::find(launch.needs, need) != launch.needs.end();
  };
  made.needs_gpu = needs(Need::gpu);
  made.needs_root = needs(Need::root) || made.netlab;
  made.accepted = launch.accepted;
  return made;
}

/// Returns the reading with what the file leaves out.
Reading completed(Reading reading, const std::set<std::string>& steps, const std::string& place) {
  if (!reading.over && !(reading.over_step.empty() && reading.over_of.empty()))
    reading.over.emplace();
  if (reading.over_step.empty()) reading.over_step = reading.step;
  if (reading.over_of.empty()) reading.over_of = reading.of;
  for (const std::string& step : {reading.step, reading.over_step})
    if (!steps.contains(step))
      refuse_at(place + "/step",
                fmt::format("{} is no step of this profile (its steps: {})", quote(step),
                            join({steps.begin(), steps.end()}, ", ")));
  return reading;
}

StudyProfile profile_from(const StudyFile& file, const std::string& name,
                          const std::string& place) {
  StudyProfile profile = file.profiles.of(name);
  profile.name = name;
  std::set<std::string> names;
  for (std::size_t i = 0; i < file.steps.size(); ++i) {
    const StepOfFile& step = file.steps[i];
    const auto& launch = step.of(name);
    if (!launch) continue;
    const std::string here = fmt::format("{}/steps/{}", place, i);
    if (!names.insert(step.name).second)
      refuse_at(here + "/name", quote(step.name) + " is there twice");
    profile.steps.push_back(step_from(step, *launch, here + "/" + name));
    for (const std::string& word : profile.steps.back().words)
      if (const auto other = named_step(word);
          other && (!names.contains(*other) || *other == step.name))
        refuse_at(fmt::format("{}/{}/run", here, name),
                  fmt::format("{} names no earlier step of this profile", quote(word)));
  }
  for (std::size_t i = 0; i < file.figures.size(); ++i) {
    const FigureOfFile& figure = file.figures[i];
    profile.figures.push_back({figure.name, figure.published.unit, figure.published, {}});
    if (const auto& reading = figure.of(name))
      profile.figures.back().reading =
          completed(*reading, names, fmt::format("{}/figures/{}/{}", place, i, name));
  }
  return profile;
}

bool any_step(const StudyProfile& profile, bool StudyStep::*needs) {
  return std::ranges::any_of(profile.steps, needs);
}

}  // namespace

void VirtualHosts::describe(Fields& fields) {
  fields.add("hosts", &VirtualHosts::hosts).within(2, 200);
  fields.add("rate", &VirtualHosts::rate).filled();
}

void Expectation::describe(Fields& fields) {
  using E = Expectation;
  fields.add("above", &E::above).optional();
  fields.add("below", &E::below).optional();
  fields.add("within_percent", &E::within_percent, "Of 1: no difference, by equivalence.")
      .above(0)
      .optional();
  fields.add("equals", &E::equals, "A word, a truth value, or a number of arithmetic.")
      .types({"number", "string", "boolean"})
      .optional();
}

void Reading::describe(Fields& fields) {
  const auto where = [&](const char* key, auto member, const char* text) {
    fields.add(key, member, text).types({"string", "number", "boolean", "null"}).optional();
  };
  fields.add("step", &Reading::step).pattern(kName);
  fields
      .add("of", &Reading::of,
           "A column of scalemark export (docs/export.md), or a JSON pointer into the record, the "
           "point of a curve, the check of a preflight.")
      .filled();
  where("where", &Reading::where,
        "Settings of a sweep's point, columns of scalemark export, or members of a point or check, "
        "with the values that choose.");
  where("over", &Reading::over,
        "Where the divisor is, likewise. Repeats of both are paired by their number; the interval "
        "is Student's t of their log ratios.");
  fields.add("over_step", &Reading::over_step, "Where `over` is of another step.")
      .pattern(kName)
      .optional();
  fields.add("over_of", &Reading::over_of, "Where `over` is another column.").filled().optional();
  fields.add("times", &Reading::times, "A factor: 0.01 where it is divided by 100 nodes.")
      .optional();
  fields
      .add("expect", &Reading::expect,
           "What shows the published effect, whole interval included. Missing: nothing is judged.")
      .filled()
      .optional();
}

void PublishedFigure::describe(Fields& fields) {
  using P = PublishedFigure;
  const auto number = [&](const char* key, Known<Json> Published::*member) {
    fields.add(key, member).types({"number"}).optional();
  };
  number("value", &P::value);
  number("low", &P::low);
  number("high", &P::high);
  fields.add("about", &P::about, "Whether it is published as about.").optional();
  fields
      .add("unit", &P::unit,
           "ratio: a quotient, 1.95; percent: 100 (quotient - 1), +18.7; share: of 1, 0.79; same: "
           "no difference, in percent; others as measured.")
      .one_of({"ratio", "percent", "share", "images/sec", "tokens/sec", "sequences/sec", "GB/s",
               "TFLOP/s", "GiB", "seconds", "hours", "MHz", "Mbit/s", "verdict", "same"});
  fields.add("text", &P::text).filled().optional();
  fields.add("derived", &P::derived, "Where it is computed from published numbers: how.")
      .filled()
      .optional();
}

void StudyProfile::describe(Fields& fields) {
  using P = StudyProfile;
  fields
      .add("evidence", &P::evidence,
           "effect: the published effect itself, at this size; stand_in: the same effect of other "
           "hardware; arithmetic: bytes, plans and projections alone.")
      .one_of({"effect", "stand_in", "arithmetic"});
  fields.add("shows", &P::shows, "What it can show, in one sentence.").filled();
  fields.add("differs", &P::differs, "From the publication: hardware, framework, size.").filled();
  fields.add("ranks", &P::ranks, "The most ranks of one launch.").within(1, 1'000'000);
}

const Fields& study_file_fields() { return fields_of<StudyFile>(); }

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
  const StudyFile file = written_in<StudyFile>(text, place, "study");
  Study study{name, file.title, file.publication, file.published_on, file.not_stated};
  for (const std::string& profile : kProfiles)
    study.profiles.push_back(profile_from(file, profile, place + ": "));
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

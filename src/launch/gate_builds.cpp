// Launches two builds in pairs, and judges them as the launches end.
#include "launch/gate_builds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <vector>

#include "analysis/compare/compare.hpp"
#include "config/text.hpp"
#include "launch/engine_start.hpp"
#include "launch/launch_builder.hpp"
#include "launch/point_launcher.hpp"
#include "launch/program_output.hpp"
#include "measure/clock.hpp"
#include "platform/platform.hpp"
#include "record/write.hpp"
#include "rendezvous/start_barrier.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// Returns why launches of two builds, whose points are those of `plan` and `new_plan`, can't take
/// interleaved measurements at every point; nothing where they can.
std::optional<std::string> why_not_interleaved(const SweepPlan& plan, const SweepPlan& new_plan,
                                               const std::array<PointLauncher, 2>& sides) {
  if (plan.command != Command::run) return "only runs can be interleaved";
  for (const PointLauncher& side : sides)
    if (!side.build().interleaved)
      return fmt::format("build {} is too old to be interleaved", side.build().revision);
  for (const SweepPoint& point : plan.points)
    if (find_resources(point.config.device, plan.hostfile ? plan.hostfile : point.config.hostfile,
                       process_environment())
            .elsewhere)
      return "ranks on other hosts are not interleaved";
  for (const SweepPlan* side : {&plan, &new_plan})
    for (const SweepPoint& point : side->points)
      if (point.launch.ranks > 1 && point.config.overlap == Overlap::step)
        return "what --overlap step leaves on its way would go on in the other one's slices";
  return std::nullopt;
}

/// Launches `point` of both sides and appends the ends to their journals; where one fails, only its
/// own. `first` is the side that is started first and has the first turn. True where we were asked
/// to stop.
bool launch_interleaved(const SweepPlan& plan, const std::array<PointLauncher, 2>& sides,
                        const std::array<Journal*, 2>& journals, std::size_t point,
                        std::int64_t repeat, std::size_t first) {
  const std::array<std::size_t, 2> order{first, 1 - first};
  const std::array handovers{HandoverFolder(sides[order[0]].folder()),
                             HandoverFolder(sides[order[1]].folder())};
  const std::array<TemporaryFolder, 2> local;  // for sockets: not on a network file system
  const int ranks = plan.points[point].launch.ranks;
  Interleaver giver(local[0].path(), {ranks, ranks});
  std::vector<Job> jobs;
  std::vector<JournalEntry> entries;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const PointLauncher& side = sides[order[i]];
    entries.push_back(side.begin(*journals[order[i]], point, repeat));
    jobs.push_back(side.job_of(point, repeat, handovers[i]));
    jobs.back().environment = session_folder(local[i].path());
    jobs.back().environment["SMK_INTERNAL_TURNS"] = giver.address(i);
  }
  Supervision how = sides[0].supervision(point);
  how.end_seconds = 0;  // one that waits for its turn would wait for ever
  how.inputs = [&] { return giver.inputs(); };
  how.on_wake = [&] { giver.update(); };
  const double start = steady_seconds();
  JobEnds ends = run_jobs(jobs, how);
  const double seconds = steady_seconds() - start;

  bool stopped = false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (ends.first_failed && *ends.first_failed != i) continue;
    const PointLauncher& side = sides[order[i]];
    JobEnd& end = ends.jobs[i];
    if (end.code == ExitCode::ok && giver.slices(i) == 0) {
      end = {ExitCode::environment,
             "its ranks were not interleaved: SMK_INTERNAL_TURNS has not reached them; --alternate "
             "launches does without"};
      side.discard_record(point, repeat);
    }
    side.finish(*journals[order[i]], entries[i], seconds, point, end);
    stopped = stopped || end.stopped;
  }
  return stopped;
}

namespace fs = std::filesystem;

/// Limits programs that only look something up. A file server that does not answer is no reason to
/// wait for ever.
constexpr double kLookUpSeconds = 60;

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) &&
         (fs::status(path, error).permissions() & fs::perms::owner_exec) != fs::perms::none;
}

/// Returns the source tree that this program was built in, or an empty path where it was installed.
fs::path source_tree() { return folder_above(own_path(), fs::path("scripts") / "build_commit"); }

/// Refuses a name such as HEAD~1 in a folder of another repository: whoever writes it there means a
/// commit of that one. A hash is of ours wherever it is written.
void refuse_foreign_commit(const fs::path& tree, const std::string& commit,
                           const std::string& flag) {
  if (commit.size() >= 7 && commit.find_first_not_of("0123456789abcdef") == commit.npos) return;
  const ProgramOutput said = output_of(
      {.command = {"git", "rev-parse", "--show-toplevel"}, .deadline_seconds = kLookUpSeconds});
  std::error_code error;
  if (!said.is_ok()) return;
  const fs::path here = said.text.substr(0, said.text.find('\n'));
  if (fs::equivalent(here, tree, error) || error) return;
  refuse_at(flag, fmt::format(
                      "{} would be a commit of scalemark itself, in {}, and this folder belongs to "
                      "{}: to judge a change of yours, give the same build twice and say what is "
                      "new with --new_set (model_file=, torch=, container=, env.NAME=); for a "
                      "commit of scalemark give its hash",
                      quote(commit), tree.string(), here.string()));
}

fs::path built_commit(const std::string& commit, const std::string& flag) {
  const fs::path tree = source_tree();
  if (tree.empty())
    refuse_at(flag, quote(commit) +
                        " is no program and no folder with one, and this scalemark is installed: "
                        "commits are built in a clone of its repository (git clone, scripts/setup, "
                        "./scalemark gate). Here give the folder of a build");
  refuse_foreign_commit(tree, commit, flag);
  const ProgramOutput said =
      output_of({.command = {(tree / "scripts" / "build_commit").string(), commit}});
  if (!said.is_ok()) {
    const std::string what =
        fmt::format("{}: {} is no build and no commit that can be built", flag, quote(commit));
    if (said.status == static_cast<int>(ExitCode::usage)) throw ConfigError(what);
    throw EnvironmentError(what);
  }
  std::istringstream lines(said.text);
  std::string path;
  std::getline(lines, path);
  return path;
}

/// Returns the commit that build_of() would build, or an empty text where the word means something
/// else.
std::string commit_of(const std::string& word) {
  const fs::path tree = source_tree();
  std::error_code error;
  if (tree.empty() || fs::exists(word, error)) return {};
  const ProgramOutput said =
      output_of({.command = {"git", "-C", tree.string(), "rev-parse", "--verify", "--quiet",
                             "--end-of-options", word + "^{commit}"},
                 .deadline_seconds = kLookUpSeconds});
  return said.is_ok() ? said.text.substr(0, said.text.find('\n')) : "";
}

/// Returns the lines that git prints in the source tree.
std::vector<std::string> lines_of_git(const fs::path& tree, std::vector<std::string> words) {
  words.insert(words.begin(), {"git", "-C", tree.string()});
  const ProgramOutput said = output_of({.command = words, .deadline_seconds = kLookUpSeconds});
  if (!said.is_ok()) throw EnvironmentError(fmt::format("{} failed", fmt::join(words, " ")));
  std::vector<std::string> lines;
  std::istringstream text(said.text);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// Returns the build that `PROGRAM --version` describes.
Build described(const fs::path& program, const std::string& flag) {
  const ProgramOutput said =
      output_of({.command = {program.string(), "--version"}, .deadline_seconds = kLookUpSeconds});
  if (said.overdue)
    throw EnvironmentError(fmt::format("{}: {} --version has not ended within {:.0f} s", flag,
                                       program.string(), kLookUpSeconds));
  std::map<std::string, std::string> facts;
  std::istringstream lines(said.text);
  for (std::string line, name, value; std::getline(lines, line);)
    if (std::istringstream words(line); words >> name >> value) facts[name] = value;
  if (facts["revision"].empty())
    throw EnvironmentError(fmt::format("{}: {} --version names no revision; is it a scalemark?",
                                       flag, program.string()));
  return {program, facts["revision"], facts["gate"] == kInterleavedWord, /*own=*/false,
          facts["build_type"]};
}

}  // namespace

Build build_of(const std::string& word, const std::string& flag) {
  std::error_code error;
  fs::path program;
  for (const fs::path& candidate :
       {fs::path(word), fs::path(word) / "bin" / "scalemark", fs::path(word) / "scalemark"})
    if (program.empty() && is_program(candidate)) program = candidate;
  if (program.empty() && fs::exists(word, error))
    refuse_at(flag, quote(word) + " holds no scalemark and no bin/scalemark");
  if (program.empty()) program = built_commit(word, flag);
  program = fs::canonical(program, error);
  if (error) throw EnvironmentError(fmt::format("{}: {}", flag, error.message()));
  return described(program, flag);
}

void refuse_same_commit(const std::string& base, const std::string& fresh) {
  const std::string commit = commit_of(base);
  if (!commit.empty() && commit == commit_of(fresh))
    refuse_at("--new",
              fmt::format("{} is the commit of --base, {}; give another one, or with --new_set "
                          "KEY=VALUE what it is to do otherwise",
                          quote(fresh), commit.substr(0, 12)));
}

std::vector<Commit> commits_between(const std::string& base, const std::string& fresh) {
  const fs::path tree = source_tree();
  const std::array hashes{commit_of(base), commit_of(fresh)};
  for (std::size_t side = 0; side < 2; ++side) {
    const std::string flag = fmt::format("--{}", side == 0 ? "base" : "new");
    const std::string& word = side == 0 ? base : fresh;
    if (hashes[side].empty())
      refuse_at(flag, quote(word) +
                          " is no commit of a source tree that this scalemark was built in; "
                          "--bisect builds the commits between --base and --new");
    refuse_foreign_commit(tree, word, flag);
  }
  std::vector<Commit> commits;
  const auto add = [&](const char* how, const std::string& which) {
    for (const std::string& line :
         lines_of_git(tree, {"log", "--first-parent", how, "--format=%H %s", which, "--"}))
      commits.push_back({line.substr(0, 40), line.substr(41)});
  };
  add("-1", hashes[0]);
  add("--reverse", hashes[0] + ".." + hashes[1]);
  const bool follows = output_of({.command = {"git", "-C", tree.string(), "merge-base",
                                              "--is-ancestor", hashes[0], hashes[1]},
                                  .deadline_seconds = kLookUpSeconds})
                           .is_ok();
  if (!follows || commits.size() < 2)
    refuse_at("--base", fmt::format("{} is no commit before {}: --bisect looks at those between",
                                    quote(base), quote(fresh)));
  return commits;
}

namespace {
namespace fs = std::filesystem;

constexpr std::array kSides{"base", "new"};

/// A pair of launches of a point, one by each build.
struct Couple {
  std::size_t point;
  std::int64_t pair;
  std::size_t first;  ///< the side that begins: 0 the base, 1 the new build
};

/// Returns the pairs in their order: in each round the points in random order. Which build begins
/// is balanced at each point, ABBA or BAAB: a coin decides it for a pair with an odd number, and
/// the next pair has the other order. What the second launch of a pair loses cancels so, and so
/// does a steady drift.
std::vector<Couple> couples_of(const SweepPlan& plan, std::size_t pairs) {
  std::vector<Couple> couples;
  std::mt19937_64 coin(~static_cast<std::uint64_t>(plan.seed));
  std::vector<std::size_t> first(plan.points.size());
  for (const auto& [point, pair] :
       launch_order(plan.points.size(), static_cast<std::int64_t>(pairs), plan.seed)) {
    first[point] = pair % 2 == 1 ? coin() >> 63 : 1 - first[point];
    couples.push_back({point, pair, first[point]});
  }
  return couples;
}

class BuildGate {
 public:
  explicit BuildGate(const GatedBuilds& asked)
      : asked_(asked),
        sides_{PointLauncher(asked.plan, build_of(asked.base, "--base"), asked.folder / kSides[0]),
               PointLauncher(asked.new_plan, build_of(asked.fresh, "--new"),
                             asked.folder / kSides[1])},
        couples_(couples_of(asked.plan, most_pairs())) {
    refuse_unlike_builds();
    const auto obstacle = why_not_interleaved(asked.plan, asked.new_plan, sides_);
    if (asked.alternate == Alternate::steps && obstacle)
      refuse_at("--alternate steps", *obstacle + "; leave it out");
    interleaved_ = asked.alternate != Alternate::launches && !obstacle;
    if (asked.alternate == Alternate::automatic && obstacle)
      why_launches_ = fmt::format(", since {}", *obstacle);
  }

  void print() const {
    for (const Couple& couple : couples_)
      for (const std::size_t side : {couple.first, 1 - couple.first})
        print_data(sides_[side].command_line(couple.point, couple.pair) + "\n");
    say_progress(fmt::format("at most {} launches: {} of {}, fewer where the verdict is clear",
                             2 * couples_.size(), counted(most_pairs(), "pair"),
                             counted(asked_.plan.points.size(), "point")));
    say_progress(how_pairs_are_made());
  }

  ExitCode run(LaunchProgress& progress, const std::function<void(const Verdict&)>& report) {
    const HeldSignals until_the_verdict_is_written;
    for (const PointLauncher& side : sides_) side.prepare_folders();
    ResultFile file(asked_.folder / "verdict.json");
    Journal base(sides_[0].folder() / "journal.jsonl"), fresh(sides_[1].folder() / "journal.jsonl");
    journals_ = {&base, &fresh};
    for (std::size_t side = 0; side < 2; ++side) {
      refuse_other_launches(side);
      sides_[side].refuse_other_variables(*journals_[side]);
    }
    refuse_other_design();
    announce();
    no_verdict({Status::interrupted, "the gate has not ended"});
    file.write(verdict_json(verdict_));
    const ExitCode code = launch_until_clear(progress);
    if (verdict_.status != Status::ok) say_progress("the same command goes on from here");
    file.write(verdict_json(verdict_));
    report(verdict_);
    say_progress(fmt::format("record: {}", file.path().string()));
    return code;
  }

 private:
  /// Refuses builds of unlike types before anything is launched: Debug against Release says nothing
  /// of the source.
  void refuse_unlike_builds() const {
    const Build &base = sides_[0].build(), &fresh = sides_[1].build();
    if (base.type.empty() || fresh.type.empty() || base.type == fresh.type) return;
    refuse_at("--new",
              fmt::format("its build_type is {}, that of --base {}: what the compiler does can "
                          "not be told from the source; build both alike",
                          fresh.type, base.type));
  }

  std::size_t most_pairs() const { return asked_.design.alarm.back().pairs; }

  /// Refuses a folder of another plan or of an earlier build, which cannot be continued.
  void refuse_other_launches(std::size_t side) const {
    for (const JournalEntry& entry : journals_[side]->entries()) {
      const std::string what =
          entry.revision != sides_[side].build().revision
              ? fmt::format("of build {}, not {}", entry.revision, sides_[side].build().revision)
              : "of another plan";
      const auto& points = side == 0 ? asked_.plan.points : asked_.new_plan.points;
      const bool planned = std::ranges::any_of(
          points, [&](const SweepPoint& point) { return point.id == entry.point; });
      if (!planned || entry.revision != sides_[side].build().revision)
        throw ConfigError(fmt::format("{} holds launches {}; choose another folder with --output",
                                      sides_[side].folder().string(), what));
    }
  }

  /// Refuses other rules than before, since rules that are chosen after the launches were looked at
  /// keep no level of significance.
  void refuse_other_design() const {
    const fs::path path = asked_.folder / "verdict.json";
    if (!fs::exists(path)) return;
    const auto design = read_typed_record<Verdict>(path).design;
    if (!design) return;
    const Json then = part_json(*design);
    const Json now = part_json(rules_of(GateMode::sequential, asked_.design));
    for (const auto& [name, value] : now.items())
      if (const Json& before = then.at(name); !before.is_null() && before != value)
        throw ConfigError(fmt::format(
            "{} holds a gate that was begun with {} {}, not {}: its rules can't be changed after "
            "launches were looked at; leave them as they were, or choose another folder with "
            "--output",
            asked_.folder.string(), name, before.dump(), value.dump()));
  }

  void announce() const {
    for (std::size_t side = 0; side < 2; ++side)
      say_progress(fmt::format("{}: {} ({})", kSides[side], sides_[side].build().program.string(),
                               sides_[side].build().revision));
    say_progress(fmt::format("at most {} of {} in {}", counted(most_pairs(), "pair"),
                             counted(asked_.plan.points.size(), "point"), asked_.folder.string()));
    say_progress(how_pairs_are_made());
  }

  std::string how_pairs_are_made() const {
    return interleaved_ ? "the launches of a pair live at the same time and are interleaved"
                        : "the launches of a pair follow each other" + why_launches_;
  }

  /// Returns whether a launch is done, that is, it succeeded. One that failed or was stopped is
  /// measured again.
  bool done(const Couple& couple, std::size_t side) const {
    const JournalEntry* entry =
        journals_[side]->find(sides_[side].entry_of(couple.point, couple.pair));
    return entry && entry->status == "ok";
  }
  bool done(const Couple& couple) const { return done(couple, 0) && done(couple, 1); }

  /// Returns whether a launch of the pair has begun, here or in an earlier call: the look before it
  /// gave no verdict.
  bool is_begun(const Couple& couple) const {
    for (std::size_t side = 0; side < 2; ++side)
      if (journals_[side]->find(sides_[side].entry_of(couple.point, couple.pair))) return true;
    return false;
  }

  ExitCode launch_until_clear(LaunchProgress& progress) {
    progress.expect(static_cast<std::size_t>(
        std::ranges::count_if(couples_, [&](const Couple& couple) { return !done(couple); })));
    const std::size_t points = asked_.plan.points.size();
    for (std::size_t i = 0; i < couples_.size(); ++i) {
      if (i % points == 0 && out_of_time(i / points)) return judge_what_is_there();
      if (!done(couples_[i]))
        if (const auto failure = measure(progress, couples_[i])) return *failure;
      const std::size_t pairs = (i + 1) / points;
      const bool begun = i + 1 < couples_.size() && is_begun(couples_[i + 1]);
      if ((i + 1) % points == 0 && is_look(pairs) && !begun)
        if (const auto verdict = look(pairs)) return *verdict;
    }
    return judge_what_is_there();
  }

  std::optional<ExitCode> measure(LaunchProgress& progress, const Couple& couple) {
    progress.start(asked_.plan.points[couple.point].title(), couple.pair);
    const std::array before{journals_[0]->entries().size(), journals_[1]->entries().size()};
    const double start = steady_seconds();
    const bool stopped = launch(couple);
    std::vector<std::string> outcomes;
    std::optional<std::size_t> failed_side;
    for (std::size_t side = 0; side < 2; ++side) {
      if (journals_[side]->entries().size() == before[side]) continue;
      const JournalEntry& entry = journals_[side]->entries().back();
      outcomes.push_back(
          fmt::format("{} {}", kSides[side], outcome_of(entry, sides_[side].record_of(entry))));
      if (entry.status != "ok") failed_side = side;
    }
    progress.finish(steady_seconds() - start, fmt::format("{}", fmt::join(outcomes, ", ")));
    if (stopped) return no_verdict({Status::interrupted, "stopped from outside"});
    if (!failed_side) return std::nullopt;
    return failed(couple, *failed_side, journals_[*failed_side]->entries().back());
  }

  /// Launches a pair. Returns true where a stop was requested.
  bool launch(const Couple& couple) {
    if (interleaved_)
      return launch_interleaved(asked_.plan, sides_, journals_, couple.point, couple.pair,
                                couple.first);
    for (const std::size_t side : {couple.first, 1 - couple.first}) {
      if (done(couple, side)) continue;
      if (sides_[side].launch(*journals_[side], couple.point, couple.pair)) return true;
      if (!done(couple, side)) return false;
    }
    return false;
  }

  ExitCode failed(const Couple& couple, std::size_t side, const JournalEntry& entry) {
    no_verdict({status_of_launch(entry.failure(), /*stopped=*/false),
                fmt::format("{}, {}, pair {}: {}; see {}", kSides[side],
                            asked_.plan.points[couple.point].title(), couple.pair,
                            entry.reason.empty() ? entry.status : entry.reason,
                            (sides_[side].folder() / "logs").string())});
    return entry.failure();
  }

  /// Returns the seconds that launches have taken, in this call and before.
  double seconds_spent() const {
    double seconds = 0;
    for (const Journal* journal : journals_)
      for (const JournalEntry& entry : journal->entries()) seconds += entry.seconds;
    return interleaved_ ? seconds / 2 : seconds;
  }

  bool out_of_time(std::size_t pairs) const {
    if (!asked_.max_seconds || pairs == 0) return false;
    const double spent = seconds_spent();
    return spent + spent / static_cast<double>(pairs) > *asked_.max_seconds;
  }

  bool is_look(std::size_t pairs) const {
    return std::ranges::any_of(asked_.design.alarm,
                               [&](const SequentialLook& look) { return look.pairs == pairs; });
  }

  /// Judges the first `pairs` pairs: an earlier call that was ended may have left a part of the
  /// next.
  Judgement judge_pairs(std::size_t pairs) {
    sets_ = {read_result_set(kSides[0], sides_[0].folder().string()),
             read_result_set(kSides[1], sides_[1].folder().string())};
    for (ResultSet& set : sets_)
      std::erase_if(set.launches, [&](const MeasuredLaunch& launch) {
        return launch.repeat > static_cast<std::int64_t>(pairs);
      });
    matching_ = match_sets(sets_, varied_keys());
    return judge(sets_, matching_, GateMode::sequential, asked_.design, asked_.allowed_to_fail);
  }

  /// Returns the defaults that the builds do not share, with a sentence each. Of one build, what
  /// differs unasked follows from --new_set.
  std::map<std::string, std::string> defaults_of_builds() const {
    if (sides_[0].build().revision == sides_[1].build().revision) return {};
    return changed_defaults(sets_[0], sets_[1]);
  }

  /// Returns the keys of --new_set that records contain, those that differ because of it (the
  /// digest of another model, the transport of another variable), and those whose default the build
  /// changes.
  std::vector<std::string> varied_keys() const {
    std::set<std::string> known;
    if (!asked_.varied.empty()) {
      std::array<std::map<std::string, std::set<Json>>, 2> values;
      for (std::size_t side = 0; side < 2; ++side)
        for (const MeasuredLaunch& launch : sets_[side].launches)
          for (const auto& [name, value] : launch.keys) values[side][name].insert(value);
      for (const auto& [name, seen] : values[1]) {
        const bool everywhere = std::ranges::all_of(sets_, [&, key = name](const ResultSet& set) {
          return std::ranges::all_of(set.launches, [&](const MeasuredLaunch& launch) {
            return launch.keys.contains(key);
          });
        });
        if ((everywhere || name.starts_with(kVariablePrefix)) && values[0][name] != seen)
          known.insert(name);
      }
    }
    for (const auto& [name, sentence] : defaults_of_builds()) known.insert(name);
    return {known.begin(), known.end()};
  }

  std::optional<ExitCode> look(std::size_t pairs) {
    const Judgement judgement = judge_pairs(pairs);
    const GateDecision& decision = judgement.decision;
    if (decision.verdict != GateVerdict::more_pairs) return conclude(judgement, "verdict");
    const bool first = decision.pairs == 0;
    say_progress(first ? std::string("no verdict yet")
                       : fmt::format("after {} {:+.1f} % slower, p {:.3f}: no verdict yet",
                                     counted(decision.pairs, "pair"), decision.slowdown_percent,
                                     decision.p));
    return std::nullopt;
  }

  /// Judges the launches that there are. The budget is spent, so nothing was shown, whichever look
  /// it was.
  ExitCode judge_what_is_there() {
    const bool any = done(couples_.front());
    if (!any) return no_verdict({Status::timeout, "no pair fits into --max_seconds"});
    Judgement judgement = judge_pairs(most_pairs());
    const bool all = judgement.decision.verdict != GateVerdict::more_pairs;
    if (!all) judgement.decision.verdict = GateVerdict::inconclusive;
    return conclude(judgement, all ? "pairs" : "max_seconds");
  }

  record::GateLaunches launches(const std::string& stopped) const {
    record::GateLaunches made;
    for (const Couple& couple : couples_)
      for (std::size_t side = 0; side < 2; ++side) made.launched += done(couple, side) ? 1 : 0;
    made.most = 2 * couples_.size();
    made.alternate = interleaved_ ? "steps" : "launches";
    made.seconds = seconds_spent();
    made.stopped = stopped;
    return made;
  }

  std::vector<std::string> default_notes() const {
    std::vector<std::string> notes;
    for (const auto& [name, sentence] : defaults_of_builds()) notes.push_back(sentence);
    return notes;
  }

  ExitCode conclude(const Judgement& judgement, const std::string& stopped) {
    const VerdictInput input{sets_,           matching_,
                             asked_.varied,   set_notes(sets_, matching_, asked_.varied),
                             default_notes(), launches(stopped),
                             nullptr};
    verdict_ = make_verdict(input, judgement);
    return exit_code_of(judgement);
  }

  ExitCode no_verdict(const Outcome& outcome) {
    verdict_ = make_failed_verdict(outcome, asked_.design, launches("failure"));
    return exit_code_of(outcome.status);
  }

  const GatedBuilds& asked_;
  std::array<PointLauncher, 2> sides_;
  std::vector<Couple> couples_;
  bool interleaved_ = false;
  std::string why_launches_;
  std::array<Journal*, 2> journals_{};
  std::vector<ResultSet> sets_;
  Matching matching_;
  Verdict verdict_;
};

}  // namespace

ExitCode gate_builds(const GatedBuilds& builds, LaunchProgress& progress,
                     const std::function<void(const Verdict&)>& report) {
  return BuildGate(builds).run(progress, report);
}

void print_gate(const GatedBuilds& builds) { BuildGate(builds).print(); }

}  // namespace scalemark

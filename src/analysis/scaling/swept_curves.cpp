// Makes curves of the launches of a sweep.
#include "analysis/scaling/swept_curves.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <iterator>
#include <map>
#include <tuple>

#include "analysis/compare/match_sets.hpp"
#include "analysis/diagnosis/diagnose.hpp"
#include "analysis/scaling/scaling.hpp"
#include "config/json_text.hpp"
#include "config/keys.hpp"
#include "config/sweep_settings.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "record/read.hpp"
#include "record/run.hpp"
#include "record/write.hpp"
#include "result/warnings.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// Ranks make the points of a curve; which batch follows from them, the scaling mode says.
constexpr std::array kBatches{"batch_size", "global_batch_size"};

bool may_follow_the_ranks(const std::string& name) {
  return name == "ranks_per_node" || name == "cpus_per_rank" ||
         (is_key(name, Trait::varies_with_ranks) &&
          std::ranges::find(kBatches, name) == kBatches.end());
}

/// What was asked for, where the launch tells what came of it: that may change with the ranks.
void put_asked(std::map<std::string, Json>& keys, const record::Settings& config) {
  for (const auto& [name, setting] : config)
    if (is_key(name, Trait::found_by_run)) keys[name] = setting.value;
}

RunResult run_from(const Json& record, const std::filesystem::path& path) {
  try {
    return record_from<RunResult>(record);
  } catch (const RecordFault& fault) {
    throw ResultError(fmt::format("record {}: {}", path.string(), fault.what()));
  }
}

}  // namespace

SweptRun swept_run(const JournalEntry& entry, const Json& record, const std::filesystem::path& path,
                   Resource resource) {
  if (kind_of(record) != "run")
    throw ConfigError(fmt::format(
        "{}: a record of kind {}; a curve of launches is made of records of scalemark run",
        path.string(), kind_of(record)));
  MeasuredLaunch launch = measured_launches(record, path).front();
  SweptRun run;
  run.entry = entry;
  run.path = path;
  run.ranks = launch.ranks;
  run.record = run_from(record, path);
  put_asked(launch.keys, run.record.config);
  add_launch_settings(launch, entry.settings);
  run.communicator = launch.keys["communicator"];
  if (const Json& what = launch.keys["leave_out"]; what.is_string())
    run.left_out = from_string<LeaveOut>(what.get<std::string>()).value_or(LeaveOut::none);
  // The build type stands with all that is told of the build.
  for (const char* name : {"kind", "ranks", "communicator", "build_type"}) launch.keys.erase(name);
  for (const char* name : {"hosts", "transport"})
    if (const auto found = launch.keys.extract(name)) run.achieved[name] = found.mapped();
  for (const auto& [name, value] : launch.keys)
    (may_follow_the_ranks(name) ? run.placed : run.same)[name] = value;
  run.placed["point"] = entry.point;
  run.same["unit"] = launch.unit;
  const Json build = part_json(run.record.build);
  for (const auto& [name, value] : build.items()) run.same["build." + name] = value;
  run.repeat = point_repeat(run.record, "", run.communicator == "none" && run.ranks > 1, resource);
  run.repeat.repeat = entry.repeat;
  run.record.step_seconds = {};
  run.record.loss = {};
  return run;
}

namespace {

using Runs = std::vector<const SweptRun*>;
using KeyValues = std::map<std::string, Json>;

/// Launches that make a curve, the values that tell it from others, and its baselines.
struct CurveRuns {
  KeyValues keys;
  Runs runs, baselines;
};

/// Keys by which curves are named before any others.
constexpr std::array kNamedFirst{"model",      "precision",         "reducer",       "communicator",
                                 "batch_size", "global_batch_size", "build.revision"};
/// Their value alone tells what it is of.
constexpr std::array kSpeakingValues{"model", "precision", "reducer", "communicator"};
constexpr std::size_t kLongestName = 120;

Json value_at(const KeyValues& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? Json() : found->second;
}

std::set<int> ranks_of(const Runs& runs) {
  std::set<int> ranks;
  for (const SweptRun* run : runs) ranks.insert(run->ranks);
  return ranks;
}

bool several_at_a_rank_count(const Runs& runs, const std::string& name) {
  std::map<int, Json> first;
  for (const SweptRun* run : runs)
    if (value_at(run->placed, name) !=
        first.try_emplace(run->ranks, value_at(run->placed, name)).first->second)
      return true;
  return false;
}

/// What may change with the ranks makes curves of its own where one rank count has several of it.
void split_placed(CurveRuns curve, std::vector<CurveRuns>& all) {
  for (const auto& [name, value] : curve.runs.front()->placed) {
    if (name == "point" || !several_at_a_rank_count(curve.runs, name)) continue;
    std::map<Json, CurveRuns> parts;
    for (const SweptRun* run : curve.runs) parts[value_at(run->placed, name)].runs.push_back(run);
    for (const SweptRun* run : curve.baselines)
      if (const auto part = parts.find(value_at(run->placed, name)); part != parts.end())
        part->second.baselines.push_back(run);
    for (auto& [of_part, part] : parts) {
      part.keys = curve.keys;
      part.keys[name] = of_part;
      split_placed(std::move(part), all);
    }
    return;
  }
  all.push_back(std::move(curve));
}

/// One rank communicates with nobody: what was asked of its communicator makes no difference where
/// that is one thing.
const Runs& with_one_rank(const std::map<Json, Runs>& ones, const Json& communicator) {
  static const Runs kNone;
  const auto own = ones.find(ones.size() == 1 ? ones.begin()->first : communicator);
  return own == ones.end() ? kNone : own->second;
}

/// Launches of several ranks without communication or one collective, by what they have in common
/// with those that they are the baselines of: whatever sums gradients has nothing to do in them.
class Baselines {
 public:
  explicit Baselines(const std::vector<SweptRun>& runs) {
    for (const SweptRun& run : runs) {
      if (run.ranks == 1) continue;
      Place& place = places_[without_reducer(run.same)];
      if (run.communicator == "none" || run.left_out != LeaveOut::none)
        place.runs.push_back(&run);
      else
        place.serve = true;
    }
  }

  /// Empty where nothing of these keys communicates: they are curves themselves then.
  Runs of(const KeyValues& keys) const {
    const auto place = places_.find(without_reducer(keys));
    return place != places_.end() && place->second.serve ? place->second.runs : Runs();
  }

 private:
  struct Place {
    Runs runs;
    bool serve = false;
  };
  static KeyValues without_reducer(KeyValues keys) {
    for (const char* name : {"reducer", "leave_out"}) keys.erase(name);
    return keys;
  }
  std::map<KeyValues, Place> places_;
};

/// A curve each communicator.
void split_communicators(const KeyValues& keys, const Runs& runs, const Runs& baselines,
                         std::vector<CurveRuns>& all) {
  std::map<Json, Runs> ones, more;
  for (const SweptRun* run : runs)
    if (run->ranks == 1)
      ones[run->communicator].push_back(run);
    else if (baselines.empty() || run->communicator != "none")
      more[run->communicator].push_back(run);
  if (more.empty() && !ones.empty()) more[ones.begin()->first];
  for (const auto& [communicator, own] : more) {
    CurveRuns curve{keys, own, baselines};
    std::ranges::copy(with_one_rank(ones, communicator), std::back_inserter(curve.runs));
    curve.keys["communicator"] = communicator;
    split_placed(std::move(curve), all);
  }
}

/// In the order of their first launches.
std::vector<CurveRuns> groups_of(const std::vector<SweptRun>& runs) {
  const Baselines baselines(runs);
  std::map<KeyValues, Runs> alike;
  for (const SweptRun& run : runs) alike[run.same].push_back(&run);
  std::vector<CurveRuns> all;
  for (const auto& [keys, own] : alike) {
    const Runs theirs = baselines.of(keys);
    // Those without one collective are no curve of their own where they serve another one.
    if (own.front()->left_out == LeaveOut::none || theirs.empty())
      split_communicators(keys, own, theirs, all);
  }
  for (CurveRuns& curve : all)
    for (Runs* some : {&curve.runs, &curve.baselines})
      std::ranges::stable_sort(
          *some, {}, [](const SweptRun* run) { return std::pair(run->ranks, run->entry.repeat); });
  std::ranges::sort(all, {}, [](const CurveRuns& curve) { return std::ranges::min(curve.runs); });
  return all;
}

std::string words_of(const CurveRuns& curve) {
  return settings_title(curve.runs.front()->entry.settings);
}

/// Launches of which a rank count has one point: those with communication, and by what the others
/// leave out.
std::vector<Runs> alike_but_ranks(const CurveRuns& curve) {
  std::map<LeaveOut, Runs> baselines;
  for (const SweptRun* run : curve.baselines) baselines[run->left_out].push_back(run);
  std::vector<Runs> all{curve.runs};
  for (const auto& [what, runs] : baselines) all.push_back(runs);
  return all;
}

/// Why launches make no curve; empty where they do.
std::string why_none(const CurveRuns& curve) {
  for (const Runs& some : alike_but_ranks(curve)) {
    if (several_at_a_rank_count(some, "point"))
      return fmt::format(
          "{}: points of its rank counts differ in something that no setting of the plan tells (a "
          "plan that was changed between two sweeps into one folder): give each an --output",
          words_of(curve));
    std::map<int, const SweptRun*> first;
    for (const SweptRun* run : some)
      for (const auto& [name, value] : run->achieved)
        if (const Json other =
                value_at(first.try_emplace(run->ranks, run).first->second->achieved, name);
            other != value)
          return fmt::format("{}: launches of {} ranks differ in {} ({}; {})", words_of(curve),
                             run->ranks, name, plain_value(other), plain_value(value));
  }
  if (const auto ranks = ranks_of(curve.runs); ranks.size() < 2)
    return fmt::format("{}: launches of {} alone; a curve takes two rank counts", words_of(curve),
                       counted(static_cast<std::size_t>(*ranks.begin()), "rank"));
  return "";
}

using KeyNames = std::vector<std::string>;

std::vector<Json> values_of(const CurveRuns& curve, const KeyNames& names) {
  std::vector<Json> values;
  for (const std::string& name : names) values.push_back(value_at(curve.keys, name));
  return values;
}

std::size_t told_apart(const std::vector<CurveRuns>& curves, const KeyNames& names) {
  std::set<std::vector<Json>> values;
  for (const CurveRuns& curve : curves) values.insert(values_of(curve, names));
  return values.size();
}

/// Whose values tell all curves apart, without any that tells nothing that those before it do not.
KeyNames telling_keys(const std::vector<CurveRuns>& curves) {
  KeyNames order(kNamedFirst.begin(), kNamedFirst.end());
  for (const CurveRuns& curve : curves)
    for (const auto& [name, value] : curve.keys)
      if (std::ranges::find(order, name) == order.end()) order.push_back(name);
  KeyNames chosen;
  for (const std::string& name : order) {
    KeyNames more = chosen;
    more.push_back(name);
    if (told_apart(curves, more) > told_apart(curves, chosen)) chosen = more;
  }
  return chosen;
}

/// "bf16", "b16", "NCCL_ALGO=Ring", "revision=1e4bd487b6be"; what no file name has is an
/// underscore.
std::string name_part(const std::string& key, const Json& value) {
  std::string text = plain_value(value);
  if (key.ends_with("batch_size") && !key.starts_with("micro"))
    text = "b" + text;
  else if (std::ranges::find(kSpeakingValues, key) == kSpeakingValues.end())
    text = key.substr(key.find('.') == key.npos ? 0 : key.find('.') + 1) + "=" + text;
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._+=,", c)) c = '_';
  return text;
}

void name_them(std::vector<SweptCurve>& curves, const std::vector<CurveRuns>& groups) {
  const KeyNames keys = telling_keys(groups);
  std::set<std::string> taken;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::vector<Json> values = values_of(groups[i], keys);
    KeyNames parts;
    for (std::size_t k = 0; k < keys.size(); ++k) parts.push_back(name_part(keys[k], values[k]));
    std::string name = join(parts, "-").substr(0, kLongestName);
    if (!taken.insert(name).second) taken.insert(name += fmt::format("-{}", i + 1));
    curves[i].name = name;
  }
}

/// That all points of a curve have, but for its ranks.
Json common_settings(const Runs& runs) {
  Json common = Json::object();
  for (const auto& [name, value] : runs.front()->entry.settings.items()) {
    const auto has_it = [&name = name, &value = value](const SweptRun* run) {
      const Json& own = run->entry.settings;
      return own.contains(name) && own[name] == value;
    };
    if (name != "ranks" && std::ranges::all_of(runs, has_it)) common[name] = value;
  }
  return common;
}

}  // namespace

std::set<int> SweptCurve::ranks() const { return ranks_of(runs); }

SweptCurves swept_curves(const std::vector<SweptRun>& runs) {
  SweptCurves made;
  std::vector<CurveRuns> groups;
  for (CurveRuns& group : groups_of(runs)) {
    const std::string why = why_none(group);
    if (why.empty())
      groups.push_back(std::move(group));
    else
      made.left_out.push_back(why);
  }
  for (const CurveRuns& group : groups)
    made.curves.push_back({"", common_settings(group.runs), group.runs, group.baselines});
  name_them(made.curves, groups);
  return made;
}

namespace {

/// What should be there of one build.
struct Expected {
  std::string revision;
  std::int64_t repeats = 0;
  std::vector<PlannedLaunches::Point> points;
};

std::vector<Expected> expected_launches(const std::vector<JournalEntry>& last,
                                        const std::optional<PlannedLaunches>& planned) {
  if (planned) return {{planned->revision, planned->repeats, planned->points}};
  std::vector<Expected> all;
  for (const JournalEntry& entry : last) {
    auto of_build = std::ranges::find(all, entry.revision, &Expected::revision);
    if (of_build == all.end()) of_build = all.insert(all.end(), {entry.revision, 0, {}});
    of_build->repeats = std::max(of_build->repeats, entry.repeat);
    if (std::ranges::find(of_build->points, entry.point, &PlannedLaunches::Point::id) ==
        of_build->points.end())
      of_build->points.push_back({entry.point, entry.settings});
  }
  return all;
}

std::string repeats_text(const std::vector<std::int64_t>& repeats) {
  return fmt::format("repeat{} {}", repeats.size() == 1 ? "" : "s", fmt::join(repeats, ", "));
}

}  // namespace

std::vector<MissingLaunches> missing_launches(const std::vector<JournalEntry>& last,
                                              const std::optional<PlannedLaunches>& planned) {
  std::map<std::tuple<std::string, std::string, std::int64_t>, const JournalEntry*> ended;
  for (const JournalEntry& entry : last)
    ended[{entry.point, entry.revision, entry.repeat}] = &entry;
  std::vector<MissingLaunches> all;
  for (const Expected& build : expected_launches(last, planned))
    for (const auto& point : build.points) {
      std::vector<std::string> words;
      std::vector<std::int64_t> open;
      int failed = 0;
      for (std::int64_t repeat = 1; repeat <= build.repeats; ++repeat) {
        const auto found = ended.find({point.id, build.revision, repeat});
        if (found == ended.end() || found->second->status == "interrupted")
          open.push_back(repeat);
        else if (found->second->status != "ok") {
          words.push_back(fmt::format("repeat {} {} ({})", repeat, found->second->status,
                                      found->second->reason));
          ++failed;
        }
      }
      if (!open.empty()) words.push_back(repeats_text(open) + " not measured yet");
      if (!words.empty())
        all.push_back({point.settings, build.revision,
                       fmt::format("{}: {}", settings_title(point.settings), join(words, ", ")),
                       failed});
    }
  return all;
}

bool belongs_to(const MissingLaunches& missing, const SweptCurve& curve) {
  // A launch without communication is missed as a baseline.
  if (missing.revision != curve.runs.front()->entry.revision) return false;
  for (const auto& [name, value] : curve.settings.items())
    if (name != "communicator" && missing.settings.value(name, Json()) != value) return false;
  return true;
}

namespace {

std::vector<const SweptRun*> all_runs(const SweptCurve& curve) {
  std::vector<const SweptRun*> all = curve.runs;
  all.insert(all.end(), curve.baselines.begin(), curve.baselines.end());
  return all;
}

/// The batch that the scaling mode fixes, of the run; the other one follows from the ranks.
void fix_batch(ResolvedConfig& config, const RunResult& run) {
  config.largest_batch = false;
  config.batch_size.reset();
  config.global_batch_size.reset();
  config.global_batch_tokens.reset();
  if (config.scaling == Scaling::strong)
    config.global_batch_size = *run.global_batch_size;
  else
    config.batch_size = *run.batch_size_per_rank;
}

const Json& per_node(const SweptRun& run) { return setting(run.record.config, "ranks_per_node"); }

Json settings_json(const record::Settings& settings) {
  Json json = Json::object();
  for (const auto& [name, one] : settings) json[name] = part_json(one);
  return json;
}

/// That of the largest run, with the points of the curve and what is asked of it.
LoadedConfig config_of(const SweptCurve& curve, const ResolvedConfig& asked) {
  const SweptRun& largest = *curve.runs.back();
  LoadedConfig loaded = config_from_json(settings_json(largest.record.config), Command::scale,
                                         largest.path.string() + ": /config");
  ResolvedConfig& config = loaded.config;
  fix_batch(config, largest.record);
  const auto ranks = curve.ranks();
  config.ranks.assign(ranks.begin(), ranks.end());
  config.repeats = 1;
  for (const SweptRun* run : curve.runs) {
    config.repeats = std::max(config.repeats, run->entry.repeat);
    if (per_node(*run) != per_node(largest)) config.ranks_per_node.reset();
  }
  config.baseline = !curve.baselines.empty();
  config.repeat_unit = RepeatUnit::launch;
  config.resource = asked.resource;
  config.solution_steps = asked.solution_steps;
  config.base_solution_steps = asked.base_solution_steps;
  config.from = asked.from;
  config.output = asked.output;
  config.json = asked.json;
  return loaded;
}

/// Where it will lie; empty without a file.
std::string path_beside(const std::filesystem::path& run,
                        const std::optional<std::string>& output) {
  if (!output) return "";
  const auto folder = std::filesystem::absolute(*output).parent_path();
  return std::filesystem::absolute(run).lexically_proximate(folder).lexically_normal().string();
}

std::vector<PointRuns> points_of(const SweptCurve& curve, const ResolvedConfig& asked) {
  std::vector<PointRuns> points;
  for (const int ranks : curve.ranks()) points.push_back({ranks, {}, {}});
  const auto add = [&](const SweptRun& run, LeaveOut left_out) {
    const auto point = std::ranges::find(points, run.ranks, &PointRuns::ranks);
    if (point == points.end()) return;  // a baseline of no point
    PointRepeat repeat = run.repeat;
    repeat.path = known_text(path_beside(run.path, asked.output));
    point->of(repeat.baseline, left_out).push_back(std::move(repeat));
  };
  for (const SweptRun* run : curve.runs) add(*run, LeaveOut::none);
  for (const SweptRun* run : curve.baselines) add(*run, run->left_out);
  return points;
}

/// "cpu_model: A (n0), B (n1)": efficiency compares unlike machines then.
std::vector<std::string> unlike_machines(const SweptCurve& curve) {
  std::vector<std::string> sentences;
  std::map<std::string, std::set<Json>> values;
  for (const SweptRun* run : all_runs(curve)) {
    const Json machine = machine_of(run->record.system);
    for (const auto& [name, value] : machine.items()) values[name].emplace(value);
  }
  for (const auto& [name, several] : values) {
    if (several.size() < 2) continue;
    std::vector<std::string> words;
    for (const Json& value : several) words.push_back(plain_value(value));
    sentences.push_back(
        fmt::format("launches ran on unlike machines: {} is {}", name, join(words, "; ")));
  }
  return sentences;
}

std::set<std::string> hosts_of(const RunResult& run) {
  std::set<std::string> hosts;
  for (const record::RunRank& rank : run.ranks) hosts.insert(rank.host);
  return hosts;
}

/// Says where the launches of a curve have no host in common, so that the hosts may differ where
/// the rank count is thought to.
std::string unlike_hosts(const SweptCurve& curve) {
  const auto runs = all_runs(curve);
  std::set<std::string> all, shared = hosts_of(runs.front()->record);
  for (const SweptRun* run : runs) {
    const auto hosts = hosts_of(run->record);
    all.insert(hosts.begin(), hosts.end());
    std::erase_if(shared, [&](const std::string& host) { return !hosts.contains(host); });
  }
  if (!shared.empty()) return "";
  return fmt::format("launches ran on different hosts ({}): what sets these apart reads as scaling",
                     fmt::join(all, ", "));
}

/// Says where all launches of one rank count were started a day or more after all of another.
std::string unlike_days(const SweptCurve& curve) {
  constexpr double kDay = 24 * 60 * 60;
  std::map<int, std::vector<std::string>> starts;  // [ranks]
  for (const SweptRun* run : curve.runs)
    starts[run->ranks].push_back(run->record.started_at.value_or(run->record.created_at));
  std::string end = "9", start;
  for (const auto& [ranks, times] : starts) {
    end = std::min(end, *std::ranges::max_element(times));
    start = std::max(start, *std::ranges::min_element(times));
  }
  if (!(utc_seconds(start) - utc_seconds(end) >= kDay)) return "";
  return fmt::format(
      "launches of the rank counts lie apart in time ({} to {}): what the machine did in between "
      "reads as scaling",
      end, start);
}

/// Where a rank computes with other threads at another rank count, as it does with an equal share
/// of a host's cores.
std::string unequal_threads(const SweptCurve& curve) {
  std::map<int, std::set<std::int64_t>> threads;  // [ranks]
  for (const SweptRun* run : curve.runs)
    for (const record::RunRank& rank : run->record.ranks) threads[run->ranks].insert(rank.threads);
  std::vector<std::string> words;
  for (const auto& [ranks, several] : threads)
    words.push_back(fmt::format("{} at {}", fmt::join(several, " or "),
                                counted(static_cast<std::size_t>(ranks), "rank")));
  const bool alike = std::ranges::all_of(
      threads, [&](const auto& one) { return one.second == threads.begin()->second; });
  if (alike) return "";
  return fmt::format(
      "threads of a rank change along the curve: {}; for equal ones set cpus_per_rank in the plan, "
      "or count --resource core",
      join(words, ", "));
}

/// What the largest run and the sweep say of the whole.
ScalingCurve start_curve(const SweptCurve& curve, const LoadedConfig& config) {
  ScalingCurve made;
  const RunResult& largest = curve.runs.back()->record;
  set_envelope(made, "scaling", {});
  made.build = largest.build;
  made.warnings = config.warnings;
  made.repeat_unit = RepeatUnit::launch;
  for (const auto& [name, value] : curve.settings.items())
    made.settings.emplace_back(name, value.is_null() ? Known<Json>() : Known<Json>(value));
  made.config = settings_of(config);
  made.preflight = largest.preflight;
  made.system = largest.system;
  made.environment = largest.environment;
  return made;
}

}  // namespace

ScalingCurve make_swept_record(const SweptCurve& curve, const ResolvedConfig& asked) {
  NoiseSummary noise;
  std::vector<diagnosis::RunEvidence> runs;
  for (const SweptRun* run : all_runs(curve)) noise.add(run->record);
  for (const SweptRun* run : curve.runs)
    runs.push_back(diagnosis::run_evidence(record_json(run->record)));
  const LoadedConfig config = config_of(curve, asked);
  ScalingCurve made = start_curve(curve, config);
  set_points(made, config.config, *curve.ranks().rbegin(), points_of(curve, asked), noise);
  for (const std::string& sentence : unlike_machines(curve)) made.warnings.push_back(sentence);
  for (const auto say : {unlike_hosts, unlike_days, unequal_threads})
    made.warnings.push_back(say(curve));
  std::erase(made.warnings, "");
  diagnosis::add_findings(made, runs);
  return made;
}

}  // namespace scalemark

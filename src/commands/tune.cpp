// Implements `scalemark tune`, which finds the fastest settings of a job on this machine by rounds
// of launches in which the candidates that can't be the fastest drop out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/point_test.hpp"
#include "commands/shared_flags.hpp"
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/text.hpp"
#include "launch/launch_builder.hpp"
#include "launch/rank_job.hpp"
#include "launch/sweep.hpp"
#include "measure/selection.hpp"
#include "record/write.hpp"
#include "report/console.hpp"
#include "report/shown_text.hpp"
#include "report/sweep_table.hpp"
#include "report/text_table.hpp"
#include "result/records.hpp"
#include "result/sweep_folder.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

constexpr double kStandardWithin = 2, kStandardChance = 0.95, kStandardSeconds = 5;
constexpr std::int64_t kStandardRounds = 10, kLeastRounds = 2, kWarmup = 2;
constexpr std::int64_t kAnyNumberOfBatches = 1'000'000'000;
constexpr std::size_t kMostShown = 20;

/// Keys that mean nothing to one rank alone.
constexpr std::array kOfSeveralRanks{"overlap", "bucket_mb", "first_bucket_mb", "wire_dtype",
                                     "reducer"};
/// Keys that fix the batch of a rank.
constexpr std::array kOfBatch{"batch_size", "global_batch_size", "global_batch_tokens",
                              "micro_batch_size", "scaling"};

// What is asked for.

struct TuneRequest {
  SweepPlan plan;
  Json fixed;  ///< settings of all candidates that the job keeps, for the configuration
  std::string output;
  double within = 0, chance = 0;
  std::size_t rounds = 0;
  std::optional<double> budget_seconds;
  bool dry_run = false, json = false;
};

std::vector<FlagHelp> tune_flags() {
  return {
      {.name = "output",
       .value_name = "DIR",
       .text = "folder of the launches, and of tuned.json",
       .often_used = true},
      {.name = "try",
       .value_name = "KEY=VALUE,...",
       .text = "values of a setting to try: a key, ranks, cpus_per_rank, binding",
       .standard = "ranks, batch_size, and of several ranks overlap and bucket_mb",
       .often_used = true,
       .repeated = true},
      {.name = "within",
       .value_name = "X",
       .text = "percent by which others may be faster than what is picked",
       .standard = "2",
       .often_used = true},
      {.name = "chance",
       .value_name = "P",
       .text = "that none is faster by more; rounds end when it is reached",
       .standard = "0.95",
       .often_used = true},
      {.name = "rounds",
       .value_name = "N",
       .text = "most launches of a candidate",
       .standard = "10",
       .often_used = true},
      {.name = "seconds",
       .value_name = "S",
       .text = "measured steps of a launch, unless --num_batches is given",
       .standard = "5"},
      {.name = "budget_seconds", .value_name = "S", .text = "no round begins that would end later"},
      {.name = "launch_timeout",
       .value_name = "S",
       .text = "that a launch may take, set-up included",
       .standard = "1800"},
      {.name = "dry_run", .text = "print the candidates, start nothing", .often_used = true},
      {.name = "json", .text = "the table of the end as JSON on stdout, nothing else"}};
}

CommandHelp help_of_own() { return {"tune", "", {}, {{"Tune", tune_flags()}}, {}, ""}; }

/// The words of the command line: those of own flags and of the plan, and those of the job.
struct TuneWords {
  std::vector<std::string> own, job;
};

TuneWords split_words(const std::vector<std::string>& arguments) {
  const std::vector<FlagHelp> flags = tune_flags();
  const auto is_own = [&](const std::string& name) {
    return name.empty() || std::ranges::find(flags, name, &FlagHelp::name) != flags.end();
  };
  const TakesValue own_takes = takes_value_in(help_of_own());
  TuneWords words;
  for (const GivenWord& given : read_words(arguments, [&](const std::string& name) {
         return is_own(name) ? own_takes(name) : key_takes_value(name);
       })) {
    auto& into = is_own(given.name) ? words.own : words.job;
    into.insert(into.end(), given.written.begin(), given.written.end());
  }
  return words;
}

/// Settings to try, in the order in which they were given.
using Axes = std::vector<std::pair<std::string, std::vector<Json>>>;

Json read_tried(const std::string& written, const std::string& text, const std::string& place) {
  if (!is_launch_setting(key_name(written)) && find_written_key(written))
    return read_written(written, text, place).value;
  const bool whole = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  return whole && text.size() < 10 ? Json(std::stoll(text)) : Json(text);
}

Axes read_axes(const FlagReader& flags) {
  Axes axes;
  for (const std::string& text : flags.texts("try")) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos || equals == 0)
      refuse_at("--try", quote(text) + " is no KEY=VALUE,VALUE");
    const std::string name = key_name(text.substr(0, equals)), place = "--try " + name;
    if (std::ranges::find(axes, name, &Axes::value_type::first) != axes.end())
      refuse_at(place, "given twice; all values of a setting stand in one --try");
    auto& values = axes.emplace_back(name, std::vector<Json>()).second;
    for (const std::string& value : split_list(text.substr(equals + 1), place))
      values.push_back(read_tried(canonical_name(text.substr(0, equals)), value, place));
  }
  return axes;
}

/// Returns what the command line, variables and files decide of a run, but for ranks and for keys
/// that the flags of this command are called like.
Json decided_settings(const LoadedConfig& loaded) {
  const std::vector<FlagHelp> flags = tune_flags();
  Json settings = Json::object();
  const Json all = config_to_json(loaded);
  for (const auto& [key, origin] : loaded.origins)
    if (origin != Origin::standard && key != "ranks" && all.contains(key) &&
        find_key(key)->commands.contains(Command::run) &&
        std::ranges::find(flags, key, &FlagHelp::name) == flags.end())
      settings[key] = all.at(key).at("value");
  return settings;
}

/// Takes the keys of a launch out of the settings: in a plan they stand beside them.
Json launch_members(Json& settings) {
  Json members = Json::object();
  for (const char* const key : kLaunchKeys)
    if (settings.contains(key)) {
      members[key] = settings.at(key);
      settings.erase(key);
    }
  return members;
}

/// Adds the axes that nobody has decided: ranks, batch, and what several ranks communicate by.
void add_standard_axes(Axes& axes, const LoadedConfig& loaded, const Json& decided) {
  const auto is_open = [&](const std::string& key) {
    return !decided.contains(key) &&
           std::ranges::find(axes, key, &Axes::value_type::first) == axes.end();
  };
  const ResolvedConfig& config = loaded.config;
  const Resources resources = find_resources(config.device, config.hostfile, process_environment());
  if (is_open("ranks")) {
    std::vector<Json> ranks;
    for (const std::int64_t count : plan_ranks(config, resources).ranks) ranks.emplace_back(count);
    axes.emplace_back("ranks", ranks);
  }
  if (std::ranges::all_of(kOfBatch, is_open)) {
    std::vector<Json> batches;
    const std::int64_t standard = plan_batch(config, 1).batch_size_per_rank;
    for (const std::int64_t batch : {standard / 4, standard / 2, standard, 2 * standard})
      if (batch > 0) batches.emplace_back(batch);
    axes.emplace_back("batch_size", batches);
  }
  if (is_open("overlap")) axes.emplace_back("overlap", std::vector<Json>{"backward", "step"});
  if (is_open("bucket_mb")) {
    const double standard = default_bucket_mb(resources.gpus_per_host > 0);
    axes.emplace_back("bucket_mb", std::vector<Json>{standard / 4, standard, 4 * standard});
  }
}

bool is_one_rank(const Json& point, const Json& decided) {
  return point.value("ranks", decided.value("ranks", Json(1))) == Json(1);
}

/// Returns the points of a plan: axes crossed, but for one rank without those of several ranks.
Json crossed(const Axes& axes, const Json& decided) {
  std::vector<Json> points{Json::object()};
  const auto cross = [&](bool of_several) {
    for (const auto& [name, values] : axes) {
      if ((std::ranges::find(kOfSeveralRanks, name) != kOfSeveralRanks.end()) != of_several)
        continue;
      std::vector<Json> longer;
      for (const Json& point : points) {
        if (of_several && is_one_rank(point, decided)) {
          longer.push_back(point);
          continue;
        }
        for (const Json& value : values) longer.emplace_back(point)[name] = value;
      }
      points = std::move(longer);
    }
  };
  cross(/*of_several=*/false);
  cross(/*of_several=*/true);
  return points;
}

/// Reads the plan of a file, or makes one from the flags of a job.
Json read_candidates(const FlagReader& flags, const std::vector<std::string>& plans,
                     const std::vector<std::string>& job, TuneRequest& request) {
  if (plans.size() > 1) throw ConfigError("scalemark tune takes one plan, or flags of a run");
  if (!plans.empty()) {
    if (!job.empty() || flags.has("try") || flags.has("seconds"))
      throw ConfigError(
          "scalemark tune: a plan has all settings; leave out the flags of a run, --try and "
          "--seconds");
    const Json plan = read_json_object(plans.front(), "plan");
    request.fixed = plan.value("settings", Json::object());
    return plan;
  }
  const LoadedConfig loaded = load_config(Command::run, job, environment_lines());
  for (const std::string& warning : loaded.warnings) warn(warning);
  Json settings = request.fixed = decided_settings(loaded);
  if (!settings.contains("num_batches")) {
    settings["num_batches"] = kAnyNumberOfBatches;
    settings["max_seconds"] = flags.number("seconds", 0.1, 1e6).value_or(kStandardSeconds);
  }
  if (!settings.contains("num_warmup_batches")) settings["num_warmup_batches"] = kWarmup;
  if (!settings.contains("roofline")) settings["roofline"] = false;
  Axes axes = read_axes(flags);
  for (const auto& [name, values] : axes)
    if (settings.contains(name))
      refuse_at("--try " + name, "the flags decide it already; leave out one of both");
  if (!loaded.config.ranks.empty()) {
    std::vector<Json> ranks(loaded.config.ranks.begin(), loaded.config.ranks.end());
    axes.emplace_back("ranks", ranks);
  }
  add_standard_axes(axes, loaded, settings);
  Json plan = launch_members(settings);
  plan["settings"] = settings;
  plan["points"] = crossed(axes, settings);
  return plan;
}

TuneRequest read_tuning(const CommandLine& line) {
  const TuneWords words = split_words(line.arguments);
  const FlagReader flags(help_of_own(), "plan", words.own);
  TuneRequest request;
  request.within = flags.number("within", 0.01, 50).value_or(kStandardWithin) / 100;
  request.chance = flags.number("chance", 0.5, 0.9999).value_or(kStandardChance);
  request.rounds = static_cast<std::size_t>(
      flags.whole("rounds", kLeastRounds, 10'000).value_or(kStandardRounds));
  request.budget_seconds = flags.positive("budget_seconds");
  request.dry_run = flags.has("dry_run");
  request.json = flags.has("json");
  if (!flags.has("output") && !request.dry_run)
    throw ConfigError("scalemark tune: --output DIR is missing: the folder of its launches");
  request.output = flags.text("output").value_or("tune");
  const std::vector<std::string> plans = flags.positionals("plan");
  const Json plan = read_candidates(flags, plans, words.job, request);
  request.plan = parse_sweep_plan(plan, plans.empty() ? "scalemark tune" : plans.front(),
                                  environment_lines(), cores_per_host());
  request.plan.launch_timeout =
      flags.positive("launch_timeout").value_or(request.plan.launch_timeout);
  refuse_commands(request.plan, "scalemark tune");
  if (request.plan.points.size() < 2)
    throw ConfigError(
        "scalemark tune: one candidate is no choice; try more by --try KEY=VALUE,...");
  return request;
}

// The rounds, and what they have shown.

struct Candidate {
  std::vector<double> log_rates;  ///< of rounds 1, 2, ...
  std::string unit;
  bool failed = false;
  std::optional<std::size_t> left_out_after;  ///< round
};

struct Tuning {
  std::vector<Candidate> candidates;
  Selection selection;
  std::size_t rounds = 0;
  ExitCode code = ExitCode::ok;
  bool stopped = false;
};

/// Hands on the part of a plan that is still measured.
SweepPlan part_of(const SweepPlan& plan, const std::vector<std::size_t>& alive,
                  std::size_t rounds) {
  SweepPlan part = plan;
  part.points.clear();
  for (const std::size_t i : alive) part.points.push_back(plan.points[i]);
  for (std::size_t i = 0; i < part.points.size(); ++i) part.points[i].group = i;
  part.repeats = static_cast<std::int64_t>(rounds);
  part.standard.reset();
  return part;
}

double log_rate(const MeasuredLaunch& launch) {
  return std::log(repeats_of({&launch}, "throughput", /*rounds=*/false).front().value);
}

double seconds_spent(const std::string& folder) {
  double seconds = 0;
  for (const JournalEntry& entry : read_journal(journal_of(folder))) seconds += entry.seconds;
  return seconds;
}

class Tuner {
 public:
  explicit Tuner(const TuneRequest& request)
      : request_(request), alive_(request.plan.points.size()) {
    found_.candidates.resize(alive_.size());
    std::iota(alive_.begin(), alive_.end(), std::size_t{0});
  }

  Tuning run() {
    while (found_.rounds < request_.rounds && !alive_.empty() && fits_into_budget()) {
      ++found_.rounds;
      measure_round();
      if (found_.stopped || alive_.empty()) break;
      std::vector<std::vector<double>> rates;
      for (const Candidate& candidate : found_.candidates) rates.push_back(candidate.log_rates);
      found_.selection = select_fastest(rates, std::log1p(request_.within));
      say_progress(fmt::format("after round {}: {}, {}", found_.rounds,
                               shown(request_.plan.points[found_.selection.best].title()),
                               chance_words()));
      if (found_.rounds >= kLeastRounds && found_.selection.chance >= request_.chance) break;
      leave_out(hopeless(found_.selection, alive_, request_.chance));
    }
    return found_;
  }

 private:
  void measure_round() {
    const SweepPlan part = part_of(request_.plan, alive_, found_.rounds);
    SweepProgress progress;
    const SweepEnd end = run_sweep(part, request_.output, {}, progress);
    found_.stopped = end.stopped;
    std::vector<std::size_t> well;
    for (std::size_t k = 0; k < alive_.size(); ++k) {
      Candidate& candidate = found_.candidates[alive_[k]];
      candidate.log_rates.clear();
      for (const MeasuredLaunch& launch : end.results[k].launches) {
        candidate.log_rates.push_back(log_rate(launch));
        candidate.unit = launch.unit;
      }
      candidate.failed = end.results[k].failed > 0;
      if (candidate.failed) {
        found_.code = most_severe(found_.code, end.code);
        candidate.left_out_after = found_.rounds;
        candidate.log_rates.clear();
      } else {
        well.push_back(alive_[k]);
      }
    }
    alive_ = well;
  }

  void leave_out(const std::vector<std::size_t>& hopeless) {
    for (const std::size_t i : hopeless) {
      found_.candidates[i].left_out_after = found_.rounds;
      std::erase(alive_, i);
    }
  }

  bool fits_into_budget() const {
    if (!request_.budget_seconds || found_.rounds == 0) return true;
    std::size_t launches = 0;
    for (const Candidate& candidate : found_.candidates) launches += candidate.log_rates.size();
    const double spent = seconds_spent(request_.output);
    const double next = spent / static_cast<double>(std::max<std::size_t>(launches, 1)) *
                        static_cast<double>(alive_.size());
    return spent + next <= *request_.budget_seconds;
  }

  std::string chance_words() const {
    if (found_.rounds < kLeastRounds) return "the deviation of launches is not known yet";
    return fmt::format("none more than {:g} % faster with a chance of {:.1f} %",
                       100 * request_.within, 100 * found_.selection.chance);
  }

  const TuneRequest& request_;
  std::vector<std::size_t> alive_;
  Tuning found_;
};

// What is printed and written.

struct TunedPoint {
  std::string point;
  std::size_t launches = 0;
  bool failed = false;
  std::optional<double> throughput{};  ///< without the differences of rounds
  std::optional<double> of_fastest{};
  std::optional<double> chance_faster{};  ///< than the picked one, by more than `within`
  std::optional<std::size_t> left_out_after;
  static void describe(Fields& fields) {
    fields.add("point", &TunedPoint::point);
    fields.add("launches", &TunedPoint::launches);
    fields.add("failed", &TunedPoint::failed);
    fields.add("throughput", &TunedPoint::throughput);
    fields.add("of_fastest", &TunedPoint::of_fastest);
    fields.add("chance_faster", &TunedPoint::chance_faster);
    fields.add("left_out_after", &TunedPoint::left_out_after);
  }
};

struct TuneSummary {
  std::vector<TunedPoint> points;  ///< the fastest first
  std::string picked, unit;
  double within = 0, chance = 0, chance_asked = 0;
  std::size_t launches = 0, all_launches = 0;  ///< all: each candidate as often as the picked one
  double seconds = 0, all_seconds = 0;
  std::string config;
  static void describe(Fields& fields) {
    fields.add("points", &TuneSummary::points);
    fields.add("picked", &TuneSummary::picked);
    fields.add("unit", &TuneSummary::unit);
    fields.add("within", &TuneSummary::within);
    fields.add("chance", &TuneSummary::chance);
    fields.add("chance_asked", &TuneSummary::chance_asked);
    fields.add("launches", &TuneSummary::launches);
    fields.add("all_launches", &TuneSummary::all_launches);
    fields.add("seconds", &TuneSummary::seconds);
    fields.add("all_seconds", &TuneSummary::all_seconds);
    fields.add("config", &TuneSummary::config);
  }
};

/// Adds what was spent, and what all candidates would have cost as often as the picked one.
void add_costs(TuneSummary& summary, const TuneRequest& request, const Tuning& tuning) {
  std::map<std::string, std::pair<double, std::size_t>> of_point;  // seconds, launches
  for (const JournalEntry& entry : read_journal(journal_of(request.output))) {
    auto& [seconds, launches] = of_point[entry.point];
    seconds += entry.seconds;
    ++launches;
  }
  const auto often = tuning.candidates[tuning.selection.best].log_rates.size();
  for (const SweepPoint& point : request.plan.points) {
    const auto& [seconds, launches] = of_point[point.id];
    summary.seconds += seconds;
    summary.launches += launches;
    summary.all_launches += often;
    if (launches > 0)
      summary.all_seconds += seconds / static_cast<double>(launches) * static_cast<double>(often);
  }
}

TuneSummary summary_of(const TuneRequest& request, const Tuning& tuning) {
  const Selection& selection = tuning.selection;
  TuneSummary summary;
  summary.picked = request.plan.points[selection.best].title();
  summary.unit = tuning.candidates[selection.best].unit;
  summary.within = request.within;
  summary.chance = selection.chance;
  summary.chance_asked = request.chance;
  summary.config = tuned_file(request.output).string();
  std::vector<std::size_t> order(tuning.candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::size_t i) { return selection.levels[i]; });
  for (const std::size_t i : order) {
    const Candidate& candidate = tuning.candidates[i];
    TunedPoint point{.point = request.plan.points[i].title(),
                     .launches = candidate.log_rates.size(),
                     .failed = candidate.failed,
                     .left_out_after = candidate.left_out_after};
    if (!candidate.log_rates.empty()) {
      point.throughput = std::exp(selection.levels[i]);
      point.of_fastest = std::exp(selection.levels[i] - selection.levels[selection.best]);
      if (i != selection.best) point.chance_faster = selection.better[i];
    }
    summary.points.push_back(std::move(point));
  }
  add_costs(summary, request, tuning);
  return summary;
}

std::string tune_table(const TuneSummary& summary) {
  std::vector<std::vector<std::string>> rows{
      {"candidate", "launches", summary.unit, "of the picked", "may be faster", "left out"}};
  const auto words = [](const auto& value, const char* form) {
    return value ? fmt::format(fmt::runtime(form), *value) : std::string("-");
  };
  for (const TunedPoint& point : summary.points) {
    if (rows.size() > kMostShown) break;
    const auto percent = [](const std::optional<double>& share) {
      return share ? std::optional(100 * *share) : std::nullopt;
    };
    rows.push_back({shown(point.point), point.failed ? "failed" : std::to_string(point.launches),
                    words(point.throughput, "{:.4g}"), words(percent(point.of_fastest), "{:.1f} %"),
                    words(percent(point.chance_faster), "{:.1f} %"),
                    words(point.left_out_after, "after round {}")});
  }
  std::string text = text_table(rows);
  if (summary.points.size() >= rows.size())
    text += fmt::format("and {} slower ones (--json has all)\n",
                        summary.points.size() - rows.size() + 1);
  text += fmt::format(
      "picked: {}\nchance that none is more than {:g} % faster: at least {:.1f} %{}\n",
      shown(summary.picked), 100 * summary.within, 100 * summary.chance,
      summary.chance >= summary.chance_asked
          ? ""
          : fmt::format(" (asked for: {:g} %; more --rounds)", 100 * summary.chance_asked));
  text += fmt::format("cost: {}, {}; all candidates as often as the picked one: {}, {}\n",
                      counted(summary.launches, "launch"), format_duration(summary.seconds),
                      counted(summary.all_launches, "launch"), about_duration(summary.all_seconds));
  return text + fmt::format("settings: {}; scalemark run --config {}\n", shown(summary.config),
                            shown(summary.config));
}

/// Writes the settings of the picked candidate as a configuration. Variables and what says how
/// ranks are bound is no key of one.
void write_config(const TuneRequest& request, const Tuning& tuning) {
  Json config{{"description", fmt::format("Picked by scalemark tune of {} candidates, after {} "
                                          "rounds.",
                                          request.plan.points.size(), tuning.rounds)}};
  std::vector<std::string> untold;
  Json settings = request.fixed;
  settings.update(request.plan.points[tuning.selection.best].settings);
  for (const auto& [name, value] : settings.items())
    if (name == "ranks")
      config[name] = Json::array({value});
    else if (find_key(name))
      config[name] = value;
    else
      untold.push_back(fmt::format("{}={}", name, value.dump()));
  if (!untold.empty())
    warn(fmt::format("{} cannot hold what is no key of a run: {}",
                     tuned_file(request.output).string(), fmt::join(untold, " ")));
  ResultFile(tuned_file(request.output)).write(config);
}

}  // namespace

CommandHelp commands::tune_help(const CommandLine&) {
  return {"tune",
          "The fastest ranks, batch and communication of a job on this machine, by rounds of "
          "launches from which hopeless candidates drop out.",
          {"[--flag value]... --output DIR", "PLAN.json --output DIR"},
          with_job_flags({"Tune", tune_flags()}, Command::run, {"overwrite"}),  // of a record
          {"scalemark tune --model resnet18 --dry_run",
           "scalemark tune --model resnet18 --precision bf16 --output results/tuned",
           "scalemark tune --model bert_base --try batch_size=4,8,16 --output results/bert"},
          "From the second group on these are the flags of scalemark run, the same for all "
          "candidates. A plan is that of scalemark sweep (docs/sweep.md).\n"
          "Exit codes: 0 picked, 2 usage, 4 to 7 every candidate failed or it was stopped, 6 "
          "results not writable.\n"};
}

ExitCode commands::tune(const CommandLine& line) {
  refuse_ranks("scalemark tune launches its ranks itself");
  const TuneRequest request = read_tuning(line);
  if (request.dry_run) {
    for (const SweepPoint& point : request.plan.points) print_data(point.title() + "\n");
    say_progress(fmt::format("{}, at most {} of each",
                             counted(request.plan.points.size(), "candidate"),
                             counted(request.rounds, "launch")));
    return ExitCode::ok;
  }
  const HeldSignals until_the_table_is_printed;
  const Tuning tuning = Tuner(request).run();
  if (tuning.stopped) return ExitCode::failed;  // run_sweep() has said so
  if (tuning.selection.levels.empty()) {
    say_error(fmt::format("every candidate failed; see {}/logs", request.output));
    return most_severe(tuning.code, ExitCode::failed);
  }
  write_config(request, tuning);
  const TuneSummary summary = summary_of(request, tuning);
  if (request.json)
    print_data(record_text(part_json(summary)));
  else
    print_view(tune_table(summary));
  return ExitCode::ok;
}

}  // namespace scalemark

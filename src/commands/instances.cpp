// Implements `scalemark instances`, whose own flags come before those of the job.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "commands/requests.hpp"
#include "commands/shared_flags.hpp"
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/text.hpp"
#include "config/value_syntax.hpp"
#include "report/sweep_table.hpp"
#include "report/tables.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

const std::vector<std::string> kOwnFlags{"job",     "instances",      "slots", "repeats",
                                         "dry_run", "launch_timeout", "inject"};

FlagGroup own_flags() {
  return {
      "Instances",
      {{.name = "job",
        .value_name = "NAME",
        .text = "what an instance is",
        .standard = "run",
        .words = {"run", "infer"},
        .often_used = true},
       {.name = "instances",
        .value_name = "N,N,...|all|auto",
        .text = "how many at once; ascending numbers, all: 1 to as many as there are slots, or "
                "auto: powers of two and the number of slots",
        .standard = "all",
        .often_used = true},
       {.name = "slots",
        .value_name = "PLACE;PLACE;...",
        .text = "where they run; one item each, between semicolons: CPUs (0-3,8), the UUID of a "
                "GPU or MIG slice, perhaps with its CPUs (UUID@0-3), or gpu or mig for all of "
                "them; several places of one job are joined by +, those of other hosts begin with "
                "a name (n1:0-3)",
        .standard = "all GPUs and slices, else equal shares of the cores, one core each without "
                    "--instances",
        .often_used = true},
       {.name = "repeats",
        .value_name = "N",
        .text = "launches of every point; and of every slot alone, in random order",
        .standard = "3",
        .often_used = true},
       {.name = "launch_timeout",
        .value_name = "SECONDS",
        .text = "that a launch may take, set-up included",
        .standard = "1800"},
       {.name = "dry_run", .text = "print slots and commands, start nothing", .often_used = true}}};
}

/// The words of the command line: own flags by name, and the rest unchanged.
struct Words {
  std::map<std::string, std::string> own;
  std::vector<std::string> job;

  /// The value of an own flag that was given.
  std::optional<std::string> given(const char* flag) const {
    const auto found = own.find(flag);
    return found == own.end() ? std::nullopt : std::optional(found->second);
  }
};

/// Refuses a misspelt flag of `instances`, which would otherwise be refused as one of the job.
void refuse_misspelt(const std::string& name) {
  const std::array<std::string_view, 5> others{"config", "set", "help", "use_fp16", "again"};
  if (find_written_key(name) || std::ranges::find(others, name) != others.end() ||
      name.starts_with("no"))
    return;
  if (const std::string near = did_you_mean(name, kOwnFlags, "--"); !near.empty())
    throw ConfigError(fmt::format("unknown flag {}{} (scalemark instances --help lists them)",
                                  quote("--" + name), near));
}

Words split(std::span<const std::string> arguments) {
  const auto is_own = [](const std::string& name) {
    return std::ranges::find(kOwnFlags, name) != kOwnFlags.end();
  };
  Words words;
  for (const GivenWord& given : read_words(arguments, [&](const std::string& name) {
         return name != "dry_run" && (is_own(name) || key_takes_value(name));
       })) {
    if (!is_own(given.name)) {
      if (!given.name.empty()) refuse_misspelt(given.name);
      words.job.insert(words.job.end(), given.written.begin(), given.written.end());
      continue;
    }
    if (!given.value && given.name != "dry_run")
      refuse_at("--" + given.name, "the value is missing");
    words.own[given.name] = given.value.value_or("true");
  }
  return words;
}

Command read_job(const Words& words) {
  const std::string job = words.given("job").value_or("run");
  if (job == "run") return Command::run;
  if (job == "infer") return Command::infer;
  refuse_at("--job", fmt::format("{} is no job{} (legal: run, infer)", quote(job),
                                 did_you_mean(job, {"run", "infer"})));
}

/// Reads a flag as a key of this name would be read. Null: not given.
Json read_as(const char* key, const Words& words, const char* flag) {
  const auto given = words.given(flag);
  return given ? Json(parse_value(*find_key(key), *given, fmt::format("--{}", flag))) : Json();
}

std::vector<std::int64_t> up_to(std::int64_t largest) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(largest));
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

/// Finds the slots, and with them the numbers of instances that are measured.
void place(InstancesPlan& plan, const Words& words) {
  const std::string text = words.given("instances").value_or("all");
  const bool listed = text != "all" && text != "auto";
  if (listed)
    plan.instances = read_as("ranks", words, "instances").get<std::vector<std::int64_t>>();
  const std::optional<std::string> layout = words.given("slots");
  if (layout) check_text(*layout, "--slots");
  const Device device = plan.config.config.device;
  plan.slots = make_slots(
      {layout, listed ? std::optional(plan.instances.back()) : std::nullopt, device, plan.ranks},
      slot_source(device));
  find_numa(plan.slots);
  const auto slots = static_cast<std::int64_t>(plan.slots.size());
  if (!listed) plan.instances = text == "all" ? up_to(slots) : default_ranks(slots);
}

/// Refuses what a run alone may do, but not several of them side by side.
void check_job(const ResolvedConfig& config, std::int64_t ranks) {
  if (config.ranks_per_node)
    throw ConfigError("--ranks_per_node: --slots says where ranks run; leave it out");
  if (config.largest_batch)
    throw ConfigError(
        "--batch_size max: each instance would look for memory that its neighbours take too; give "
        "a number");
  plan_batch(config, ranks);
}

record::Settings own_config(const InstancesPlan& plan, const Words& words, double launch_timeout) {
  record::Settings config;
  const auto add = [&](const char* key, const Json& value) {
    const char* origin = words.own.contains(key) ? "command_line" : "default";
    config.emplace_back(key, record::Setting{value, origin});
  };
  add("job", std::string(name_of(plan.config.command)));
  add("instances", plan.instances);
  add("slots", or_null(words.given("slots")));
  add("repeats", plan.repeats);
  add("launch_timeout", launch_timeout);
  return config;
}

}  // namespace

CommandHelp commands::instances_help(const CommandLine& line) {
  const Command job = read_job(split(line.arguments));
  return {"instances",
          "Jobs side by side on disjoint cores, GPUs, MIG slices or hosts, each of one rank or of "
          "--ranks: throughput and latency of each alone and with neighbours. All other flags are "
          "the job's.",
          {"[--flag value]..."},
          with_job_flags(own_flags(), job),
          {"scalemark instances --model resnet50 --dry_run",
           "scalemark instances --job infer --instances 1,2,4 --output instances.json",
           "scalemark instances --ranks 2 --slots \"0-3;4-7\" --model bert_base"},
          fmt::format("From the second group on these are the flags of scalemark {}.\n"
                      "Exit codes: 0 ok, 2 usage, 4 to 7 the most severe of its launches, 6 result "
                      "not writable.\n",
                      name_of(job))};
}

InstancesRequest read_instances_request(std::span<const std::string> arguments) {
  const Words words = split(arguments);
  InstancesRequest request;
  InstancesPlan& plan = request.plan;
  request.arguments = words.job;
  std::vector<std::string> all = words.job;
  if (const auto inject = words.given("inject")) {
    request.inject = parse_injection(read_as("inject", words, "inject").get<std::string>());
    all.push_back("--inject=" + *inject);
  }
  const auto environment = environment_lines();
  plan.config = load_config(read_job(words), all, environment);
  const ResolvedConfig& config = plan.config.config;
  if (!config.ranks.empty()) plan.ranks = config.ranks.front();
  check_job(config, plan.ranks);
  const Json repeats = read_as("repeats", words, "repeats");
  plan.repeats = repeats.is_null() ? 3 : repeats.get<std::int64_t>();
  // Both are seconds that something may take.
  if (const Json seconds = read_as("timeout", words, "launch_timeout"); !seconds.is_null())
    request.launch_timeout = seconds;
  request.dry_run =
      plan.config.config.dry_run || read_as("dry_run", words, "dry_run") == Json(true);
  place(plan, words);
  plan.own_config = own_config(plan, words, request.launch_timeout);
  return request;
}

ExitCode commands::instances(const CommandLine& line) {
  refuse_ranks("scalemark instances starts its processes itself");
  const InstancesRequest request = read_instances_request(line.arguments);
  if (request.dry_run) {
    print_instances(request);
    return ExitCode::ok;
  }
  SweepProgress progress;
  const ResolvedConfig& config = request.plan.config.config;
  return run_instances(request, progress, [&](const InstancesResult& result) {
    if (!config.json)
      (config.output ? print_view
                     : print_data)(instances_table(result, request.plan.config.warnings.size()));
  });
}

}  // namespace scalemark

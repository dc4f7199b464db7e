// Launches points of a plan with the commands around them, and keeps their records and journal.
#include "launch/point_launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>

#include "config/keys.hpp"
#include "config/names.hpp"
#include "config/shown_variables.hpp"
#include "config/text.hpp"
#include "launch/engine_start.hpp"
#include "launch/job.hpp"
#include "launch/launch.hpp"
#include "launch/launch_builder.hpp"
#include "measure/clock.hpp"
#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "result/sweep_folder.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

void make_descriptor(int number, int file, const char* path) {
  if (file < 0 || dup2(file, number) < 0)
    throw ResultError(fmt::format("{}: {}", path, std::strerror(errno)));
}

/// Returns the command as a shell reads it.
std::string line_of(const AroundCommand& command) {
  return without_credentials(command.on_hosts ? command_line(*command.on_hosts)
                                              : shell_quoted(command.words));
}

/// Runs in the child: appends its output to `log` below the words of the command.
void prepare_child(const AroundCommand& command, Moment moment, const std::filesystem::path& log) {
  const char* nothing = "/dev/null";
  make_descriptor(STDIN_FILENO, open(nothing, O_RDONLY | O_CLOEXEC), nothing);
  for (const int number : {STDOUT_FILENO, STDERR_FILENO})
    make_descriptor(number, open_own(log, O_WRONLY | O_APPEND), log.c_str());
  print_view(fmt::format("$ {}\n", line_of(command)));
  if (moment == Moment::after) signal(SIGUSR1, SIG_IGN);  // the supervisor's request to stop
  if (command.on_hosts)
    for (const auto& [name, value] : command.on_hosts->environment)
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
}

std::string words_of_status(int status) {
  if (status == 127) return "cannot be started (status 127)";
  return (is_signal_status(status) ? "was " : "") + end_words(status);
}

std::string how_it_failed(const SupervisedExits& exits, double limit_seconds) {
  if (exits.overdue) return fmt::format("took longer than {:g} s (command_timeout)", limit_seconds);
  if (exits.stopped_by_us) return "was stopped from outside";
  return words_of_status(exits.raw_status.front());
}

/// What comes before a host and the status of a command on it.
constexpr std::string_view kOnHost = "scalemark: on ", kStatus = ": status ";

/// Returns on which hosts a command failed and how, as its output from `begin` on tells; nothing
/// where it did not.
std::string failures_on_hosts(const std::filesystem::path& log, std::uintmax_t begin) {
  constexpr std::size_t kMostNamed = 5;
  std::ifstream file(log);
  file.seekg(static_cast<std::streamoff>(begin));
  std::vector<std::string> failures;
  std::size_t all = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t host = line.rfind(kOnHost), status = line.rfind(kStatus);
    if (host == line.npos || status == line.npos || status < host) continue;
    const auto ended = parse_integer(line.substr(status + kStatus.size()));
    if (!ended || *ended == 0 || ++all > kMostNamed) continue;
    const std::size_t name = host + kOnHost.size();
    failures.push_back(fmt::format("on {} {}", line.substr(name, status - name),
                                   words_of_status(static_cast<int>(*ended))));
  }
  if (all > kMostNamed) failures.push_back(fmt::format("and on {} more", all - kMostNamed));
  return join(failures, ", ");
}

/// Runs one command and returns its outcome.
CommandsEnd run_one(const AroundCommand& command, Moment moment, double limit_seconds,
                    const std::filesystem::path& log) {
  std::error_code none;
  const std::uintmax_t begin = fs::exists(log, none) ? fs::file_size(log, none) : 0;
  ChildProcess process{command.on_hosts ? launch_command(*command.on_hosts, geteuid() == 0)
                                        : command.words};
  process.before_exec = [&] { prepare_child(command, moment, log); };
  Supervision how;
  how.limit_seconds = limit_seconds;
  how.keeps_daemons = true;  // a command before a launch may start what that is measured with
  if (moment == Moment::after) how.grace_seconds = limit_seconds;
  const SupervisedExits exits = supervise_all({process}, how);
  CommandsEnd end;
  end.stopped = exits.stopped_by_us;
  const std::string on_hosts = command.on_hosts ? failures_on_hosts(log, begin) : "";
  if (exits.raw_status.front() == 0 && !exits.overdue && on_hosts.empty()) return end;
  end.code = exits.overdue ? ExitCode::timeout : ExitCode::environment;
  const std::string where = command.on_hosts ? "on each host " : "";
  end.reason = fmt::format(
      "{}: {} {}; see {}", to_string(moment), without_credentials(shell_quoted(command.words)),
      on_hosts.empty() || exits.overdue ? where + how_it_failed(exits, limit_seconds) : on_hosts,
      log.string());
  return end;
}

}  // namespace

std::string to_string(Moment moment) { return moment == Moment::before ? "before" : "after"; }

LaunchRequest on_each_host(LaunchRequest launch, const CommandWords& command, Moment moment) {
  const char* number = launch.launcher == Launcher::srun ? "SLURM_LOCALID"
                       : launch.hydra                    ? "MPI_LOCALRANKID"
                                                         : "OMPI_COMM_WORLD_LOCAL_RANK";
  // A shell is on every host. It reads no word of the command, which exec keeps from being taken
  // for one of its own.
  const std::string script = fmt::format(
      "{}[ \"${{{}:-0}}\" != 0 ] || {{ (exec \"$@\"); s=$?; echo \"{}$(uname -n){}$s\"; }}",
      moment == Moment::after ? "trap '' USR1; " : "",  // the supervisor's request to stop
      number, kOnHost, kStatus);
  launch.program = {"sh", "-c", script, "sh"};
  launch.program.insert(launch.program.end(), command.begin(), command.end());
  return launch;
}

CommandsEnd run_commands(const std::vector<AroundCommand>& commands, Moment moment,
                         double limit_seconds, const std::filesystem::path& log) {
  std::error_code ignored;
  std::filesystem::remove(log, ignored);  // of an earlier attempt
  CommandsEnd all;
  for (const AroundCommand& command : commands) {
    const CommandsEnd end = run_one(command, moment, limit_seconds, log);
    all.stopped = all.stopped || end.stopped;
    if (all.code == ExitCode::ok && end.code != ExitCode::ok) {
      all.code = end.code;
      all.reason = end.reason;
    }
    if (moment == Moment::before && (all.stopped || all.code != ExitCode::ok)) break;
  }
  return all;
}

namespace {

/// Returns the launcher of the plan, or that of SCALEMARK_LAUNCHER, which every point has.
Launcher launcher_of(const SweepPlan& plan, const std::map<std::string, std::string>& environment) {
  Launcher launcher = plan.launcher;
  if (launcher == Launcher::automatic && !plan.points.empty())
    launcher = plan.points.front().config.launcher;
  return launcher == Launcher::automatic ? detect_launcher(environment) : launcher;
}

Entries<std::string> shown_values(const SweepPlan& plan) {
  Entries<std::string> shown;
  for (const auto& [name, text] : plan.values) shown.emplace_back(name, without_credentials(text));
  return shown;
}

/// What a record with status ok has.
const Json::json_pointer kMean("/throughput/mean"), kUnit("/unit");
}  // namespace

Build own_build() { return {own_path(), build_info().revision, true, true}; }

std::string outcome_of(const JournalEntry& entry, const Json& record) {
  if (entry.status == "ok")
    return fmt::format("{} {}", four_digits(record[kMean].get<double>()),
                       record[kUnit].get<std::string>());
  return fmt::format("{}: {}", entry.status, entry.reason.empty() ? "see its log" : entry.reason);
}

PointLauncher::PointLauncher(const SweepPlan& plan, Build build, fs::path folder)
    : plan_(plan),
      build_(std::move(build)),
      folder_(std::move(folder)),
      environment_(process_environment()),
      shown_(without_variables_of_job(recorded_environment(environment_))),
      launcher_(launcher_of(plan, environment_)) {}

JournalEntry PointLauncher::entry_of(std::size_t index, std::int64_t repeat) const {
  JournalEntry entry;
  entry.point = plan_.points[index].id;
  entry.config_hash = plan_.points[index].config_hash;
  entry.revision = build_.revision;
  entry.repeat = repeat;
  entry.settings = json_without_credentials(plan_.points[index].settings);
  entry.environment.emplace(shown_.begin(), shown_.end());
  if (!plan_.values.empty()) entry.values = shown_values(plan_);
  return entry;
}

std::string PointLauncher::name_of_launch(std::size_t index, std::int64_t repeat) const {
  return fmt::format("{}-{}", plan_.points[index].id.substr(0, 16), repeat);
}

fs::path PointLauncher::record_path(std::size_t index, std::int64_t repeat) const {
  return folder_ / "runs" / (name_of_launch(index, repeat) + ".json");
}

LaunchDescription PointLauncher::description_of(std::size_t index, std::int64_t repeat) const {
  const SweepPoint& point = plan_.points[index];
  const auto& hostfile = plan_.hostfile ? plan_.hostfile : point.config.hostfile;
  const Resources resources = find_resources(point.config.device, hostfile, environment_);
  const Placement placement =
      place_ranks(point.launch.ranks, resources, point.launch.ranks_per_node);
  LaunchDescription described;
  described.program = build_.program;
  described.own_program = build_.own;
  described.command = plan_.command;
  described.arguments = point.arguments;
  described.output = fs::absolute(record_path(index, repeat));
  described.ranks = point.launch.ranks;
  described.ranks_per_node = point.launch.ranks_per_node;
  described.tells_ranks_per_node = true;
  described.cpus_per_rank = point.launch.cpus_per_rank.value_or(placement.cpus_per_rank);
  described.oversubscribe = placement.oversubscribe;
  described.binding = point.launch.binding.value_or(Binding::core);
  described.fixed_threads = point.config.num_intra_threads.has_value();
  described.launcher = launcher_;
  described.hostfile = hostfile;
  described.named = resources.named;
  described.elsewhere = resources.elsewhere;
  described.environment = point.launch.environment;
  described.container = plan_.container.container ? plan_.container : point.config;
  described.results = folder_;
  described.gpus = resources.gpus_per_host > 0;
  return described;
}

LaunchRequest PointLauncher::request_of(std::size_t index, std::int64_t repeat) const {
  LaunchRequest request = build_launch(description_of(index, repeat), environment_);
  tell_ranks(request);
  return request;
}

fs::path PointLauncher::log_path(std::size_t index, std::int64_t repeat,
                                 const std::string& what) const {
  return folder_ / "logs" / (name_of_launch(index, repeat) + what + ".log");
}

std::vector<AroundCommand> PointLauncher::commands_of(Moment moment, std::size_t index,
                                                      std::int64_t repeat) const {
  const SweepPoint& point = plan_.points[index];
  std::optional<LaunchRequest> launch;
  std::vector<AroundCommand> commands;
  for (const PlanCommand& planned :
       moment == Moment::before ? point.commands.before : point.commands.after) {
    AroundCommand command{filled_in(planned.words, point.words(repeat))};
    if (planned.each_host && !launch) {
      LaunchDescription described = description_of(index, repeat);
      described.container = {};  // it is the host that is changed
      launch = build_launch(described, environment_);
      tell_ranks(*launch);
    }
    if (planned.each_host) command.on_hosts = on_each_host(*launch, command.words, moment);
    commands.push_back(std::move(command));
  }
  return commands;
}

std::string PointLauncher::command_line(std::size_t index, std::int64_t repeat) const {
  return scalemark::command_line(request_of(index, repeat));
}

std::vector<std::string> PointLauncher::command_lines(std::size_t index,
                                                      std::int64_t repeat) const {
  std::vector<std::string> lines;
  const auto add = [&](Moment moment) {
    for (const AroundCommand& command : commands_of(moment, index, repeat))
      lines.push_back(command.on_hosts ? scalemark::command_line(*command.on_hosts)
                                       : shell_quoted(command.words));
  };
  add(Moment::before);
  lines.push_back(command_line(index, repeat));
  add(Moment::after);
  return lines;
}

namespace {

/// Throws ConfigError where a launch that is ok had another text for a value of the plan. Values of
/// a name that one of both lacks are of other points.
void refuse_other_values(const JournalEntry& entry, const Entries<std::string>& own,
                         const fs::path& folder) {
  if (entry.status != "ok" || !entry.values) return;
  for (const auto& [name, text] : own)
    for (const auto& [other, before] : *entry.values)
      if (name == other && text != before)
        throw ConfigError(fmt::format(
            "{} holds launches with --value {}, and now it is {}: their figures do not belong "
            "together; give the value as it was, or choose another folder with --output",
            folder.string(), shell_quoted({name + "=" + before}), shell_quoted({text})));
}

}  // namespace

void PointLauncher::refuse_other_variables(const Journal& journal) const {
  const auto words = [](const std::map<std::string, std::string>& all, const std::string& name) {
    const auto found = all.find(name);
    return found == all.end() ? name + " unset" : name + "=" + found->second;
  };
  const Entries<std::string> own = shown_values(plan_);
  for (const JournalEntry& entry : last_entries(journal.entries())) {
    if (entry.revision == build_.revision) refuse_other_values(entry, own, folder_);
    if (entry.revision != build_.revision || !entry.environment ||
        entry.status == to_string(Status::interrupted))
      continue;
    const std::map<std::string, std::string> then(entry.environment->begin(),
                                                  entry.environment->end());
    std::set<std::string> differing;
    for (const auto& [one, other] : {std::pair(&then, &shown_), std::pair(&shown_, &then)})
      for (const auto& [name, value] : *one)
        if (const auto found = other->find(name); found == other->end() || found->second != value)
          differing.insert(name);
    if (differing.empty()) continue;
    std::vector<std::string> before, here;
    for (const std::string& name : differing) {
      before.push_back(words(then, name));
      here.push_back(words(shown_, name));
    }
    throw ConfigError(fmt::format(
        "{} holds launches that were started with {}, and now it is {}: their figures do not "
        "belong "
        "together; set the variables as they were, or choose another folder with --output",
        folder_.string(), fmt::join(before, ", "), fmt::join(here, ", ")));
  }
}

void PointLauncher::prepare_folders() const {
  for (const char* name : {"runs", "logs"}) {
    std::error_code error;
    fs::create_directories(folder_ / name, error);
    if (error)
      throw ResultError(fmt::format("{}: {}; choose another folder with --output",
                                    (folder_ / name).string(), error.message()));
  }
}

CommandsEnd PointLauncher::run_around(const std::vector<AroundCommand>& commands, Moment moment,
                                      std::size_t index, std::int64_t repeat) const {
  return run_commands(commands, moment, plan_.command_timeout,
                      log_path(index, repeat, "." + to_string(moment)));
}

JobEnd PointLauncher::launch_prepared(JournalEntry& entry,
                                      const std::vector<AroundCommand>& commands, std::size_t index,
                                      std::int64_t repeat) const {
  const CommandsEnd before = run_around(commands, Moment::before, index, repeat);
  if (before.code != ExitCode::ok) return {before.code, before.reason, false, before.stopped};
  if (before.stopped) return {ExitCode::failed, "stopped before the launch", false, true};
  const double start = steady_seconds();
  const HandoverFolder handover(folder_);
  const JobEnd end = run_jobs({job_of(index, repeat, handover)}, supervision(index)).jobs.front();
  entry.seconds = steady_seconds() - start;
  return end;
}

bool PointLauncher::launch(Journal& journal, std::size_t index, std::int64_t repeat) const {
  // What cannot be started is refused here, where there is nothing yet to be undone.
  const auto before_it = commands_of(Moment::before, index, repeat),
             after_it = commands_of(Moment::after, index, repeat);
  for (const auto* commands : {&before_it, &after_it})
    for (const AroundCommand& command : *commands)
      if (command.on_hosts) require_programs(*command.on_hosts);
  JournalEntry entry = begin(journal, index, repeat);
  JobEnd end;
  try {
    end = launch_prepared(entry, before_it, index, repeat);
  } catch (...) {
    run_around(after_it, Moment::after, index, repeat);
    throw;
  }
  const CommandsEnd after = run_around(after_it, Moment::after, index, repeat);
  refuse_unwritable(index, repeat, end);
  conclude(entry, index, end);
  if (after.code != ExitCode::ok) {
    if (entry.status == "ok") {
      entry.exit_code = static_cast<int>(after.code);
      entry.status = to_string(status_of_launch(after.code, after.stopped));
    }
    entry.reason += (entry.reason.empty() ? "" : "; ") + after.reason;
  }
  journal.append(entry);
  return end.stopped || after.stopped;
}

JournalEntry PointLauncher::begin(Journal& journal, std::size_t index, std::int64_t repeat) const {
  JournalEntry entry = entry_of(index, repeat);
  entry.started_at = utc_timestamp();
  if (const JournalEntry* earlier = journal.find(entry); earlier && earlier->status == "ok")
    revoke(journal, entry, "measured again, with those that it is compared to");
  discard_record(index, repeat);
  return entry;
}

void PointLauncher::revoke(Journal& journal, JournalEntry launch, const std::string& reason) {
  launch.status = to_string(Status::interrupted);
  launch.exit_code = static_cast<int>(ExitCode::failed);
  launch.reason = reason;
  launch.record.clear();
  journal.append(launch);
}

void PointLauncher::discard_record(std::size_t index, std::int64_t repeat) const {
  std::error_code ignored;
  fs::remove(record_path(index, repeat), ignored);
}

Job PointLauncher::job_of(std::size_t index, std::int64_t repeat,
                          const HandoverFolder& handover) const {
  return {request_of(index, repeat), handover, log_path(index, repeat, "").string()};
}

Supervision PointLauncher::supervision(std::size_t index) const {
  Supervision how = supervision_of(plan_.points[index].config.timeout);
  how.limit_seconds = plan_.launch_timeout;
  return how;
}

void PointLauncher::finish(Journal& journal, JournalEntry entry, double seconds, std::size_t index,
                           const JobEnd& end) const {
  entry.seconds = seconds;
  refuse_unwritable(index, entry.repeat, end);
  conclude(entry, index, end);
  journal.append(entry);
}

/// Refuses to go on where a record cannot be written, since the next launch could not write it
/// either. The journal does not count this one, so it runs again.
void PointLauncher::refuse_unwritable(std::size_t index, std::int64_t repeat,
                                      const JobEnd& end) const {
  if (end.code != ExitCode::result) return;
  const std::string told = last_lines(log_path(index, repeat, ""));
  throw ResultError(fmt::format(
      "{}, repeat {}: a file could not be read or written: {}; once it can, the same command goes "
      "on from here",
      plan_.points[index].title(), repeat,
      !end.reason.empty() ? end.reason
      : told.empty()      ? "its log is empty, as on a full disk"
                          : told));
}

void PointLauncher::conclude(JournalEntry& entry, std::size_t index, const JobEnd& end) const {
  entry.exit_code = static_cast<int>(end.code);
  entry.status = to_string(status_of_launch(end.code, end.stopped));
  entry.reason = end.reason;
  const fs::path record = record_path(index, entry.repeat);
  if (fs::exists(record)) describe(entry, record);
}

/// Describes how a launch ended. The ranks' own words take precedence over the exit code.
void PointLauncher::describe(JournalEntry& entry, const fs::path& path) const {
  const record::Envelope record = envelope_of(read_record(path));
  entry.record = fs::relative(path, folder_).string();
  entry.status = to_string(record.status);
  entry.reason = record.reason;
}

Json PointLauncher::record_of(const JournalEntry& entry) const {
  if (entry.record.empty() && entry.status != "ok") return {};
  const fs::path path = folder_ / entry.record;
  Json record = read_record(path);
  const auto is = [&](const Json::json_pointer& place, auto&& of_type) {
    return record.contains(place) && of_type(record[place]);
  };
  if (entry.status == "ok" &&
      !(is(kMean, std::mem_fn(&Json::is_number)) && is(kUnit, std::mem_fn(&Json::is_string))))
    throw ResultError(fmt::format(
        "record {}: it has no /throughput/mean and /unit, but the journal says that it is ok",
        path.string()));
  return record;
}

}  // namespace scalemark

// Parses /proc/PID/stat and adds up CPU seconds of process families.
#include "platform/processes.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "config/text.hpp"
#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "platform/sources.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;
}

std::optional<ProcessStat> process_stat(std::string_view text, double ticks_per_second) {
  // The line is "pid (name) state ppid ...", where the name may contain blanks and parentheses.
  const std::size_t name_end = text.rfind(") ");
  const auto pid = parse_integer(text.substr(0, text.find(' ')));
  if (name_end == text.npos || !pid || ticks_per_second <= 0) return std::nullopt;
  std::istringstream fields{std::string(text.substr(name_end + 2))};
  ProcessStat stat;
  stat.pid = static_cast<int>(*pid);
  std::string skipped;
  fields >> stat.state >> stat.parent;
  constexpr int kUserTime = 14, kSystemTimeOfChildren = 17;  // fields of proc(5), from 1
  for (int field = 5; field < kUserTime; ++field) fields >> skipped;
  for (int field = kUserTime; field <= kSystemTimeOfChildren; ++field) {
    double ticks = 0;
    fields >> ticks;
    stat.cpu_seconds += ticks / ticks_per_second;
  }
  if (!fields) return std::nullopt;
  return stat;
}

std::vector<ProcessStat> processes(const fs::path& root) {
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  std::vector<ProcessStat> all;
  std::error_code error;
  for (fs::directory_iterator it(root / "proc", error), end; !error && it != end;
       it.increment(error)) {
    if (!parse_integer(it->path().filename().string())) continue;
    if (const auto stat = process_stat(read_text(it->path() / "stat").value_or(""), ticks))
      all.push_back(*stat);
  }
  return all;
}

std::optional<double> family_cpu_seconds(const std::vector<ProcessStat>& processes, int ancestor,
                                         int member) {
  std::multimap<int, const ProcessStat*> children;
  double seconds = 0;
  std::vector<int> generation;
  for (const ProcessStat& process : processes) {
    children.emplace(process.parent, &process);
    if (process.pid != ancestor) continue;
    seconds = process.cpu_seconds;
    generation.push_back(ancestor);
  }
  std::set<int> seen;
  while (!generation.empty()) {
    const int parent = generation.back();
    generation.pop_back();
    if (!seen.insert(parent).second) continue;
    const auto [begin, end] = children.equal_range(parent);
    for (auto child = begin; child != end; ++child) {
      seconds += child->second->cpu_seconds;
      generation.push_back(child->second->pid);
    }
  }
  if (!seen.contains(member)) return std::nullopt;
  return seconds;
}

namespace {
namespace fs = std::filesystem;

constexpr double kYoungSeconds = 60;  // what is being created may not be open yet

struct Facts {
  uid_t user;
  double age_seconds;
};

std::optional<Facts> facts_of(const fs::path& path) {
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0) return std::nullopt;
  return Facts{
      facts.st_uid,
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count() -
          static_cast<double>(facts.st_mtim.tv_sec)};
}

/// Nothing also for what is another user's, without `all_users`.
std::optional<Facts> facts_of_leftover(const fs::path& path, bool all_users) {
  auto facts = facts_of(path);
  if (facts && !all_users && facts->user != geteuid()) facts.reset();
  return facts;
}

std::int64_t bytes_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(path, error)))
    return static_cast<std::int64_t>(fs::file_size(path, error));
  std::int64_t sum = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, error))
    if (entry.is_regular_file(error)) sum += static_cast<std::int64_t>(entry.file_size(error));
  return sum;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry.path());
  std::ranges::sort(entries);
  return entries;
}

/// Returns `folder` and all folders below it except private ones.
std::vector<fs::path> folders_below(const fs::path& folder) {
  std::vector<fs::path> folders{folder};
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(
           folder, fs::directory_options::skip_permission_denied, error);
       at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (!at->is_directory(error) || at->is_symlink(error)) continue;
    if (is_private_folder(at->path()))
      at.disable_recursion_pending();
    else
      folders.push_back(at->path());
  }
  return folders;
}

/// Returns the lock of `file` if it is free. Returns null also where the lock cannot be taken,
/// since it is then unknown whether somebody holds it.
std::unique_ptr<FileLock> free_lock(const fs::path& file) {
  try {
    return FileLock::try_take(file);
  } catch (const std::system_error&) {
    return nullptr;
  }
}

/// A file that is there while somebody uses what it is named after.
bool is_lock(const std::string& name) {
  return name == ".study.lock" || name == ".journal.jsonl.lock" ||
         (name.starts_with('.') && name.ends_with(".json.lock"));
}

/// A folder in the place of the one that --checkpoint_dir did not name. Each of its writers holds
/// the lock of a file there.
bool is_checkpoint_folder(const fs::path& path) {
  constexpr std::string_view kBegin = "scalemark-checkpoints-";
  const std::string name = path.filename().string();
  std::error_code error;
  return name.starts_with(kBegin) && name.size() == kBegin.size() + 6 &&
         fs::is_directory(fs::symlink_status(path, error));
}

bool has_writers(const fs::path& checkpoints) {
  for (const fs::path& file : entries_of(checkpoints))
    if (file.extension() == ".lock") {
      auto lock = free_lock(file);
      if (!lock) return true;
      FileLock::leave(std::move(lock));
    }
  return false;
}

void find_ours(const fs::path& folder, bool with_records, bool all_users, Leftovers& leftovers) {
  const std::vector<fs::path> entries = entries_of(folder);
  for (const fs::path& path : entries) {
    const std::string name = path.filename().string();
    const bool is_record = with_records && name.starts_with('.') && name.ends_with(".json.tmp");
    const bool is_checkpoints = !is_record && is_checkpoint_folder(path);
    const bool is_lone_lock =
        with_records && is_lock(name) &&
        !std::ranges::binary_search(entries, fs::path(path).replace_extension(".tmp"));
    if (!is_private_folder(path) && !is_record && !is_checkpoints && !is_lone_lock) continue;
    const auto facts = facts_of_leftover(path, all_users);
    if (!facts) continue;
    if (is_lone_lock) {
      if (auto held = facts->age_seconds >= kYoungSeconds ? free_lock(path) : nullptr)
        leftovers.found.push_back(
            {path, "lock that nobody holds", bytes_of(path), std::move(held)});
    } else if (is_checkpoints) {
      if (facts->age_seconds >= kYoungSeconds && !has_writers(path))
        leftovers.found.push_back({path, "checkpoints", bytes_of(path), nullptr});
    } else if (!is_record) {
      const FileDescriptor lock(lock_folder(path));
      if (lock.fd >= 0 && facts->age_seconds >= kYoungSeconds)
        leftovers.found.push_back({path, "private folder", bytes_of(path), nullptr});
    } else {
      std::error_code error;
      const fs::path lock = folder / (name.substr(0, name.size() - 4) + ".lock");
      auto held = fs::exists(lock, error) ? free_lock(lock) : nullptr;
      if (!held) continue;
      leftovers.found.push_back(
          {path, "record that was not finished", bytes_of(path), std::move(held)});
    }
  }
}

/// Knows which files the processes of this host use.
class Processes {
 public:
  explicit Processes(const fs::path& proc) {
    for (const fs::path& path : entries_of(proc)) {
      const auto pid = parse_integer(path.filename().string());
      if (!pid) continue;
      const auto facts = facts_of(path);
      if (!facts || has_ended(path)) continue;
      running_.insert(*pid);
      std::string name = read_text(path / "comm").value_or("");
      if (name.ends_with('\n')) name.pop_back();
      any_daemon_ =
          any_daemon_ || std::ranges::find(kOpenMpiPrograms, name) != kOpenMpiPrograms.end();
      if (!look_into(path)) hidden_[facts->user] = *pid;
    }
  }
  bool runs(std::int64_t pid) const { return running_.contains(pid); }
  /// Returns whether a process may have made a job family of this number, which is 16 bits of the
  /// id of a process without a launcher, and a number of their own of daemons.
  bool may_be_of_family(std::int64_t family) const {
    return any_daemon_ || std::ranges::any_of(running_, [&](std::int64_t pid) {
             return (pid & 0xffff) == (family & 0xffff);
           });
  }
  /// Returns the id of a process of this user that cannot be inspected; for root, of any process.
  std::optional<std::int64_t> hidden_of(uid_t user) const {
    const auto found = hidden_.find(user);
    return found == hidden_.end() ? std::nullopt : std::optional(found->second);
  }
  /// Returns whether a process uses the path itself or something below it.
  bool use(const fs::path& path) const {
    const std::string text = path.string();
    const auto below = used_.lower_bound(text + "/");
    return used_.contains(text) || (below != used_.end() && below->starts_with(text + "/"));
  }

 private:
  static bool has_ended(const fs::path& process) {
    const auto stat = process_stat(read_text(process / "stat").value_or(""), 1);
    return !stat || stat->state == 'Z' || stat->state == 'X';
  }
  bool look_into(const fs::path& process) {
    const fs::path links = process / "fd";
    std::error_code error;
    const fs::directory_iterator files(links, error);
    if (error) return !fs::exists(process, error);
    for (const auto& file : files) {
      const fs::path target = fs::read_symlink(file.path(), error);
      if (!error) used_.insert(target.string());
    }
    std::ifstream maps(process / "maps");
    for (std::string line; std::getline(maps, line);)
      if (const auto path = line.find('/'); path != line.npos) used_.insert(line.substr(path));
    return true;
  }

  bool any_daemon_ = false;
  std::set<std::int64_t> running_;
  std::map<uid_t, std::int64_t> hidden_;
  std::set<std::string> used_;
};

/// Returns the number after the last `mark` of a name such as "pid.4711".
std::optional<std::int64_t> number_behind(const std::string& name, const std::string& mark) {
  return name.starts_with(mark) ? parse_integer(name.substr(mark.size())) : std::nullopt;
}

void find_open_mpis(const LeftoverPlaces& places, Leftovers& leftovers) {
  const Processes processes(places.proc);
  const auto consider = [&](const fs::path& path, const char* what) {
    const auto facts = facts_of_leftover(path, places.all_users);
    if (!facts || facts->age_seconds < kYoungSeconds || processes.use(path)) return;
    if (const auto hidden = processes.hidden_of(facts->user))
      leftovers.undecided.push_back(
          fmt::format("{}: process {} of its user can't be looked into", path.string(), *hidden));
    else
      leftovers.found.push_back({path, what, bytes_of(path), nullptr});
  };
  constexpr const char* kSession = "Open MPI's session folder";
  const std::string host = host_name(), short_host = host.substr(0, host.find('.'));
  for (const fs::path& sessions : entries_of(places.temporary)) {
    const std::string name = sessions.filename().string();
    // Of version 5: "prterun.session.HOST.USER.PROCESS", of 5.0.11 "ompi.PROCESS".
    const std::size_t of_host = name.find(".session." + short_host + ".");
    auto launcher = number_behind(name, "ompi.");
    if (of_host != name.npos) launcher = parse_integer(name.substr(name.rfind('.') + 1));
    if (launcher && !processes.runs(*launcher)) consider(sessions, kSession);
    if (!name.starts_with("ompi." + short_host + ".")) continue;
    for (const fs::path& session : entries_of(sessions)) {
      const std::string part = session.filename().string();
      const auto process = number_behind(part, "pid."), family = number_behind(part, "jf.");
      if ((process && !processes.runs(*process)) ||
          (family && !processes.may_be_of_family(*family)))
        consider(session, kSession);
    }
  }
  for (const fs::path& segment : entries_of(places.shared_memory))
    for (const char* begin : {"vader_segment.", "sm_segment."})
      if (segment.filename().string().starts_with(begin))
        consider(segment, "Open MPI's shared memory");
}

}  // namespace

Leftovers find_leftovers(const LeftoverPlaces& places) {
  Leftovers leftovers;
  find_ours(places.temporary, /*with_records=*/false, places.all_users, leftovers);
  for (const fs::path& results : places.results)
    for (const fs::path& folder : folders_below(results))
      find_ours(folder, /*with_records=*/true, places.all_users, leftovers);
  find_open_mpis(places, leftovers);
  return leftovers;
}

void leave_leftover(Leftover leftover) { FileLock::leave(std::move(leftover.lock)); }

std::string remove_leftover(Leftover leftover) {
  std::error_code error;
  fs::remove_all(leftover.path, error);
  return error ? error.message() : "";
}

}  // namespace scalemark

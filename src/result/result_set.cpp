// Reads result sets from records, folders, sweeps and baselines.
#include "result/result_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <future>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "error.hpp"
#include "record/write.hpp"
#include "result/baseline.hpp"
#include "result/sweep_folder.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

bool is_read(const RecordReader& reader, const Json& record) {
  return reader.kinds.contains(kind_of(record));
}

/// Which build a launch was of that went wrong.
struct FailedBuild {
  std::string revision, committed_at, started_at;
};

FailedBuild build_of(const record::Envelope& record) {
  return {record.build.revision, record.build.committed_at.value_or(""), record.created_at};
}

FailedBuild build_of(const JournalEntry& entry) { return {entry.revision, "", entry.started_at}; }

/// Why a record is not compared, counted: "2 records with status failed".
class LeftOut {
 public:
  void add(const std::string& why) { ++count_[why]; }
  /// Whoever stopped a launch from outside did not see it fail.
  void add_failed(const std::string& status, const FailedBuild& build) {
    add("with status " + status);
    if (status == "interrupted") return;
    FailedLaunches& failed = failed_of_[build.revision];
    ++failed.count;
    failed.statuses.insert(status);
    if (!build.committed_at.empty()) failed.committed_at = build.committed_at;
    failed.started_at = std::max(failed.started_at, build.started_at);
  }
  /// Launches of a sweep that a curve of it is without.
  void add_failed_within(const LaunchesWithin& within, const FailedBuild& build) {
    for (std::int64_t i = 0; i < within.failed; ++i) add_failed("failed, of a curve", build);
  }
  void tell(ResultSet& set) const {
    for (const auto& [why, count] : count_)
      set.left_out.push_back(
          fmt::format("{} {} {}", count, count == 1 ? "record" : "records", why));
    set.failed_of = failed_of_;
    for (const auto& [revision, failed] : failed_of_) set.failed += failed.count;
  }

 private:
  std::map<std::string, int> count_;
  std::map<std::string, FailedLaunches> failed_of_;
};

/// What is kept of a record while others, which may name it, are read: ten thousand are large.
struct Found {
  std::string id;
  Status status;
  FailedBuild build;
  std::vector<MeasuredLaunch> launches;
};

void add_folder(ResultSet& set, LeftOut& left_out, const RecordReader& reader) {
  std::vector<Found> all;
  std::set<std::string> parts;
  const auto passed_by = [&](const std::string& what) { set.left_out.push_back(what); };
  for (const fs::path& path : files_below(set.path, ".json", passed_by)) {
    const Json record = read_record_or_study(path);
    if (!is_read(reader, record)) {
      left_out.add("of kind " + kind_of(record));
      continue;
    }
    LaunchesWithin within = launches_within(record, path);
    const record::Envelope envelope = envelope_of(record);
    Found& found = all.emplace_back(Found{envelope.id, envelope.status, build_of(envelope), {}});
    parts.merge(within.runs);
    left_out.add_failed_within(within, found.build);
    if (found.status == Status::ok) found.launches = reader.launches(record, path);
  }
  for (Found& found : all) {
    if (parts.contains(found.id)) continue;
    if (found.status != Status::ok) left_out.add_failed(to_string(found.status), found.build);
    std::ranges::move(found.launches, std::back_inserter(set.launches));
  }
  std::ranges::stable_sort(set.launches, {}, &MeasuredLaunch::started_at);
}

void add_sweep(ResultSet& set, const fs::path& journal, LeftOut& left_out,
               const RecordReader& reader) {
  const fs::path folder = set.path;
  const std::string identity = fs::canonical(folder).string();
  const std::vector<JournalEntry> entries = read_journal(journal);
  const std::vector<JournalEntry> last = last_entries(entries);
  // A launch that failed once is not forgotten because it was repeated.
  for (const JournalEntry& entry : entries)
    if (entry.status != "ok" && entry.status != "interrupted" &&
        std::ranges::any_of(last, [&](const JournalEntry& other) {
          return other.same_launch(entry) && other.status == "ok";
        }))
      left_out.add_failed(entry.status + ", before it was repeated", build_of(entry));
  for (const JournalEntry& entry : last) {
    if (entry.status != "ok") {
      left_out.add_failed(entry.status, build_of(entry));
      continue;
    }
    for (MeasuredLaunch& launch :
         reader.launches(record_of(folder, entry), folder / entry.record)) {
      launch.sweep = identity;
      launch.repeat = entry.repeat;
      add_launch_settings(launch, entry.settings);
      set.launches.push_back(std::move(launch));
    }
  }
}

void add_file(ResultSet& set, LeftOut& left_out, const RecordReader& reader) {
  const Json record = read_record(set.path);
  if (kind_of(record) == "baseline") {
    set.baseline = part_json(baseline_reference(record, set.path));
    set.launches = launches_of_baseline(record, set.path);
    set.warnings = envelope_of(record).warnings;
    return;
  }
  if (!is_read(reader, record))
    throw ConfigError(fmt::format(
        "{}: a record of kind {} has nothing of what is to be compared; give records of "
        "kind {} or baseline",
        set.path, kind_of(record), fmt::join(reader.kinds, ", ")));
  const record::Envelope envelope = envelope_of(record);
  if (envelope.status != Status::ok)
    left_out.add_failed(fmt::format("{}: {}", to_string(envelope.status),
                                    Json(envelope.reason).dump(-1, ' ', true)),
                        build_of(envelope));
  else
    set.launches = reader.launches(record, set.path);
  left_out.add_failed_within(launches_within(record, set.path), build_of(envelope));
}

/// Whether the file is a trace of --trace, which may be larger than any record.
bool is_trace(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  std::array<char, 100> begin{};
  std::ifstream(path).read(begin.data(), begin.size() - 1);
  return std::string_view(begin.data()).find("\"traceEvents\"") != std::string_view::npos;
}

/// What a sweep was to launch, what a step of a study was to do, or what a tuning has picked.
bool is_plan(const fs::path& path) {
  const fs::path folder = path.parent_path();
  return path == planned_file(folder) || path == tuned_file(folder) ||
         path.string().ends_with(kStepPlanEnding);
}

/// Whether what is below a folder is looked through. What cannot be, or was left by a killed job,
/// is named; folders that editors and file systems hide are passed by.
bool is_looked_through(const fs::path& folder, const PassedBy& passed_by) {
  const std::string name = folder.filename().string();
  if (name.starts_with(".scalemark-"))
    passed_by(
        fmt::format("{}: what a killed job left (scalemark clean removes it)", folder.string()));
  if (name.starts_with(".") || name.ends_with("~")) return false;
  if (access(folder.c_str(), R_OK | X_OK) == 0) return true;
  passed_by(fmt::format("{}: cannot be read: {}", folder.string(), std::strerror(errno)));
  return false;
}

}  // namespace

std::vector<fs::path> files_below(const fs::path& folder, const std::string& extension,
                                  const PassedBy& passed_by) {
  std::vector<fs::path> paths;
  std::error_code error, ignored;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const fs::path& path = it->path();
    if (it->is_directory(ignored)) {
      if (!it->is_symlink(ignored) && !is_looked_through(path, passed_by))
        it.disable_recursion_pending();
      continue;
    }
    if (path.extension() != extension || path.filename().string().starts_with(".")) continue;
    if (!fs::exists(path, ignored))
      passed_by(path.string() + ": a link to nothing");
    else if (!is_plan(path) && !is_trace(path))
      paths.push_back(path);
  }
  if (error)
    throw ResultError(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  std::ranges::sort(paths);
  return paths;
}

ResultSet read_result_set(const std::string& label, const std::string& path,
                          const RecordReader& reader) {
  ResultSet set;
  set.label = label;
  set.path = path;
  LeftOut left_out;
  std::error_code error;
  if (!fs::exists(path, error))
    throw ConfigError(fmt::format(
        "{}: no such file or folder; give a record, a folder of records or that of a sweep", path));
  const fs::path journal = journal_of(path);
  if (!fs::is_directory(path, error))
    add_file(set, left_out, reader);
  else if (fs::exists(journal, error))
    add_sweep(set, journal, left_out, reader);
  else
    add_folder(set, left_out, reader);
  left_out.tell(set);
  if (!set.launches.empty()) return set;
  std::string why;
  for (const std::string& sentence : set.left_out) why += "; " + sentence;
  throw ConfigError(fmt::format("{}: no record of kind {} with status ok{}", path,
                                fmt::join(reader.kinds, ", "), why));
}

namespace {

/// The rounds or repeats of one record at one point are launches of their own.
void refuse_equal_ids(const std::vector<ResultSet>& sets) {
  std::map<std::pair<std::string, int>, std::pair<const ResultSet*, const MeasuredLaunch*>> seen;
  for (const ResultSet& set : sets)
    for (const MeasuredLaunch& launch : set.launches) {
      const auto [place, is_new] =
          seen.emplace(std::pair(launch.id, launch.ranks), std::pair(&set, &launch));
      const auto& [other_set, other] = place->second;
      if (is_new || launch.id.empty()) continue;
      if (other_set == &set && other->path == launch.path) continue;
      throw ConfigError(fmt::format(
          "{} ({}) and {} ({}) are one record, {}: a copy is no second measurement; give sets of "
          "launches of their own",
          other->path.string(), other_set->label, launch.path.string(), set.label, launch.id));
    }
}

/// Digits from which on two launches do not measure the same number by chance.
constexpr std::size_t kTellingDigits = 9;

/// Whether a number has so many significant digits.
bool is_telling(double value) {
  std::string shortest = fmt::format("{}", value);
  shortest = shortest.substr(0, shortest.find('e'));
  std::erase_if(shortest, [](char c) { return c < '0' || c > '9'; });
  shortest.erase(0, shortest.find_first_not_of('0'));
  return shortest.size() >= kTellingDigits;
}

/// All that was measured, and where; empty where that are too few digits to tell a copy from a
/// launch that came to the same.
std::string measured_figures(const MeasuredLaunch& launch) {
  std::vector<double> figures;
  for (const Work& work : launch.repeats) figures.push_back(work.seconds);
  for (const auto& [name, value] : launch.metrics) figures.push_back(value);
  if (std::ranges::none_of(figures, is_telling)) return "";
  for (const Work& work : launch.repeats) figures.push_back(work.units);
  return fmt::format("{} {} {}", launch.ranks, launch.host, fmt::join(figures, " "));
}

[[noreturn]] void refuse_copy(const ResultSet& set, const MeasuredLaunch& launch,
                              const ResultSet& other_set, const fs::path& other) {
  throw ConfigError(fmt::format(
      "{} ({}) and {} ({}) tell the same to the last digit under two ids: one is a copy of the "
      "other, and no measurement of its own; measure both sets",
      other.string(), other_set.label, launch.path.string(), set.label));
}

}  // namespace

void count_copies_once(std::vector<ResultSet>& sets) {
  refuse_equal_ids(sets);
  std::map<std::string, std::pair<const ResultSet*, fs::path>> seen;  // [figures]
  for (ResultSet& set : sets) {
    set.copies += std::erase_if(set.launches, [&](const MeasuredLaunch& launch) {
      const std::string figures = measured_figures(launch);
      if (figures.empty()) return false;
      const auto [place, is_new] = seen.try_emplace(figures, &set, launch.path);
      const auto& [first_set, path] = place->second;
      if (!is_new && first_set != &set) refuse_copy(set, launch, *first_set, path);
      return !is_new;
    });
    if (set.copies > 0)
      set.left_out.push_back(
          fmt::format("{} {} that tell what another one tells, to the last digit", set.copies,
                      set.copies == 1 ? "launch" : "launches"));
  }
}

ResultSet read_labelled_set(const std::string& argument, const RecordReader& reader) {
  std::error_code error;
  const std::size_t equals = argument.find('=');
  if (equals != argument.npos && equals > 0 && !fs::exists(argument, error))
    return read_result_set(argument.substr(0, equals), argument.substr(equals + 1), reader);
  fs::path last = fs::path(argument).lexically_normal();
  if (!last.has_filename()) last = last.parent_path();
  const std::string label = last.extension() == ".json" ? last.stem() : last.filename();
  return read_result_set(label.empty() ? argument : label, argument, reader);
}

std::vector<ResultSet> read_labelled_sets(const std::vector<std::string>& arguments,
                                          const RecordReader& reader) {
  std::vector<std::packaged_task<ResultSet()>> tasks;
  for (const std::string& argument : arguments)
    tasks.emplace_back([&] { return read_labelled_set(argument, reader); });
  std::atomic<std::size_t> next = 0;
  const auto read = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) tasks[i]();
  };
  {
    const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::jthread> threads;
    try {
      for (std::size_t i = 1; i < std::min(most, tasks.size()); ++i) threads.emplace_back(read);
    } catch (const std::system_error&) {  // no threads left: this one reads
    }
    read();
  }
  std::vector<ResultSet> sets;
  for (auto& task : tasks) sets.push_back(task.get_future().get());
  return sets;
}

}  // namespace scalemark

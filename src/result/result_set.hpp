// The launches that a user compares: a record, a folder of records, or the folder of a sweep.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "result/measured_launch.hpp"

namespace scalemark {

/// Launches of one build that went wrong.
struct FailedLaunches {
  std::size_t count = 0;
  std::set<std::string> statuses;
  std::string committed_at;  ///< of the build, as MeasuredLaunch::committed_at
  std::string started_at;    ///< the last one's
};

struct ResultSet {
  std::string label;
  std::string path;  ///< as the user wrote it
  std::vector<MeasuredLaunch> launches;
  std::vector<std::string> left_out;  ///< what of the path is not among them, and why
  std::size_t failed = 0;  ///< of them, records whose status is not ok: launches that went wrong
  std::map<std::string, FailedLaunches> failed_of =
      {};                   ///< the same of each build, by its revision
  std::size_t copies = 0;   ///< of them, launches that equal another one: count_copies_once()
  Json baseline = nullptr;  ///< baseline_reference() where the path is a baseline file
  std::vector<std::string> warnings = {};  ///< that a baseline file keeps of its launches
};

/// Which kinds of records a set is made of, and what they tell.
struct RecordReader {
  std::set<std::string> kinds{"run", "inference", "scaling"};
  std::function<std::vector<MeasuredLaunch>(const Json&, const std::filesystem::path&)> launches =
      measured_launches;
};

/// Called with what is not read and why: "results/latest.json: a link to nothing".
using PassedBy = std::function<void(const std::string&)>;

/// Returns the files with an extension such as ".json", sorted. Hidden files and folders are left
/// out, as editors, notebooks and snapshots have them, and folders of runs that are kept beside
/// (FILE.runs.~1~), and so are traces and what sweeps and
/// studies keep of their plans; `passed_by` hears of links to nothing, of folders that can't be
/// read and of what a killed job left. Throws ResultError where `folder` itself can't be read.
std::vector<std::filesystem::path> files_below(
    const std::filesystem::path& folder, const std::string& extension,
    const PassedBy& passed_by = [](const std::string&) {});

/// Reads `path`: a record of the reader's kinds or a baseline; a folder with the journal of
/// a sweep, whose last entry of each launch counts; or any other folder, with every *.json below
/// it, in the order of their start. Runs that a curve of the same folder names belong to the curve.
/// Left out: records whose status is not ok, and of a folder those of other kinds. ConfigError
/// where the path does not exist, is a record without throughput, or holds none; ResultError where
/// a file is unreadable, foreign, corrupt or of another schema version.
ResultSet read_result_set(const std::string& label, const std::string& path,
                          const RecordReader& reader = {});

/// A launch counts once, since copies would pass for repeats. ConfigError, naming the files, where
/// an id and rank count is in one set twice or in two sets, or where launches of two sets tell the
/// same in all that was measured, to the last digit. Launches of one set that do are counted once,
/// which `left_out` and `copies` of the set say.
void count_copies_once(std::vector<ResultSet>& sets);

/// "LABEL=PATH", or a path whose last part is the label. A word that exists as it is, is a path.
ResultSet read_labelled_set(const std::string& argument, const RecordReader& reader = {});

/// Reads the set of each argument, all at once: reading is most of what a comparison of large sets
/// takes. Of several faults, the first argument's is thrown. `reader` is called by several threads.
std::vector<ResultSet> read_labelled_sets(const std::vector<std::string>& arguments,
                                          const RecordReader& reader = {});

}  // namespace scalemark

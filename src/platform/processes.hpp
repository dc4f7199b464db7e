// The processes of this host, as /proc/PID/stat tells them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/posix_file.hpp"

namespace scalemark {

struct ProcessStat {
  int pid = 0, parent = 0;
  char state = '?';        ///< 'Z': a zombie, whose parent has not asked for its status yet
  double cpu_seconds = 0;  ///< its own and those of its ended children, user and system
};

/// nullopt where the text is none of a process.
std::optional<ProcessStat> process_stat(std::string_view proc_pid_stat, double ticks_per_second);

/// Of `root`/proc; a process that ends meanwhile may be missing.
std::vector<ProcessStat> processes(const std::filesystem::path& root = "/");

/// CPU seconds of `ancestor` and all its descendants, those too that have ended. nullopt where
/// `member` is none of them.
std::optional<double> family_cpu_seconds(const std::vector<ProcessStat>& processes, int ancestor,
                                         int member);

// What processes that were killed have left on this host: folders and files of ours, and Open MPI's
// session folders and shared memory. Only what is provably dead is found.

struct Leftover {
  std::filesystem::path path;  ///< a file, or a folder with all that is in it
  std::string what;            ///< "a scalemark's private folder"
  std::int64_t bytes = 0;
  std::unique_ptr<FileLock> lock;  ///< of a record: so that nobody takes it up meanwhile
};

struct LeftoverPlaces {
  std::vector<std::filesystem::path> results;  ///< looked through with the folders below
  std::filesystem::path temporary, shared_memory = "/dev/shm", proc = "/proc";
};

struct Leftovers {
  std::vector<Leftover> found;
  std::vector<std::string> undecided;  ///< what may live: path and why nobody can tell
};

/// - Private folders ("scalemark-XXXXXX", hidden beside results), a minute old, whose lock nobody
///   holds, in `temporary` and `results`.
/// - In `results` the temporaries of records (".NAME.tmp") whose lock nobody holds.
/// - Open MPI's, of this user (of root: of everybody), a minute old and more: session folders
///   `temporary`/ompi.HOST.UID/pid.PID whose mpirun has ended, and segments in `shared_memory`,
///   where no process of this host has anything of it open or mapped. While a process of that user
///   can't be looked into, none of them.
Leftovers find_leftovers(const LeftoverPlaces& places);

/// Why it could not be removed; empty where it is gone.
std::string remove_leftover(Leftover leftover);

/// It stays as it was found.
void leave_leftover(Leftover leftover);

}  // namespace scalemark

// Lists the processes of this host from /proc/PID/stat.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/posix_file.hpp"

namespace scalemark {

/// The names under which Open MPI 4 and 5 start ranks and run beside them on every host.
inline constexpr std::array<std::string_view, 6> kOpenMpiPrograms{"orted",   "orterun", "mpirun",
                                                                  "prterun", "prted",   "prte"};

/// A process as /proc/PID/stat describes it.
struct ProcessStat {
  int pid = 0, parent = 0;
  char state = '?';        ///< 'Z': a zombie, whose parent has not asked for its status yet
  double cpu_seconds = 0;  ///< of the process and its ended children, user and system
};

/// Parses the stat line of a process. Returns nullopt for any other text.
std::optional<ProcessStat> process_stat(std::string_view proc_pid_stat, double ticks_per_second);

/// Returns the processes in `root`/proc. One that ends during the call may be missing.
std::vector<ProcessStat> processes(const std::filesystem::path& root = "/");

/// Returns the CPU seconds of `ancestor` and all its descendants, including those that have ended.
/// Returns nullopt where `member` is not one of them.
std::optional<double> family_cpu_seconds(const std::vector<ProcessStat>& processes, int ancestor,
                                         int member);

// Finds what killed processes have left on this host: folders and files of scalemark, and Open
// MPI's session folders and shared memory. Only what is provably unused is found.

/// A file or folder that a killed process has left.
struct Leftover {
  std::filesystem::path path;  ///< a file, or a folder with all that is in it
  std::string what;            ///< "a scalemark's private folder"
  std::int64_t bytes = 0;
  std::unique_ptr<FileLock> lock;  ///< lock of a record, which keeps others from using it meanwhile
};

/// The folders in which leftovers are looked for.
struct LeftoverPlaces {
  std::vector<std::filesystem::path> results;  ///< looked through with the folders below
  std::filesystem::path temporary, shared_memory = "/dev/shm", proc = "/proc";
  bool all_users = false;  ///< of root: what others have left is looked for, too
};

/// All leftovers of this host.
struct Leftovers {
  std::vector<Leftover> found;
  std::vector<std::string>
      undecided;  ///< paths that may be in use, with the reason why this is unknown
};

/// Finds three kinds of leftovers of this user, or of everybody with `all_users`:
/// - In `temporary` and `results`: private folders ("scalemark-XXXXXX", hidden beside results) that
///   are at least a minute old and whose lock nobody holds.
/// - In `results`: temporary files of records (".NAME.tmp") whose lock nobody holds.
/// - Of Open MPI, at least a minute old: session folders
///   `temporary`/ompi.HOST.UID/pid.PID whose mpirun has ended, and segments in `shared_memory`,
///   where no process of this host has anything of it open or mapped. While a process of that user
///   cannot be inspected, none of these is found.
Leftovers find_leftovers(const LeftoverPlaces& places);

/// Removes a leftover. Returns why it could not be removed, or an empty text where it is gone.
std::string remove_leftover(Leftover leftover);

/// Releases a leftover without changing it.
void leave_leftover(Leftover leftover);

}  // namespace scalemark

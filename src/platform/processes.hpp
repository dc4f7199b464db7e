// The processes of this host, as /proc/PID/stat tells them.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

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

}  // namespace scalemark

// See processes.hpp.
#include "platform/processes.hpp"

#include <unistd.h>

#include <map>
#include <set>
#include <sstream>

#include "config/text.hpp"
#include "platform/sources.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;
}

std::optional<ProcessStat> process_stat(std::string_view text, double ticks_per_second) {
  // "pid (name) state ppid ...": the name may hold blanks and parentheses.
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

}  // namespace scalemark

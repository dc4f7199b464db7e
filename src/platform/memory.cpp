// Peak resident memory of this process.
#include <sys/resource.h>

#include <fstream>

#include "platform/sources.hpp"

namespace scalemark {

std::int64_t peak_rss_bytes() {
  const auto status = read_text("/proc/self/status");
  if (const auto line = status ? line_value(*status, "VmHWM") : std::nullopt)
    if (const auto kib = to_number(line->substr(0, line->find(' '))))
      return static_cast<std::int64_t>(*kib) * 1024;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

void reset_peak_rss() {
  // 5: VmHWM starts anew (proc(5)). Where that is refused the peak is of the whole process.
  std::ofstream("/proc/self/clear_refs") << "5";
}

}  // namespace scalemark

// See nccl_log.hpp.
#include "comm/nccl_log.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <set>
#include <sstream>

namespace scalemark {
namespace {

bool is_number(const std::string& word) {
  return !word.empty() &&
         std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// "NET/IB/0/GDRDMA" without "0".
std::string without_numbers(const std::string& name) {
  std::istringstream parts(name);
  std::string kept;
  for (std::string part; std::getline(parts, part, '/');)
    if (!is_number(part)) kept += (kept.empty() ? "" : "/") + part;
  return kept;
}

}  // namespace

NcclLog::NcclLog() {
  if (std::getenv("NCCL_DEBUG") || std::getenv("NCCL_DEBUG_FILE")) return;
  file_ = memfd_create("nccl-log", MFD_CLOEXEC);
  if (file_ < 0) return;
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_DEBUG_SUBSYS", "INIT", 0);
  setenv("NCCL_DEBUG_FILE", fmt::format("/proc/self/fd/{}", file_).c_str(), 1);
}

NcclLog::~NcclLog() {
  if (file_ >= 0) close(file_);
}

std::string NcclLog::text(std::size_t from) const {
  std::string text;
  std::array<char, 4096> block{};
  while (file_ >= 0) {
    const ssize_t size = pread(file_, block.data(), block.size(), static_cast<off_t>(from));
    if (size <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(size));
    from += static_cast<std::size_t>(size);
  }
  return text;
}

std::string nccl_transport(std::string_view log) {
  std::set<std::string> names;
  std::istringstream lines{std::string(log)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t via = line.find(" via ");
    if (via == line.npos || line.find("Channel") > via) continue;
    std::istringstream words(line.substr(via + 5));
    if (std::string name; words >> name) names.insert(without_numbers(name));
  }
  return fmt::format("{}", fmt::join(names, "+"));
}

}  // namespace scalemark

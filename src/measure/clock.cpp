// Reads the steady clock for durations and the wall clock for labels.
#include "measure/clock.hpp"

#include <fmt/format.h>
#include <time.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace scalemark {

double steady_seconds() { return seconds_of(Clock::now()); }

double seconds_of(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::string utc_timestamp() {
  using std::chrono::system_clock;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(system_clock::now());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const std::time_t time = system_clock::to_time_t(seconds);
  std::tm utc{};
  gmtime_r(&time, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     (now - seconds).count());
}

double utc_seconds(const std::string& timestamp) {
  std::tm utc{};
  double seconds = 0;
  if (std::sscanf(timestamp.c_str(), "%4d-%2d-%2dT%2d:%2d:%lfZ", &utc.tm_year, &utc.tm_mon,
                  &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &seconds) != 6)
    return std::numeric_limits<double>::quiet_NaN();
  utc.tm_year -= 1900;
  --utc.tm_mon;
  return static_cast<double>(timegm(&utc)) + seconds;
}

double utc_milliseconds(const std::string& timestamp) {
  const double seconds = utc_seconds(timestamp);
  if (std::isnan(seconds)) throw std::invalid_argument("no timestamp: " + timestamp);
  return 1e3 * seconds;
}

}  // namespace scalemark

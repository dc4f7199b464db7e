// The two clocks: durations come from the steady clock only; the wall clock is a label and may step
// at any time.
#pragma once

#include <chrono>
#include <string>

namespace scalemark {

/// Of deadlines and pauses.
using Clock = std::chrono::steady_clock;

/// Seconds on a clock that never steps (CLOCK_MONOTONIC); only differences within a machine mean
/// something.
double steady_seconds();
double seconds_of(Clock::time_point time);  ///< of the same clock

/// When something ran, in steady_seconds(), which all processes of a machine share.
struct Window {
  double start = 0, end = 0;
};

/// Now as RFC 3339 in UTC with milliseconds, "2030-01-31T12:00:00.123Z": for started_at and
/// created_at.
std::string utc_timestamp();

/// Of such a timestamp, since 1970. std::invalid_argument where it is none.
double utc_milliseconds(const std::string& timestamp);

}  // namespace scalemark

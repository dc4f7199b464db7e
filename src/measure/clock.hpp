// Declares the two clocks. Durations come from the steady clock only; the wall clock is a label and
// may step at any time.
#pragma once

#include <chrono>
#include <string>

namespace scalemark {

/// Deadlines and pauses are measured with this clock.
using Clock = std::chrono::steady_clock;

/// Returns seconds on a clock that never steps (CLOCK_MONOTONIC). Only differences between two
/// readings on one machine have a meaning.
double steady_seconds();
double seconds_of(
    Clock::time_point time);  ///< `time` in seconds of the clock that steady_seconds() reads

/// The begin and the end of something in steady_seconds(), which all processes of a machine share.
struct Window {
  double start = 0, end = 0;
};

/// Returns the present time as RFC 3339 in UTC with milliseconds, "2030-01-31T12:00:00.123Z", as
/// the keys started_at and created_at hold it.
std::string utc_timestamp();

/// Returns the seconds since 1970 of a timestamp in the form of utc_timestamp(), with any number of
/// digits behind the point; NaN for any other text.
double utc_seconds(const std::string& timestamp);

/// Returns the milliseconds since 1970 of a timestamp in the form of utc_timestamp(). Throws
/// std::invalid_argument for any other text.
double utc_milliseconds(const std::string& timestamp);

}  // namespace scalemark

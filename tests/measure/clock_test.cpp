// The label has its format, and the clock of durations never goes back.
#include "measure/clock.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <stdexcept>

namespace scalemark::clock_test {
namespace {

TEST(Clock, TimestampIsRfc3339InUtc) {
  const std::string now = utc_timestamp();
  EXPECT_TRUE(
      std::regex_match(now, std::regex(R"(20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d\.\d{3}Z)")))
      << now;
}

TEST(Clock, ATimestampIsReadBack) {
  EXPECT_EQ(utc_milliseconds("1970-01-02T00:00:01.250Z"), 86'401'250);
  EXPECT_THROW(utc_milliseconds("yesterday"), std::invalid_argument);
}

TEST(Clock, SteadySecondsNeverGoBack) {
  double previous = steady_seconds();
  for (int i = 0; i < 1000; ++i) {
    const double now = steady_seconds();
    ASSERT_GE(now, previous);
    previous = now;
  }
  EXPECT_GT(steady_seconds(), 0);
}

}  // namespace
}  // namespace scalemark::clock_test

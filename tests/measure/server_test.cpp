// A server of queries that arrive by themselves, on a clock that only the test moves.
#include "measure/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "measure/statistics.hpp"

namespace scalemark::server_test {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

/// Wakes `lateness` after the time that was asked for.
struct FakeClock : ServerClock {
  double time = 0, lateness = 0;
  double now() override { return time; }
  void wait(double until) override { time = until + lateness; }
};

struct Trial {
  Samples samples;
  std::vector<std::size_t> batches;
};

/// A pass takes `service` seconds, whatever its batch.
Trial serve_all(std::vector<double> arrivals, double service, const ServerPolicy& policy,
                FakeClock clock = {}, std::size_t stop_at = 1'000'000) {
  Trial trial;
  trial.samples = serve(
      arrivals, policy, clock,
      [&](std::size_t, std::size_t count) {
        trial.batches.push_back(count);
        clock.time += service;
      },
      [&](std::size_t first) { return first < stop_at; });
  return trial;
}

auto near(std::vector<double> values) { return Pointwise(DoubleNear(1e-9), values); }

TEST(PoissonArrivals, HaveExponentialGapsOfTheRateAndTheirSeed) {
  const auto arrivals = poisson_arrivals(200, 40'000, 7);
  ASSERT_EQ(arrivals.size(), 40'000u);
  std::vector<double> gaps{arrivals.front()};
  for (std::size_t i = 1; i < arrivals.size(); ++i) gaps.push_back(arrivals[i] - arrivals[i - 1]);
  EXPECT_NEAR(mean(gaps), 1. / 200, 3 * 0.005 / 200);
  EXPECT_NEAR(standard_deviation(gaps), 1. / 200, 6 * 0.005 / 200);  // as long as the mean
  EXPECT_NEAR(median(gaps), std::log(2.) / 200, 6 * 0.005 / 200);
  EXPECT_GE(*std::ranges::min_element(gaps), 0);
  EXPECT_EQ(arrivals, poisson_arrivals(200, 40'000, 7));
  EXPECT_NE(arrivals, poisson_arrivals(200, 40'000, 8));
}

TEST(Server, LatencyCountsFromTheArrivalAndNotFromTheBegin) {
  // The second comes while the first is served, the third when nobody is.
  const Trial trial = serve_all({1, 1.5, 9}, 2, {});
  EXPECT_THAT(trial.samples.step_seconds, near({2, 3.5, 2}));
  EXPECT_THAT(trial.samples.server->queue_seconds, near({0, 1.5, 0}));
  EXPECT_DOUBLE_EQ(trial.samples.wall_seconds, 11);
  EXPECT_EQ(trial.samples.server->offered, 3);
  EXPECT_EQ(trial.samples.server->ended_by, ServerEnd::all_served);
  EXPECT_EQ(trial.samples.stop_reason, StopReason::num_batches);
}

TEST(Server, ALateTimerIsPartOfTheLatencyAndIsTold) {
  FakeClock clock;
  clock.lateness = 0.25;
  const Trial trial = serve_all({1, 1.5, 9}, 2, {}, clock);
  EXPECT_THAT(trial.samples.step_seconds, near({2.25, 3.75, 2.25}));
  EXPECT_THAT(trial.samples.server->timer_lateness, near({0.25, 0.25}));  // of waits, not of all
}

TEST(Server, TakesWhatHasArrivedUpToABatch) {
  const Trial trial = serve_all({1, 1.1, 1.2, 1.3, 1.4, 1.5, 20}, 2, {.largest_batch = 4});
  EXPECT_THAT(trial.batches, ElementsAre(1, 4, 1, 1));
  EXPECT_THAT(trial.samples.step_seconds, near({2, 3.9, 3.8, 3.7, 3.6, 5.5, 2}));
  EXPECT_EQ(trial.samples.server->batches, 4);
  EXPECT_EQ(trial.samples.server->queue_length_max, 5);
}

TEST(Server, WaitsForABatchAsLongAsItsOldestMay) {
  const ServerPolicy policy{.largest_batch = 3, .max_queue_delay = 0.5};
  // Full at 1.2; then two by 10.5, without the one of 10.6; it waits by itself.
  const Trial trial = serve_all({1, 1.1, 1.2, 10, 10.4, 10.6}, 0.05, policy);
  EXPECT_THAT(trial.batches, ElementsAre(3, 2, 1));
  EXPECT_THAT(trial.samples.step_seconds, near({0.25, 0.15, 0.05, 0.55, 0.15, 0.55}));
}

TEST(Server, AQueueThatGrowsEndsTheTrial) {
  std::vector<double> arrivals;
  for (int i = 0; i < 1000; ++i) arrivals.push_back(i);
  EXPECT_EQ(overload_queue(1000, 1), 100);
  EXPECT_EQ(overload_queue(10, 1), 50);
  EXPECT_EQ(overload_queue(10, 40), 80);
  ServerPolicy policy{.overload_queue = 100};
  const Trial keeps_up = serve_all(arrivals, 0.99, policy);
  EXPECT_EQ(keeps_up.samples.server->ended_by, ServerEnd::all_served);
  EXPECT_EQ(keeps_up.samples.step_seconds.size(), 1000u);
  const Trial grows = serve_all(arrivals, 2, policy);
  EXPECT_EQ(grows.samples.server->ended_by, ServerEnd::overload);
  EXPECT_EQ(grows.samples.server->queue_length_max, 101);
  EXPECT_EQ(grows.samples.step_seconds.size(), 100u);
}

TEST(Server, ATrialThatCannotHoldItsBoundEnds) {
  std::vector<double> arrivals;
  for (int i = 0; i < 1000; ++i) arrivals.push_back(10. * i);
  const ServerPolicy policy{.latency_bound = 3, .late_allowed = 10};
  EXPECT_EQ(serve_all(arrivals, 2, policy).samples.server->ended_by, ServerEnd::all_served);
  const Trial late = serve_all(arrivals, 4, policy);
  EXPECT_EQ(late.samples.server->ended_by, ServerEnd::late);
  EXPECT_EQ(late.samples.step_seconds.size(), 11u);
}

TEST(Server, AStopEndsItBetweenTwoPasses) {
  const Trial trial = serve_all({1, 2, 3, 4}, 0.5, {}, {}, 2);
  EXPECT_EQ(trial.samples.stop_reason, StopReason::signal);
  EXPECT_EQ(trial.samples.step_seconds.size(), 2u);
}

TEST(SteadyServerClock, NeverReturnsLateByDesignNorLongBeforeTheTime) {
  SteadyServerClock clock(0);
  const double until = clock.now() + 0.02;
  while (clock.now() < until) clock.wait(until);
  EXPECT_GE(clock.now(), until);
  const double long_before = clock.now() + 1000;
  clock.wait(long_before);  // a stop is to be heard
  EXPECT_LT(clock.now(), long_before);
}

}  // namespace
}  // namespace scalemark::server_test

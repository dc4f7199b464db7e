#include "measure/selection.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace scalemark {
namespace {

TEST(Selection, TakesTheDifferencesOfRoundsOut) {
  // Rounds 0, 1 and -1; the third candidate was left out after the first, slow one.
  const Selection found = select_fastest({{3, 4, 2}, {2, 3, 1}, {2.5}}, 0.02);
  EXPECT_EQ(found.best, 0U);
  EXPECT_NEAR(found.levels[0], 3, 1e-9);
  EXPECT_NEAR(found.levels[1], 2, 1e-9);
  EXPECT_NEAR(found.levels[2], 2.5, 1e-9);
  EXPECT_GT(found.chance, 0.999);
}

TEST(Selection, OneRoundSaysNothing) {
  const Selection found = select_fastest({{3}, {2.99}, {1}}, 0.02);
  EXPECT_EQ(found.best, 0U);
  EXPECT_EQ(found.chance, 0);
  EXPECT_TRUE(hopeless(found, {0, 1, 2}, 0.95).empty());
}

TEST(Selection, TheChanceIsThatOfStudentsT) {
  // Two candidates, two rounds: residuals of +-0.01, one degree of freedom, deviation 0.02.
  const Selection found = select_fastest({{1.01, 0.99}, {0.89, 0.91}}, 0.02);
  const double t = (0.02 + 0.1) / (0.02 * std::sqrt(0.5 + 0.5));
  EXPECT_NEAR(found.better[1], 0.5 - std::atan(t) / M_PI, 1e-9);  // t of one degree: Cauchy
  EXPECT_NEAR(found.chance, 1 - found.better[1], 1e-12);
}

TEST(Selection, WhatWasNeverMeasuredIsNeverPicked) {
  const Selection found = select_fastest({{}, {1, 1.01}, {0.5, 0.52}}, 0.02);
  EXPECT_EQ(found.best, 1U);
  EXPECT_EQ(found.better[0], 0);
  EXPECT_TRUE(std::isinf(found.levels[0]));
}

struct Race {
  bool good = false;
  std::size_t launches = 0;
};

/// A tuning of candidates whose true levels deviate by `spread`, with launches that deviate by
/// `noise`, of which `share` are a quarter slower.
Race race(std::mt19937_64& engine, std::size_t candidates, double spread, double noise,
          double share) {
  constexpr double kChance = 0.95, kMargin = 0.02;
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<double> truth(candidates);
  for (double& level : truth) level = spread * normal(engine);
  std::vector<std::vector<double>> rates(candidates);
  std::vector<std::size_t> alive(candidates);
  std::iota(alive.begin(), alive.end(), std::size_t{0});
  Race race;
  for (int round = 1; round <= 30; ++round) {
    const double drift = 0.05 * normal(engine);
    for (const std::size_t i : alive) {
      const double slow = uniform(engine) < share ? std::log(0.75) : 0;
      rates[i].push_back(truth[i] + drift + noise * normal(engine) + slow);
      ++race.launches;
    }
    const Selection found = select_fastest(rates, kMargin);
    race.good = *std::max_element(truth.begin(), truth.end()) - truth[found.best] <= kMargin;
    if (round >= 2 && found.chance >= kChance) return race;
    for (const std::size_t i : hopeless(found, alive, kChance)) std::erase(alive, i);
  }
  race.good = true;  // it has not said so
  return race;
}

TEST(Selection, ItKeepsTheChanceThatItSays) {
  std::mt19937_64 engine(7);
  for (const auto& [noise, share] : {std::pair(0.01, 0.), {0.03, 0.}, {0.01, 0.1}}) {
    constexpr int kRaces = 400;
    int good = 0;
    std::size_t launches = 0;
    for (int i = 0; i < kRaces; ++i) {
      const Race one = race(engine, 24, 0.1, noise, share);
      good += one.good ? 1 : 0;
      launches += one.launches;
    }
    EXPECT_GE(good, 0.95 * kRaces) << noise << " " << share;
    RecordProperty("launches", static_cast<int>(launches / kRaces));
    printf("noise %g, slow %g: %.1f %% good, %zu launches of 24 candidates\n", noise, share,
           100. * good / kRaces, launches / kRaces);
  }
}

}  // namespace
}  // namespace scalemark

// The search for the largest batch, against a machine on which the answer is known.
#include "measure/batch_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace scalemark::batch_search_test {
namespace {

using ::testing::ElementsAre;

/// Searches where batches up to `largest` fit and a sample takes `seconds`.
BatchSearch search(std::int64_t largest, std::int64_t most = 1'000'000, double seconds = 0) {
  return bisect_batch(most, [&](std::int64_t batch) {
    return BatchTrial{batch, batch <= largest, seconds * static_cast<double>(batch), 0};
  });
}

std::vector<std::int64_t> sizes(const BatchSearch& found) {
  std::vector<std::int64_t> tried;
  for (const BatchTrial& trial : found.tried) tried.push_back(trial.batch_size);
  return tried;
}

TEST(BisectBatch, DoublesThenBisects) {
  const BatchSearch found = search(100);
  EXPECT_THAT(sizes(found), ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 96, 112, 104, 100));
  EXPECT_EQ(found.largest, 100);  // 104 does not fit, and 4 of 104 is less than a sixteenth
  EXPECT_EQ(found.limited_by, "memory");
}

TEST(BisectBatch, EveryAnswerFitsAndIsWithinASixteenth) {
  for (std::int64_t largest = 1; largest < 3000; ++largest) {
    const BatchSearch found = search(largest);
    EXPECT_LE(found.largest, largest);
    std::int64_t too_large = 1 << 20;
    for (const BatchTrial& trial : found.tried)
      if (!trial.fits) too_large = std::min(too_large, trial.batch_size);
    EXPECT_GT(too_large, largest);
    EXPECT_TRUE(too_large - found.largest == 1 || 16 * (too_large - found.largest) <= too_large);
  }
}

TEST(BisectBatch, SmallNumbersAreExact) {
  for (std::int64_t largest = 1; largest <= 16; ++largest)
    EXPECT_EQ(search(largest).largest, largest);
}

TEST(BisectBatch, NothingFits) {
  const BatchSearch found = search(0);
  EXPECT_EQ(found.largest, 0);
  EXPECT_THAT(sizes(found), ElementsAre(1));
}

TEST(BisectBatch, StopsAtTheLargestLegalBatch) {
  const BatchSearch found = search(1'000'000, 100);
  EXPECT_EQ(found.largest, 100);
  EXPECT_THAT(sizes(found), ElementsAre(1, 2, 4, 8, 16, 32, 64, 100));
  EXPECT_EQ(found.limited_by, "legal batch sizes");
}

TEST(BisectBatch, StopsWhereAStepTakesTooLong) {
  const BatchSearch found = search(1'000'000, 1'000'000, 5);
  EXPECT_EQ(found.largest, 8);  // 40 s
  EXPECT_EQ(found.limited_by, "step time");
}

TEST(BisectBatch, ASignalEndsIt) {
  int left = 3;
  const BatchSearch found = bisect_batch(100, [&](std::int64_t batch) {
    return left-- > 0 ? std::optional(BatchTrial{batch, true, 0, 0}) : std::nullopt;
  });
  EXPECT_EQ(found.largest, 4);
  EXPECT_EQ(found.limited_by, "signal");
}

}  // namespace
}  // namespace scalemark::batch_search_test

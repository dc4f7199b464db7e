// A batch in shares: each sample once and in its place, by as many threads as there are.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "models/kernels/kernels.hpp"

namespace scalemark::shares_test {
namespace {

class Shares : public ::testing::Test {
 protected:
  Shares() { at::set_num_threads(3); }
  ~Shares() override { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

TEST_F(Shares, AreAllSamplesInTheirPlaces) {
  for (const std::int64_t samples : {1, 2, 3, 7, 12}) {
    const at::Tensor x = at::arange(samples * 5).view({samples, 5});
    std::mutex mutex;
    std::multiset<std::int64_t> sizes;
    const at::Tensor y = in_shares(x, [&](const at::Tensor& some) {
      const std::lock_guard lock(mutex);
      sizes.insert(some.size(0));
      return some * 2;
    });
    EXPECT_TRUE(at::equal(y, x * 2));
    EXPECT_LE(*sizes.rbegin() - *sizes.begin(), 1);
  }
}

TEST_F(Shares, AreComputedByThreadsOfTheirOwnWithTheModesOfTheCaller) {
  const c10::InferenceMode inference;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  in_shares(at::zeros({6, 2}), [&](const at::Tensor& some) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    EXPECT_TRUE(c10::InferenceMode::is_enabled());
    EXPECT_TRUE(at::in_parallel_region());
    return in_shares(some, [&](const at::Tensor& same) {
      EXPECT_EQ(same.size(0), some.size(0)) << "a share is not cut again";
      return same;
    });
  });
  EXPECT_EQ(threads.size(), 3u);
}

TEST_F(Shares, PassOnWhatOneOfThemThrows) {
  const auto fails = [](const at::Tensor& some) -> at::Tensor {
    if (some[0].item<float>() == 0) throw std::runtime_error("of a share");
    return some;
  };
  EXPECT_THROW(in_shares(at::arange(6.), fails), std::runtime_error);
}

}  // namespace
}  // namespace scalemark::shares_test

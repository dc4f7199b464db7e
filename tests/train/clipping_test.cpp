// Gradient clipping against a double-precision reference and torch's own.
#include "train/clipping.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace scalemark::clipping_test {
namespace {

/// Buckets of unlike sizes, none a multiple of a block or a vector, one of several blocks.
std::vector<Bucket> make_buckets(double scale) {
  torch::manual_seed(3);
  std::vector<Bucket> buckets;
  for (const std::int64_t count : {1, 1001, 300'007}) {
    Bucket bucket;
    bucket.count = count;
    bucket.gradients = at::randn({count}) * scale;
    buckets.push_back(bucket);
  }
  return buckets;
}

double reference_norm(const std::vector<Bucket>& buckets) {
  long double squares = 0;
  for (const Bucket& bucket : buckets)
    for (std::int64_t i = 0; i < bucket.count; ++i) {
      const long double value = bucket.gradients.const_data_ptr<float>()[i];
      squares += value * value;
    }
  return static_cast<double>(std::sqrt(squares));
}

TEST(GradientNorm, IsThatOfDoublePrecision) {
  for (const double scale : {1e-15, 1., 1e15}) {  // squares of the outer ones leave fp32
    const auto buckets = make_buckets(scale);
    const double expected = reference_norm(buckets);
    EXPECT_NEAR(gradient_norm(buckets, standard_operators()).item<double>(), expected,
                1e-13 * expected);
  }
}

TEST(GradientNorm, DoesNotDependOnTheThreads) {
  const auto buckets = make_buckets(1);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const double alone = gradient_norm(buckets, standard_operators()).item<double>();
  at::set_num_threads(2);
  const double together = gradient_norm(buckets, standard_operators()).item<double>();
  at::set_num_threads(before);
  EXPECT_EQ(alone, together);
}

TEST(Clipping, IsThatOfTorch) {
  for (const double most : {0.1, 100., 1e6}) {
    auto buckets = make_buckets(1);
    std::vector<at::Tensor> leaves;
    for (const Bucket& bucket : buckets) {
      leaves.push_back(at::zeros({bucket.count}).set_requires_grad(true));
      leaves.back().mutable_grad() = bucket.gradients.clone();
    }
    torch::nn::utils::clip_grad_norm_(leaves, most);
    clip_gradients(buckets, most, standard_operators());
    for (std::size_t i = 0; i < buckets.size(); ++i)
      EXPECT_TRUE(at::allclose(buckets[i].gradients, leaves[i].grad(), 1e-5, 1e-9)) << most;
    EXPECT_NEAR(reference_norm(buckets), std::min(most, reference_norm(make_buckets(1))),
                1e-5 * most);
  }
}

TEST(Clipping, LeavesShortGradientsAlone) {
  auto buckets = make_buckets(1e-3);
  const auto before = make_buckets(1e-3);
  clip_gradients(buckets, 1, standard_operators());
  for (std::size_t i = 0; i < buckets.size(); ++i)
    EXPECT_TRUE(at::equal(buckets[i].gradients, before[i].gradients));
}

TEST(Clipping, DoesNotHideWhatIsNotFinite) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    auto buckets = make_buckets(1);
    buckets[1].gradients[5] = bad;
    clip_gradients(buckets, 1, standard_operators());
    EXPECT_FALSE(std::isfinite(buckets[1].gradients[5].item<double>()));
  }
}

}  // namespace
}  // namespace scalemark::clipping_test

// bf16 into fp32 is exact, whichever way it goes.
#include <gtest/gtest.h>

#include "models/kernels/kernels.hpp"

namespace scalemark::linear_test {
namespace {

void expect_exact(const at::Tensor& from, at::Tensor to) {
  to.fill_(7);
  widen(from, to);
  EXPECT_TRUE(at::equal(to, from.to(at::kFloat))) << from.sizes();
}

TEST(ColumnSums, AreThoseOfFloat64) {
  torch::manual_seed(1);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const auto& [rows, columns] : {std::pair{1, 1}, {7, 3}, {1030, 1100}, {256, 512}}) {
      const at::Tensor x = at::randn({rows, columns + 5}).to(type).narrow(1, 2, columns);
      const at::Tensor wanted = x.to(at::kDouble).sum(0), found = column_sums(x);
      EXPECT_EQ(found.scalar_type(), type);
      ASSERT_EQ(found.sizes(), wanted.sizes());
      const double rounding = type == at::kFloat ? 1e-6 : 0x1p-8;
      EXPECT_LE((found.to(at::kDouble) - wanted).abs().max().item<double>(),
                rounding * std::max(1., wanted.abs().max().item<double>()))
          << rows << " x " << columns;
      const at::Tensor in_columns = x.t().contiguous().t();
      EXPECT_TRUE(
          at::allclose(column_sums(in_columns).to(at::kDouble), wanted, 1e-2, rounding * 32));
    }
}

TEST(Widen, IsExact) {
  torch::manual_seed(1);
  for (const std::int64_t rows : {1, 513, 2048}) {  // below and above what goes past the caches
    const at::Tensor from = at::randn({rows, 520}).to(at::kBFloat16);
    expect_exact(from, at::empty({rows, 520}));
    expect_exact(from.t(), at::empty({520, rows}));  // not contiguous
    expect_exact(from, at::empty({rows, 521}).narrow(1, 1, 520));
    expect_exact(from, at::empty({rows * 520 + 1}).narrow(0, 1, rows * 520).view({rows, 520}));
  }
  expect_exact(at::randn({1000, 999}).to(at::kBFloat16), at::empty({1000, 999}));
  expect_exact(at::randn({1024, 1024}), at::empty({1024, 1024}));  // of another type
}

TEST(Widen, KeepsWhatIsNoNumber) {
  const at::Tensor from = at::full({1024, 1024}, NAN, at::kBFloat16);
  at::Tensor to = at::zeros({1024, 1024});
  widen(from, to);
  EXPECT_TRUE(at::isnan(to).all().item<bool>());
}

}  // namespace
}  // namespace scalemark::linear_test

// Products by tiles: against float64, with sides that are transposed, parts of wider matrices and
// of any size, and the same bits for every number of threads. With
// ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 these are tests of products of pairs.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "models/kernels/kernels.hpp"

namespace scalemark::tile_products_test {
namespace {

class TileProducts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_pair_products()) GTEST_SKIP() << "no AVX512_BF16";
    torch::manual_seed(1);
  }
  ~TileProducts() override { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

/// Returns bf16 [rows, columns]: a part of a wider matrix, of the transposed one where so asked.
at::Tensor matrix(std::int64_t rows, std::int64_t columns, bool transposed) {
  const auto wider = [](std::int64_t m, std::int64_t n) {
    return at::randn({m, n + 7}, at::kBFloat16).narrow(1, 3, n);
  };
  return transposed ? wider(columns, rows).t() : wider(rows, columns);
}

at::Tensor wide(const at::Tensor& x) { return x.to(at::kDouble); }

/// Expects the sums of `depth` products, rounded to fp32 at each addition, and last to `rounding`.
void expect_close(const at::Tensor& found, const at::Tensor& exact, std::int64_t depth,
                  double rounding) {
  const at::Tensor error = (wide(found) - exact).abs();
  const at::Tensor allowed = exact.abs() * rounding + 1e-5 * std::sqrt(static_cast<double>(depth));
  EXPECT_TRUE((error <= allowed).all().item<bool>())
      << "off by " << (error - allowed).max().item<double>() << " more than allowed";
}

struct Shape {
  std::int64_t m, k, n;
};

constexpr double kOfBf16 = 0x1p-8, kOfFp32 = 0x1p-22;

TEST_F(TileProducts, AreThoseOfFloat64) {
  for (const auto& [m, k, n] :
       {Shape{32, 32, 32}, Shape{1, 1, 1}, Shape{33, 31, 65}, Shape{70, 1000, 47},
        Shape{300, 1100, 290}, Shape{1100, 40, 2100}, Shape{1030, 2100, 33}}) {
    for (const bool a_transposed : {false, true})
      for (const bool b_transposed : {false, true}) {
        SCOPED_TRACE(::testing::Message() << m << " x " << k << " x " << n << ", transposed "
                                          << a_transposed << b_transposed);
        const at::Tensor a = matrix(m, k, a_transposed), b = matrix(k, n, b_transposed);
        const at::Tensor exact = at::mm(wide(a), wide(b));
        const at::Tensor bias = at::randn({n}, at::kBFloat16);
        at::Tensor narrow = at::full({m, n + 5}, 7, at::kBFloat16), part = narrow.narrow(1, 2, n);
        tile_product(part, /*add=*/false, a, b, bias);
        expect_close(part, exact + wide(bias), k, kOfBf16);
        EXPECT_TRUE((narrow.narrow(1, 0, 2) == 7).all().item<bool>());
        EXPECT_TRUE((narrow.narrow(1, n + 2, 3) == 7).all().item<bool>());

        const at::Tensor before = at::randn({m, n}, at::kBFloat16);
        at::Tensor clipped = before.clone();
        tile_product(clipped, /*add=*/true, a, b, bias, /*relu=*/true);
        expect_close(clipped, (exact + wide(bias) + wide(before)).relu(), k, kOfBf16);

        // Rows that begin on 64 bytes, and those that do not.
        for (const std::int64_t stride : {(n + 15) / 16 * 16, n + 1}) {
          const at::Tensor start = at::randn({m, stride});
          at::Tensor written = start.clone(), added = start.clone();
          at::Tensor to = written.narrow(1, 0, n), onto = added.narrow(1, 0, n);
          tile_product(to, /*add=*/false, a, b, {});
          tile_product(onto, /*add=*/true, a, b, {});
          expect_close(to, exact, k, kOfFp32);
          expect_close(onto, exact + wide(start.narrow(1, 0, n)), k, kOfFp32);
          EXPECT_TRUE(at::equal(written.narrow(1, n, stride - n), start.narrow(1, n, stride - n)));
        }
      }
  }
}

TEST_F(TileProducts, AreTheSameForEveryNumberOfThreads) {
  const at::Tensor a = matrix(500, 1500, false), b = matrix(1500, 700, true);
  std::optional<at::Tensor> first;
  for (const int threads : {1, 2, 3, 4, 6}) {
    at::set_num_threads(threads);
    at::Tensor product = at::zeros({500, 700});
    tile_product(product, /*add=*/false, a, b, {});
    if (!first) first = product;
    EXPECT_TRUE(at::equal(product, *first)) << threads << " threads";
  }
}

TEST_F(TileProducts, KeepWhatIsNoNumber) {
  at::Tensor a = matrix(64, 64, false), product = at::zeros({64, 64}, at::kBFloat16);
  a[3][5] = NAN;
  a[40][0] = INFINITY;
  tile_product(product, /*add=*/false, a, at::eye(64, at::kBFloat16), {});
  EXPECT_TRUE(at::isnan(product[3]).all().item<bool>());
  EXPECT_FALSE(at::isfinite(product[40][0]).item<bool>());
  EXPECT_TRUE(at::isfinite(product[0]).all().item<bool>());
}

TEST_F(TileProducts, AreForBf16OfSomeSize) {
  const auto suits = [](std::int64_t m, std::int64_t k, std::int64_t n,
                        at::ScalarType type = at::kBFloat16) {
    return suits_tiles(at::zeros({m, k}, type), at::zeros({k, n}, type));
  };
  EXPECT_EQ(suits(256, 1024, 1024), has_tiles()) << "oneDNN's products of pairs are as fast";
  EXPECT_FALSE(suits(256, 1024, 1024, at::kFloat));
  EXPECT_FALSE(suits(256, 1024, 1024, at::kHalf));
  EXPECT_FALSE(suits(8, 4096, 4096)) << "few rows";
  EXPECT_FALSE(suits(64, 64, 64)) << "small";
  at::set_num_threads(64);
  EXPECT_FALSE(suits(128, 1024, 1024)) << "small parts";
  EXPECT_EQ(suits(1024, 1024, 1024), has_tiles());
  const at::Tensor every_other = at::zeros({256, 2048, 2}, at::kBFloat16).select(2, 0);
  EXPECT_FALSE(suits_tiles(every_other, at::zeros({2048, 256}, at::kBFloat16)));
}

TEST(Tiles, AreNotUsedWhereOneDnnIsToldToDoWithout) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has not asked yet
  constexpr int kPairs = 1, kTiles = 2;
  const auto exit_with = [](const char* isa) {
    setenv("ONEDNN_MAX_CPU_ISA", isa, 1);
    std::exit((has_pair_products() ? kPairs : 0) + (has_tiles() ? kTiles : 0));
  };
  const int pairs = __builtin_cpu_supports("avx512bf16") ? kPairs : 0;
  EXPECT_EXIT(exit_with("AVX512_CORE_BF16"), ::testing::ExitedWithCode(pairs), "");
  EXPECT_EXIT(exit_with("AVX512_CORE"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(exit_with("AVX2"), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace scalemark::tile_products_test

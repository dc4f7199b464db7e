// main() of the rank tests: every rank runs every test; one failing rank fails all. Passing ranks
// are silent except rank 0. A rank that leaves a collective early is found by the watchdog, not by
// a hang.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "tests/support/mpi_support.hpp"

namespace scalemark::testing {
namespace {

constexpr double deadline_seconds = 60;
std::optional<RankGroup> the_world;

/// Prints failures at once (a later hang must not hide them), with the rank.
class FailurePrinter : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& info) override { name_ = info.name(); }
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "[rank %d] %s: %s:%d: %s\n", world().rank(), name_.c_str(),
                 result.file_name() ? result.file_name() : "?", result.line_number(),
                 result.message());
  }
  std::string name_;
};

int run_all(int* argc, char** argv) {
  ::testing::InitGoogleTest(argc, argv);
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (world().rank() != 0) delete listeners.Release(listeners.default_result_printer());
  if (world().rank() != 0) listeners.Append(new FailurePrinter);
  const int own = RUN_ALL_TESTS();
  const double failed_ranks = world().all_sum({own == 0 ? 0.0 : 1.0})[0];
  if (world().rank() == 0 && failed_ranks > 0)
    std::fprintf(stderr, "tests failed on %d of %d ranks\n", static_cast<int>(failed_ranks),
                 world().size());
  return failed_ranks > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

}  // namespace

RankGroup& world() { return *the_world; }

}  // namespace scalemark::testing

int main(int argc, char** argv) {
  scalemark::Watchdog watchdog(scalemark::testing::deadline_seconds);
  scalemark::testing::the_world = scalemark::RankGroup::world(watchdog);
  const int status = scalemark::testing::run_all(&argc, argv);
  scalemark::RankGroup::finalize(*scalemark::testing::the_world);
  scalemark::testing::the_world.reset();
  return status;
}

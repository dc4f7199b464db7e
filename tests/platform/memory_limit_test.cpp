// What the heap holds, and what host, cgroup and resource limits leave.
#include "platform/memory_limit.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "platform/platform.hpp"
#include "platform/sources.hpp"
#include "platform/tree.hpp"

namespace scalemark::memory_limit_test {
namespace {

using test::Tree;

constexpr std::int64_t kMebi = 1 << 20;

struct Free {
  void operator()(void* block) const { std::free(block); }
};
using Block = std::unique_ptr<void, Free>;

/// A block that is in use, or null. volatile: nobody may leave the call out.
Block take(std::int64_t bytes) {
  volatile auto size = static_cast<std::size_t>(bytes);
  void* block = nullptr;
  if (posix_memalign(&block, 64, size) != 0) return nullptr;
  std::memset(block, 1, size);
  return Block(block);
}

TEST(HeapUse, CountsWhatIsTakenKeptAndGivenBack) {
  release_free_memory();
  const HeapUse before = heap_use();
  {
    const Block block = take(256 * kMebi);
    EXPECT_GE(heap_use().held, before.held + 256 * kMebi);
    EXPECT_LT(heap_use().held, before.held + 300 * kMebi);
  }
  const HeapUse kept = heap_use();
  EXPECT_LT(kept.held - kept.free, before.held + 32 * kMebi);
  release_free_memory();
  EXPECT_LT(heap_use().held, before.held + 32 * kMebi);
}

TEST(ReleaseFreeMemory, GivesPagesBack) {
  { const Block block = take(256 * kMebi); }
  release_free_memory();
  reset_peak_rss();
  EXPECT_LT(peak_rss_bytes(), 200 * kMebi);
}

TEST(MemoryLeft, IsPositiveSharedAndBelowAResourceLimit) {
  const auto alone = memory_left(1), shared = memory_left(4);
  ASSERT_TRUE(alone && shared);
  EXPECT_GT(*alone, 0);
  EXPECT_LT(*shared, *alone / 2);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096LL * kMebi;
  if (before.rlim_max < small.rlim_cur) GTEST_SKIP() << "a hard RLIMIT_DATA";
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &small), 0);
  EXPECT_LE(memory_left(1).value_or(1LL << 60), 4096 * kMebi);
  setrlimit(RLIMIT_DATA, &before);
}

TEST(CgroupMemory, Version1CountsCacheAsFreeAndTheTightestLevelDecides) {
  Tree tree;
  tree.file("proc/self/cgroup", "4:memory:/job/rank\n0::/\n");
  for (const char* level : {"", "job/", "job/rank/"}) {
    tree.file("sys/fs/cgroup/memory/" + std::string(level) + "memory.limit_in_bytes",
              "9223372036854771712");
    tree.file("sys/fs/cgroup/memory/" + std::string(level) + "memory.usage_in_bytes", "600");
  }
  EXPECT_EQ(cgroup_memory_left(tree.root()), std::nullopt);
  tree.file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000");
  tree.file("sys/fs/cgroup/memory/job/memory.stat", "cache 300\ntotal_inactive_file 150\n");
  EXPECT_EQ(cgroup_memory_left(tree.root()), 550);
  tree.file("sys/fs/cgroup/memory/job/rank/memory.limit_in_bytes", "700");
  EXPECT_EQ(cgroup_memory_left(tree.root()), 100);
}

TEST(CgroupMemory, Version2) {
  Tree tree;
  tree.file("proc/self/cgroup", "0::/job\n");
  tree.file("sys/fs/cgroup/job/memory.max", "max");
  tree.file("sys/fs/cgroup/job/memory.current", "600");
  EXPECT_EQ(cgroup_memory_left(tree.root()), std::nullopt);
  tree.file("sys/fs/cgroup/job/memory.max", "1000");
  EXPECT_EQ(cgroup_memory_left(tree.root()), 400);
  tree.file("sys/fs/cgroup/job/memory.stat", "inactive_file 50");
  EXPECT_EQ(cgroup_memory_left(tree.root()), 450);
  tree.file("sys/fs/cgroup/job/memory.max", "500");
  EXPECT_EQ(cgroup_memory_left(tree.root()), 0);
}

TEST(MemoryKills, SayWhatTheKernelDidSinceAndForWhichLimit) {
  Tree tree;
  EXPECT_EQ(MemoryKills(tree.root()).told(), "");  // a kernel that does not count
  tree.file("proc/vmstat", "nr_free_pages 12\noom_kill 3\n");
  const MemoryKills since(tree.root());
  EXPECT_EQ(since.told(), "");
  tree.file("proc/vmstat", "nr_free_pages 12\noom_kill 4\n");
  EXPECT_THAT(since.told(), testing::HasSubstr("killed 1 process of this host for it. Remedy"));
  tree.file("proc/self/cgroup", "0::/job\n");
  tree.file("sys/fs/cgroup/job/memory.max", "1073741824");
  EXPECT_THAT(since.told(), testing::HasSubstr("(the limit of this control group: 1024 MiB)"));
}

}  // namespace
}  // namespace scalemark::memory_limit_test

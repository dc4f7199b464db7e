// Memory of a NUMA node that this machine has, and of one that it has not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "error.hpp"
#include "platform/memory_limit.hpp"

namespace scalemark::numa_memory_test {
namespace {

TEST(NumaMemory, IsThereAndZero) {
  const auto nodes = numa_nodes();
  ASSERT_FALSE(nodes.empty());
  EXPECT_TRUE(std::ranges::is_sorted(nodes));
  const NumaMemory memory(nodes.front(), 1 << 20);
  EXPECT_EQ(memory.bytes(), 1u << 20);
  const auto* bytes = static_cast<const char*>(memory.data());
  EXPECT_EQ(std::count(bytes, bytes + memory.bytes(), 0), 1 << 20);
}

TEST(NumaMemory, NamesANodeThatIsNotThere) {
  try {
    const NumaMemory memory(4711, 1 << 20);
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("NUMA node 4711"));
  }
}

}  // namespace
}  // namespace scalemark::numa_memory_test

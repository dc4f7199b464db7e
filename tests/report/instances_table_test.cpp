// What a person reads of jobs side by side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/instances/instances.hpp"
#include "report/tables.hpp"

namespace scalemark::instances_table_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

InstanceLaunch launch(std::vector<std::size_t> slots, double units, double end = 10) {
  InstanceLaunch made;
  for (const std::size_t slot : slots) {
    MeasuredInstance result;
    result.slot = slot;
    result.units = units;
    result.throughput = units / 10;
    result.latency.assign(100, 0.25);
    result.window = {0, slot == 0 ? 10 : end};
    made.instances.push_back(result);
  }
  return made;
}

InstancesResult record(const std::vector<InstanceLaunch>& launches) {
  InstancesPlan plan;
  plan.slots = {Slot{{SlotPlace{SlotPlace::Kind::cpu, {0}}}},
                Slot{{SlotPlace{SlotPlace::Kind::gpu, {1}, {}, "GPU-1", "H100"}}}};
  plan.instances = {1, 2};
  plan.own_config = {{"repeats", {1, "command_line"}}};
  return make_instances_record({plan.config, system_info(), {}}, plan, launches, {});
}

TEST(InstancesTable, AloneAndWithNeighbours) {
  const std::string text =
      instances_table(record({launch({0}, 500), launch({1}, 500), launch({0, 1}, 400)}));
  EXPECT_THAT(
      text,
      HasSubstr("Instances of resnet50 fp32, scalemark kernels (run), mean of 1 repeat, a fresh"));
  EXPECT_THAT(text, ContainsRegex("        2 +80.00 +1.600 +0.800 +1.000\n"));
  EXPECT_THAT(text, ContainsRegex("2 +1 +GPU-1 +50.00 +40.00 +0.800 +250.0 +250.0"));
  EXPECT_THAT(text, ContainsRegex("2 +0 +CPU 0 +50.00"));
  EXPECT_THAT(text, Not(HasSubstr("warning")));
  EXPECT_TRUE(text.ends_with('\n'));
}

TEST(InstancesTable, FlagsWindowsThatDoNotOverlapEnough) {
  const std::string text =
      instances_table(record({launch({0}, 500), launch({1}, 500), launch({0, 1}, 400, 5)}));
  EXPECT_THAT(text, HasSubstr("0.500!"));
  EXPECT_THAT(text, HasSubstr("warning: 2 instances: the measured windows overlap by 0.500 only"));
  EXPECT_THAT(text, HasSubstr("--max_seconds"));
}

TEST(InstancesTable, SaysWhatFailed) {
  InstanceLaunch failed = launch({0, 1}, 400);
  failed.outcome.status = Status::failed;
  failed.outcome.reason = "the instance on slot 1 (CPU 1): killed by signal 9";
  const std::string text = instances_table(record({launch({0}, 500), launch({1}, 500), failed}));
  EXPECT_THAT(text, HasSubstr("2 instances: failed: the instance on slot 1"));
  EXPECT_THAT(text, ContainsRegex("        2 +failed +- +- +-\n"));
}

}  // namespace
}  // namespace scalemark::instances_table_test

// Masks of CPUs as srun takes them: their CPUs, and refusals with the number of the entry.
#include "config/value_syntax.hpp"

#include "config_support.hpp"

namespace scalemark::cpu_masks_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Masks = std::vector<std::vector<int>>;

TEST(CpuMasks, TheLastBitIsCpu0) {
  EXPECT_EQ(parse_cpu_masks("1"), (Masks{{0}}));
  EXPECT_EQ(parse_cpu_masks("0x5,A0,0Xf00"), (Masks{{0, 2}, {5, 7}, {8, 9, 10, 11}}));
  EXPECT_EQ(parse_cpu_masks("0001"), (Masks{{0}}));
}

TEST(CpuMasks, MayBeWiderThanAWordAndStandForSeveralRanks) {
  EXPECT_EQ(parse_cpu_masks("0x8" + std::string(16, '0') + "1"), (Masks{{0, 71}}));
  EXPECT_EQ(parse_cpu_masks("0x8" + std::string(255, '0')), (Masks{{1023}}));
  EXPECT_EQ(parse_cpu_masks("0x1*2,0x2"), (Masks{{0}, {0}, {1}}));
  EXPECT_EQ(parse_cpu_masks("1*1024").size(), 1024U);
}

TEST(CpuMasks, RefusalsNameTheEntry) {
  const auto words = [](const std::string& list) {
    return refusal([&] { parse_cpu_masks(list); });
  };
  EXPECT_THAT(words(""), AllOf(HasSubstr("--cpu_masks: mask 1 "), HasSubstr("is empty")));
  EXPECT_THAT(words("0x1,,0x2"), AllOf(HasSubstr("mask 2 "), HasSubstr("is empty")));
  EXPECT_THAT(words("0x1,"), HasSubstr("mask 2 (\"\") is empty"));
  EXPECT_THAT(words("1,0x1g"), HasSubstr("mask 2 (\"0x1g\") is no hexadecimal number"));
  for (const char* wrong : {"0x", "-1", " 1", "0x0x1", "1.0", "0-3"})
    EXPECT_THAT(words(wrong), HasSubstr("no hexadecimal number")) << wrong;
  EXPECT_THAT(words("0x0"), HasSubstr("has no CPU"));
  EXPECT_THAT(words("0x1" + std::string(256, '0')), HasSubstr("more than 1024 bits"));
  for (const char* wrong : {"1*", "1*0", "1*-1", "1*x", "1*2*2", "1*99999999999999999999"})
    EXPECT_THAT(words(wrong), HasSubstr("a number of ranks")) << wrong;
  EXPECT_THAT(words("1*1000,1*25"), AllOf(HasSubstr("mask 2 "), HasSubstr("more than 1024 ranks")));
  EXPECT_THAT(words("1*9000000000000000000"), HasSubstr("more than 1024 ranks"));
}

}  // namespace
}  // namespace scalemark::cpu_masks_test

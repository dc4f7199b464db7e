// Learning-rate schedules: their text, their refusals, and the rate of every step.
#include "config/learning_rate.hpp"

#include <cmath>

#include "config_support.hpp"

namespace scalemark::learning_rate_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

LearningRate rate_of(const Words& arguments, std::int64_t global_batch_size = 32) {
  return {load(arguments).config, global_batch_size};
}

TEST(ScheduleText, IsReadAndWrittenBack) {
  const std::string written[] = {"constant",    "polynomial",        "vaswani",
                                 "0.1;30;0.01", "0.3;10;0.2;25;0.1", "1;100s;0.5;200s;0"};
  for (const std::string& text : written) EXPECT_EQ(to_string(parse_lr_schedule(text)), text);
  const LearningRateSchedule epochs = parse_lr_schedule("3e-1;10;0.2;25;0.1");
  EXPECT_THAT(epochs.rates, ElementsAre(0.3, 0.2, 0.1));
  EXPECT_THAT(epochs.boundaries, ElementsAre(10, 25));
  EXPECT_FALSE(epochs.in_steps);
  EXPECT_TRUE(parse_lr_schedule("1;5s;2").in_steps);
}

TEST(ScheduleText, RefusalsSayWhatWouldBeRight) {
  const auto why = [](const std::string& text) {
    return refusal([&] { parse_lr_schedule(text); });
  };
  EXPECT_THAT(why("vaswanni"), AllOf(HasSubstr("did you mean vaswani"), HasSubstr("LR0;E1;LR1")));
  EXPECT_THAT(why("cosine"), HasSubstr("legal: constant, polynomial, vaswani"));
  for (const char* odd : {"0.1", "0.1;30", "0.1;30;0.01;60", ";", "0.1;"})
    EXPECT_THAT(why(odd), HasSubstr("a rate, then boundary and rate in turn")) << odd;
  EXPECT_THAT(why("x;1;0.1"), HasSubstr("\"x\" is no learning rate"));
  EXPECT_THAT(why("0.1;1;-1"), HasSubstr("\"-1\" is no learning rate"));
  EXPECT_THAT(why("0.1;1;nan"), HasSubstr("\"nan\" is no learning rate"));
  for (const char* boundary : {"0.1;0;1", "0.1;1.5;1", "0.1;s;1", "0.1;1000001;1", "0.1; 3;1"})
    EXPECT_THAT(why(boundary), HasSubstr("is no epoch from 1 to 1000000")) << boundary;
  EXPECT_THAT(why("1;5;2;5;3"), HasSubstr("must ascend"));
  EXPECT_THAT(why("1;5;2;9s;3"), HasSubstr("mixes epochs and steps"));
}

TEST(Schedule, WithoutOneTheRateIsConstant) {
  const LearningRate rate = rate_of({"--init_learning_rate=0.3"});
  EXPECT_EQ(rate.at(0), 0.3);
  EXPECT_EQ(rate.at(1'000'000'000), 0.3);
}

TEST(Schedule, AWarmUpRisesToTheInitialRate) {
  const LearningRate rate = rate_of({"--init_learning_rate=0.4", "--lr_warmup_steps=4"});
  EXPECT_DOUBLE_EQ(rate.at(0), 0.1);
  EXPECT_DOUBLE_EQ(rate.at(2), 0.3);
  EXPECT_EQ(rate.at(3), 0.4);
  EXPECT_EQ(rate.at(4), 0.4);
}

TEST(Schedule, PiecewiseEpochsAreThoseOfTfCnnBenchmarks) {
  // The steps that its own test expects of a batch of 32: 3 and 5 epochs of 1,281,167 images.
  const LearningRate rate = rate_of({"--lr_schedule=1;3;.1;5;.01"}, 32);
  EXPECT_EQ(rate.at(0), 1);
  EXPECT_EQ(rate.at(120'108), 1);
  EXPECT_EQ(rate.at(120'109), 0.1);
  EXPECT_EQ(rate.at(200'181), 0.1);
  EXPECT_EQ(rate.at(200'182), 0.01);
  EXPECT_EQ(rate.at(100'000'000), 0.01);
  EXPECT_EQ(rate_of({"--lr_schedule=1;3;.1"}, 64).at(60'054), 0.1);  // half the steps
}

TEST(Schedule, PiecewiseStepsDoNotDependOnTheBatch) {
  for (const std::int64_t batch : {1, 4096}) {
    const LearningRate rate =
        rate_of({"--model=transformer_tiny", "--lr_schedule=8;100s;4;101s;2"}, batch);
    EXPECT_EQ(rate.at(99), 8);
    EXPECT_EQ(rate.at(100), 4);
    EXPECT_EQ(rate.at(101), 2);
  }
  EXPECT_EQ(load({"--lr_schedule=8;100s;4"}).config.init_learning_rate, 8);
  const LearningRate warm = rate_of({"--lr_schedule=8;2s;4", "--lr_warmup_steps=4"});
  EXPECT_EQ(warm.at(0), 2);
  EXPECT_EQ(warm.at(2), 3);  // 3/4 of the rate that holds
}

TEST(Schedule, VaswaniIsThePapersEquation) {
  const LearningRate rate = rate_of({"--model=transformer_big", "--lr_schedule=vaswani"});
  for (const double s : {1., 17., 3999., 4000., 4001., 100'000.}) {
    const double paper =
        std::pow(1024., -0.5) * std::min(std::pow(s, -0.5), s * std::pow(4000., -1.5));
    EXPECT_NEAR(rate.at(static_cast<std::int64_t>(s) - 1), paper, 1e-14) << s;
  }
  const LearningRate scaled =
      rate_of({"--lr_schedule=vaswani", "--init_learning_rate=0.2", "--lr_warmup_steps=100"});
  EXPECT_DOUBLE_EQ(scaled.at(49), 0.1);
  EXPECT_EQ(scaled.at(99), 0.2);
  EXPECT_DOUBLE_EQ(scaled.at(399), 0.1);
}

TEST(Schedule, PolynomialGoesFromTheInitialRateToTheEnd) {
  const LearningRate line =
      rate_of({"--lr_schedule=polynomial", "--init_learning_rate=1", "--lr_decay_steps=10"});
  for (std::int64_t step = 0; step <= 10; ++step)
    EXPECT_NEAR(line.at(step), 1 - 0.1 * static_cast<double>(step), 1e-15) << step;
  EXPECT_EQ(line.at(11), 0);
  const LearningRate bent =
      rate_of({"--lr_schedule=polynomial", "--init_learning_rate=1.1", "--lr_warmup_steps=4",
               "--lr_decay_steps=14", "--lr_end=0.1", "--lr_power=2"});
  EXPECT_DOUBLE_EQ(bent.at(0), 1.1 / 4);
  EXPECT_EQ(bent.at(3), 1.1);
  EXPECT_EQ(bent.at(4), 1.1);
  EXPECT_DOUBLE_EQ(bent.at(9), 0.1 + 0.25);
  EXPECT_DOUBLE_EQ(bent.at(14), 0.1);
  EXPECT_DOUBLE_EQ(bent.at(1000), 0.1);
}

TEST(Schedule, PolynomialEndsWithTheRunByDefault) {
  const LearningRate rate = rate_of({"--lr_schedule=polynomial", "--init_learning_rate=1",
                                     "--num_warmup_batches=10", "--num_batches=90"});
  EXPECT_DOUBLE_EQ(rate.at(50), 0.5);
  EXPECT_NEAR(rate.at(99), 0.01, 1e-15);
}

TEST(ScheduleKeys, AreRefusedWhereTheyMeanNothing) {
  EXPECT_THAT(refused({"--lr_schedule=vaswanni"}),
              AllOf(HasSubstr("--lr_schedule: unknown"), HasSubstr("vaswani")));
  EXPECT_THAT(refused({"--lr_decay_steps=5"}), HasSubstr("belong to --lr_schedule polynomial"));
  EXPECT_THAT(refused({"--lr_schedule=vaswani", "--lr_end=1"}), HasSubstr("polynomial"));
  EXPECT_THAT(refused({"--lr_power=2"}), HasSubstr("not to \"constant\""));
  EXPECT_THAT(refused({"--lr_schedule=1;2;3", "--init_learning_rate=1"}),
              AllOf(HasSubstr("--init_learning_rate"), HasSubstr("give one of the two")));
  EXPECT_THAT(refused({"--lr_schedule=1;2;3", "--model=transformer_big"}),
              AllOf(HasSubstr("an epoch is 1,281,167 images"), HasSubstr("1000s")));
  EXPECT_THAT(refused({"--lr_schedule=vaswani"}),
              AllOf(HasSubstr("resnet50"), HasSubstr("give --init_learning_rate")));
  EXPECT_THAT(refused({"--model=transformer_tiny", "--lr_schedule=vaswani", "--lr_warmup_steps=0"}),
              HasSubstr("give 1 or more"));
  EXPECT_THAT(refused({"--lr_schedule=polynomial", "--lr_warmup_steps=110"}),
              HasSubstr("--lr_decay_steps 110 must be more than --lr_warmup_steps 110"));
  for (const char* flag : {"--lr_schedule=polynomial", "--lr_warmup_steps=1", "--clip_norm=1"})
    EXPECT_THAT(refused({"--forward_only", flag}), HasSubstr("there is no update")) << flag;
  EXPECT_THAT(refused({"--clip_norm=0"}), HasSubstr("out of range"));
}

TEST(ScheduleKeys, AFileMaySetThem) {
  const TemporaryFile file(R"({"lr_schedule": "0.10;5s;1e-2", "clip_norm": 2})");
  const RunConfig config = load({"--config", file.path()}).config;
  EXPECT_EQ(to_string(config.lr_schedule), "0.1;5s;0.01");
  EXPECT_EQ(config.clip_norm, 2);
  const TemporaryFile wrong(R"({"lr_schedule": "0.1;5"})");
  EXPECT_THAT(refused({"--config", wrong.path()}), HasSubstr("/lr_schedule: "));
}

}  // namespace
}  // namespace scalemark::learning_rate_test

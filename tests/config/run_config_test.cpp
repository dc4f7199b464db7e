// Batch plans, hashes and what records say of a configuration.
#include "config/run_config.hpp"

#include <cmath>
#include <set>

#include "config/keys.hpp"
#include "config/names.hpp"
#include "config/text.hpp"
#include "config_support.hpp"

namespace scalemark::run_config_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RunConfig batches(std::optional<std::int64_t> batch, std::optional<std::int64_t> global,
                  Scaling scaling = Scaling::weak) {
  RunConfig config;
  config.batch_size = batch;
  config.global_batch_size = global;
  config.scaling = scaling;
  return config;
}

TEST(BatchPlanning, WeakFixesTheBatchOfARank) {
  EXPECT_EQ(plan_batch(batches(4, {}), 3).global_batch_size, 12);
  EXPECT_EQ(plan_batch(batches(4, {}), 3).batch_size_per_rank, 4);
  EXPECT_EQ(plan_batch(batches({}, {}), 2).batch_size_per_rank, 16);  // resnet50's default
  EXPECT_EQ(plan_batch(batches({}, 12), 3).batch_size_per_rank, 4);
  EXPECT_EQ(plan_batch(batches(4, 12), 3).batch_size_per_rank, 4);
}

TEST(BatchPlanning, StrongFixesTheGlobalBatch) {
  EXPECT_EQ(plan_batch(batches({}, 12, Scaling::strong), 3).batch_size_per_rank, 4);
  EXPECT_EQ(plan_batch(batches({}, 12, Scaling::strong), 3).global_batch_size, 12);
  EXPECT_THAT(refusal([] { plan_batch(batches(4, {}, Scaling::strong), 2); }),
              HasSubstr("--global_batch_size"));
}

TEST(BatchPlanning, RefusalsNameTheNearestLegalValues) {
  EXPECT_THAT(refusal([] { plan_batch(batches({}, 13, Scaling::strong), 4); }),
              HasSubstr("12 and 16"));
  EXPECT_THAT(refusal([] { plan_batch(batches({}, 3, Scaling::strong), 4); }),
              HasSubstr("nearest legal value is 4"));
  EXPECT_THAT(refusal([] { plan_batch(batches(4, 13), 3); }),
              AllOf(HasSubstr("12"), HasSubstr("13")));
  EXPECT_THAT(refusal([] { plan_batch(batches(4, {}), 0); }), HasSubstr("at least one rank"));
}

TEST(RanksOfShards, AreThoseOfAGroupAndDivideTheOthers) {
  RunConfig config = batches(4, {});
  EXPECT_EQ(ranks_of_shards(config, 8), 1);
  config.shard = Shard::parameters;
  EXPECT_EQ(ranks_of_shards(config, 8), 8);
  config.shard_ranks = 4;
  EXPECT_EQ(ranks_of_shards(config, 8), 4);
  for (const std::int64_t fewer : {1, 2, 3, 4}) EXPECT_EQ(ranks_of_shards(config, fewer), fewer);
  for (const auto& refused : {std::function([&] { ranks_of_shards(config, 6); }),
                              std::function([&] { plan_batch(config, 6); })})
    EXPECT_THAT(refusal(refused), AllOf(HasSubstr("--shard_ranks 4 does not divide 6 ranks"),
                                        HasSubstr("1, 2, 3, 6")));
}

RunConfig tokens(std::int64_t count, std::optional<std::int64_t> micro = {}) {
  RunConfig config;
  config.model = "transformer_big";
  config.scaling = Scaling::strong;
  config.global_batch_tokens = count;
  config.micro_batch_size = micro;
  return config;
}

TEST(BatchPlanning, TokensAreDividedIntoSequencesAndMicroBatches) {
  const BatchPlan plan = plan_batch(tokens(16'384, 8), 2);
  EXPECT_EQ(plan.global_batch_size, 256);
  EXPECT_EQ(plan.batch_size_per_rank, 128);
  EXPECT_EQ(plan.micro_batches(), 16);
  EXPECT_EQ(plan_batch(tokens(128), 1).micro_batch_size, 2);      // all at once
  EXPECT_EQ(plan_batch(tokens(128, 16), 1).micro_batch_size, 2);  // no more than there is
}

TEST(BatchPlanning, RefusalsOfTokensAndMicroBatchesNameTheNearestLegalValues) {
  EXPECT_THAT(refusal([] { plan_batch(tokens(100), 1); }), HasSubstr("64 and 128"));
  EXPECT_THAT(refusal([] { plan_batch(tokens(320), 2); }), HasSubstr("256 and 384"));
  EXPECT_THAT(refusal([] { plan_batch(tokens(768, 5), 1); }), HasSubstr("4 and 6"));
  RunConfig both = tokens(128);
  both.global_batch_size = 2;
  EXPECT_THAT(refusal([&] { plan_batch(both, 1); }), HasSubstr("give one"));
  RunConfig images = batches({}, {}, Scaling::strong);
  images.global_batch_tokens = 64;
  EXPECT_THAT(refusal([&] { plan_batch(images, 1); }), HasSubstr("--global_batch_size"));
}

TEST(Resolved, FillsInTheDefaultsOfTheModel) {
  const ResolvedConfig images;
  EXPECT_EQ(images.optimizer, Optimizer::momentum);
  EXPECT_EQ(images.init_learning_rate, 0.1);
  EXPECT_EQ(images.image_size, 224);
  EXPECT_FALSE(images.sequence_length);
  const ResolvedConfig translation(tokens(64));
  EXPECT_EQ(translation.optimizer, Optimizer::adam);
  EXPECT_EQ(translation.init_learning_rate, 1e-4);
  EXPECT_EQ(translation.sequence_length, 64);
  EXPECT_EQ(translation.dropout, 0.1);
  RunConfig scheduled = tokens(64);
  scheduled.lr_schedule = {LearningRateSchedule::Shape::vaswani};
  EXPECT_EQ(ResolvedConfig(scheduled).lr_warmup_steps, 4000);
  EXPECT_DOUBLE_EQ(*ResolvedConfig(scheduled).init_learning_rate, 1 / std::sqrt(1024. * 4000));
  EXPECT_FALSE(translation.image_size);
}

TEST(Resolved, TheRateIsNoMoreThanTheModelBears) {
  RunConfig config;
  config.model = "vgg16";
  EXPECT_EQ(ResolvedConfig(config).init_learning_rate, 0.005);
  EXPECT_EQ(ResolvedConfig(config).dropout, 0.5);
  config.optimizer = Optimizer::adam;
  EXPECT_EQ(ResolvedConfig(config).init_learning_rate, 1e-4);
  config.init_learning_rate = 0.1;
  EXPECT_EQ(ResolvedConfig(config).init_learning_rate, 0.1);
}

TEST(Resolved, RatesAreThoseOfTheOptimizer) {
  RunConfig config;
  config.model = "bert_base";
  const ResolvedConfig pretraining(config);
  EXPECT_EQ(pretraining.optimizer, Optimizer::adamw);
  EXPECT_EQ(pretraining.adam_beta2, 0.999);
  EXPECT_EQ(pretraining.weight_decay, 0.01);
  config.optimizer = Optimizer::adam;
  EXPECT_EQ(ResolvedConfig(config).adam_beta2, 0.98);
  EXPECT_EQ(ResolvedConfig(config).weight_decay, 0);
  config.adam_beta2 = 0.9;
  EXPECT_EQ(ResolvedConfig(config).adam_beta2, 0.9);
}

TEST(Ranks, AutoIsPowersOfTwoAndTheLargest) {
  EXPECT_THAT(default_ranks(1), ElementsAre(1));
  EXPECT_THAT(default_ranks(2), ElementsAre(1, 2));
  EXPECT_THAT(default_ranks(6), ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(default_ranks(8), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(default_ranks(24, 6), ElementsAre(1, 2, 4, 6, 12, 24));  // whole nodes
  EXPECT_THAT(default_ranks(18, 6), ElementsAre(1, 2, 4, 6, 12, 18));
  EXPECT_THAT(default_ranks(4, 8), ElementsAre(1, 2, 4));
  EXPECT_THAT(default_ranks(3, 1), ElementsAre(1, 2, 3));
}

/// A configuration in which `key` differs from `base`.
RunConfig changed(const Key& key, const RunConfig& base) {
  RunConfig config = base;
  const nlohmann::ordered_json before = key.get(base);
  switch (key.kind) {
    case Kind::boolean:
      key.set(config, !before.get<bool>());
      break;
    case Kind::integer:
      key.set(config, before.is_null() ? 32 : before.get<std::int64_t>() + 1);
      break;
    case Kind::real:
      key.set(config, before.is_null() || before == 0 ? key.highest : before.get<double>() / 2);
      break;
    case Kind::choice:
      // Also from what an unset key is resolved to.
      for (const std::string& word : key.choices) {
        key.set(config, check_value(key, word, "test"));
        if (key.get(config) != before && key.get(config) != key.get(ResolvedConfig(base))) break;
      }
      break;
    case Kind::integers:
      key.set(config, std::vector<std::int64_t>{1, 2});
      break;
    case Kind::injection:
      key.set(config, "kill:rank=1");
      break;
    case Kind::schedule:
      key.set(config, "polynomial");
      break;
    case Kind::text:
      key.set(config, "text");
      break;
  }
  if (key.name == "batch_size" || key.name == "global_batch_size") key.set(config, 64);
  if (key.name == "scaling") config.global_batch_size = plan_batch(base, 2).global_batch_size;
  return config;
}

TEST(Hash, EveryIdentityAndMeasurementKeyChangesItAndNoOther) {
  std::set<std::string> hashes;
  for (const Key& key : all_keys()) {
    RunConfig base;
    base.model = model_with(key.name);
    base.batch_size = key.name == "global_batch_tokens" ? base.batch_size : 64;
    if (key.name == "global_batch_size" || key.name == "batch_size") base.batch_size.reset();
    const Command command = recorded(key, Command::run)     ? Command::run
                            : recorded(key, Command::infer) ? Command::infer
                                                            : Command::preflight;
    const std::string hash = config_hash(base, 2, command);
    hashes.insert(hash);
    const RunConfig other = changed(key, base);
    ASSERT_NE(key.get(other), key.get(base)) << key.name;
    if (key.role == Role::output || key.name == "ranks") {
      EXPECT_EQ(config_hash(other, 2, command), hash) << key.name;
    } else if (key.name.find("batch_") != key.name.npos) {
      EXPECT_NE(config_hash(other, 2, command), hash)
          << key.name;  // two ways to the same batch hash alike
    } else {
      EXPECT_TRUE(hashes.insert(config_hash(other, 2, command)).second) << key.name;
    }
  }
  EXPECT_NE(config_hash(RunConfig{}, 1), config_hash(RunConfig{}, 2));
}

TEST(Hash, CoversTheKeysOfTheCommand) {
  RunConfig other;
  other.momentum = 0.5;  // inference has none
  other.overlap = Overlap::backward;
  EXPECT_EQ(config_hash(other, 2, Command::infer), config_hash(RunConfig{}, 2, Command::infer));
  other = {};
  other.latency_quantile = 0.9;  // training has no such thing
  EXPECT_EQ(config_hash(other, 2), config_hash(RunConfig{}, 2));
  EXPECT_NE(config_hash(other, 2, Command::infer), config_hash(RunConfig{}, 2, Command::infer));
}

TEST(Hash, DefaultsAreResolved) {
  RunConfig written;
  written.batch_size = 16;
  written.image_size = 224;
  EXPECT_EQ(config_hash(written, 4), config_hash(RunConfig{}, 4));
  written.global_batch_size = 64;
  EXPECT_EQ(config_hash(written, 4), config_hash(RunConfig{}, 4));
}

TEST(Hash, IsSha256OfSortedCompactJson) {
  const std::string hash = config_hash(RunConfig{}, 2);
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), hash.npos);
  const std::string canonical = hashed_config(RunConfig{}, 2).dump();
  EXPECT_THAT(canonical, AllOf(HasSubstr("{\"adam_beta1\":0.9,"),
                               HasSubstr(",\"baseline\":true,\"batch_size\":16,")));
  EXPECT_THAT(canonical, Not(HasSubstr(" ")));
}

TEST(Hash, DiffersInTheKeysThatMakeRunsUnlike) {
  RunConfig other;
  other.seed = 99;
  const auto patch = nlohmann::json::diff(hashed_config(RunConfig{}, 2), hashed_config(other, 2));
  ASSERT_EQ(patch.size(), 1u);
  EXPECT_EQ(patch[0]["path"], "/seed");
}

TEST(Names, EveryWordOfAChoiceIsRead) {
  for (const Key& key : all_keys()) {
    if (key.kind != Kind::choice) continue;
    for (const std::string& word : key.choices) {
      RunConfig config;
      key.set(config, check_value(key, word, "test"));
      EXPECT_EQ(key.get(config), check_value(key, word, "test")) << key.name;
    }
  }
  EXPECT_EQ(to_string(CommunicatorKind::automatic), "auto");
  EXPECT_EQ(from_string<Precision>("bf16"), Precision::bf16);
  EXPECT_EQ(from_string<Precision>("fp8"), std::nullopt);
}

TEST(Text, NearestNames) {
  EXPECT_EQ(nearest_name("rnu", {"run", "scale", "list"}), "run");
  EXPECT_EQ(nearest_name("sclae", {"run", "scale", "list"}), "scale");
  EXPECT_EQ(nearest_name("zzz", {"run", "scale", "list"}), "");
  EXPECT_EQ(nearest_name("", {"run"}), "");
}

TEST(Text, QuotingIsSafeOnATerminal) {
  EXPECT_EQ(quote("a\x1b[2J\n"), "\"a\\u001b[2J\\n\"");
  EXPECT_EQ(quote("\xff").find('\xff'), std::string::npos);
  EXPECT_LT(quote(std::string(1000, 'x')).size(), 70u);
}

}  // namespace
}  // namespace scalemark::run_config_test

// Layers and refusals of the configuration: what wins, and what a refusal says.
#include "config/load.hpp"

#include <cstdlib>
#include <limits>
#include <map>

#include "config/keys.hpp"
#include "config_support.hpp"

namespace scalemark::load_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Load, DefaultsAreThoseOfRunConfig) {
  const LoadedConfig loaded = load({});
  const auto json = config_to_json(loaded);
  for (const Key& key : all_keys()) {
    const bool of_training =
        key.commands.contains(Command::run) || key.commands.contains(Command::scale);
    EXPECT_EQ(json.contains(key.name), of_training) << key.name;
    if (!of_training) continue;
    EXPECT_EQ(json[key.name]["value"], key.get(ResolvedConfig{})) << key.name;
    EXPECT_EQ(json[key.name]["origin"], "default") << key.name;
  }
  EXPECT_TRUE(loaded.warnings.empty());
}

TEST(Load, LaterLayersWinAndOriginsSayWhich) {
  const TemporaryFile file(R"({"seed": 1, "num_batches": 11, "momentum": 0.5})");
  const LoadedConfig loaded = load({"--config", file.path(), "--seed=3"},
                                   {"SCALEMARK_SEED=2", "SCALEMARK_NUM_BATCHES=22", "PATH=/bin"});
  EXPECT_EQ(loaded.config.seed, 3);
  EXPECT_EQ(loaded.config.num_batches, 22);
  EXPECT_EQ(loaded.config.momentum, 0.5);
  EXPECT_EQ(loaded.origins.at("seed"), Origin::command_line);
  EXPECT_EQ(loaded.origins.at("num_batches"), Origin::environment);
  EXPECT_EQ(loaded.origins.at("momentum"), Origin::file);
  EXPECT_EQ(loaded.origins.at("model"), Origin::standard);
}

TEST(Load, TheFileMayComeFromAVariable) {
  const TemporaryFile file(R"({"seed": 5})");
  EXPECT_EQ(load({}, {"SCALEMARK_CONFIG=" + file.path()}).config.seed, 5);
}

TEST(Load, DashesAndUnderscoresAreAlike) {
  EXPECT_EQ(load({"--num-batches", "7"}).config.num_batches, 7);
  EXPECT_EQ(load({"--num_batches=8"}).config.num_batches, 8);
  EXPECT_EQ(load({"--set", "num-batches=9"}).config.num_batches, 9);
}

TEST(Load, TheLastOfSeveralCounts) {
  EXPECT_EQ(load({"--seed=1", "--set", "seed=2"}).config.seed, 2);
  EXPECT_EQ(load({"--set", "seed=2", "--seed=1"}).config.seed, 1);
}

TEST(Load, BooleansHaveManySpellings) {
  EXPECT_TRUE(load({"--json"}).config.json);
  EXPECT_TRUE(load({"--json=yes"}).config.json);
  EXPECT_FALSE(load({"--json", "--nojson"}).config.json);
  EXPECT_FALSE(load_scale({"--no-baseline"}).config.baseline);
  EXPECT_FALSE(load_scale({"--baseline=false"}).config.baseline);
  EXPECT_TRUE(load({"--set", "json=1"}).config.json);
  EXPECT_THAT(refused({"--json=maybe"}), AllOf(HasSubstr("--json"), HasSubstr("true or false")));
  EXPECT_THAT(refused({"--json", "true"}), HasSubstr("unexpected argument"));
}

TEST(Load, ImagesAreAsLargeAsTheNetworkNeeds) {
  EXPECT_EQ(load({"--model=inception3", "--image_size=75"}).config.image_size, 75);
  for (const Command command : {Command::run, Command::infer})
    EXPECT_THAT(refused({"--model=inception3", "--image_size=74"}, {}, command),
                AllOf(HasSubstr("--image_size 74"), HasSubstr("75 pixels")));
}

TEST(Load, EmptyVariablesCountAsUnset) {
  EXPECT_EQ(load({}, {"SCALEMARK_SEED="}).config.seed, RunConfig{}.seed);
}

TEST(Load, UnknownVariablesOnlyWarn) {
  const auto warnings =
      load({}, {"SCALEMARK_NUM_BATCHS=3", "SMK_INTERNAL_HANDOVER=/tmp/x"}).warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0],
              AllOf(HasSubstr("SCALEMARK_NUM_BATCHS"), HasSubstr("mean SCALEMARK_NUM_BATCHES")));
}

TEST(Load, ValuesMayBeginWithDashes) {
  EXPECT_EQ(load({"--label", "--odd"}).config.label, "--odd");
}

TEST(Load, DataFormatTakesBothVocabularies) {
  EXPECT_EQ(load({"--data_format=NCHW"}).config.data_format, DataFormat::channels_first);
  EXPECT_EQ(load({"--data_format=channels_last"}).config.data_format, DataFormat::channels_last);
  EXPECT_EQ(config_to_json(load({"--data_format=NHWC"}))["data_format"]["value"], "channels_last");
}

TEST(Load, RanksAreAListOrAuto) {
  EXPECT_EQ(load_scale({"--ranks", "1,2,4"}).config.ranks, (std::vector<std::int64_t>{1, 2, 4}));
  EXPECT_TRUE(load_scale({"--ranks", "auto"}).config.ranks.empty());
  EXPECT_THAT(refusal([] { load_scale({"--ranks", "4,1,2,2"}); }), HasSubstr("1,2,4"));
  for (const char* bad :
       {"", "0", "-1", "1,", ",1", "1,x", "1;2", "1 2", "1,2000000", "all", "[1]"})
    EXPECT_THAT(refusal([&] { load_scale({"--ranks", bad}); }), HasSubstr("--ranks")) << bad;
}

TEST(Load, C10dRefusesWhatItCannotDo) {
  EXPECT_EQ(load({"--reducer", "c10d"}).config.reducer, Reducer::c10d);
  EXPECT_NO_THROW(load({"--reducer=c10d", "--overlap=backward", "--communicator=nccl"}));
  const std::vector<Words> flags{{"--overlap", "none"},      {"--wire_dtype", "bf16"},
                                 {"--communicator", "none"}, {"--communicator", "mpi"},
                                 {"--forward_only"},         {"--embedding_gradients", "sparse"}};
  for (Words words : flags) {
    const std::string flag = words.front();
    words.insert(words.begin(), {"--reducer", "c10d"});
    EXPECT_THAT(refused(words), AllOf(HasSubstr("--reducer c10d"), HasSubstr(flag)));
  }
}

TEST(Load, AFileMayHoldKeysOfScaleAndServeRun) {
  const TemporaryFile file(R"({"ranks": [1, 2], "repeats": 2})");
  EXPECT_EQ(load({"--config", file.path()}).config.repeats, 2);
}

TEST(Load, RanksOfAFileOrVariableAreACurveAndStartNoRun) {
  const TemporaryFile file(R"({"ranks": [2]})");
  EXPECT_TRUE(load({"--config", file.path()}).config.ranks.empty());
  EXPECT_TRUE(load({}, {"SCALEMARK_RANKS=2"}).config.ranks.empty());
  EXPECT_EQ(load({"--ranks", "2"}).config.ranks, std::vector<std::int64_t>{2});
  EXPECT_EQ(load({}, {"SCALEMARK_RANKS=2"}, Command::scale).config.ranks.size(), 1u);
}

TEST(Infer, HasTheKeysOfAForwardPass) {
  const TemporaryFile file(
      R"({"num_batches": 7, "momentum": 0.5, "scaling": "strong", "global_batch_size": 6})");
  const LoadedConfig loaded = load({"--config", file.path(), "--kernels", "torch"},
                                   {"SCALEMARK_OVERLAP=backward"}, Command::infer);
  EXPECT_EQ(loaded.config.num_batches, 7);
  EXPECT_EQ(loaded.config.kernels, Kernels::torch);
  EXPECT_EQ(loaded.config.momentum, RunConfig{}.momentum);  // of training: as good as not there
  EXPECT_EQ(loaded.config.global_batch_size, std::nullopt);
  EXPECT_EQ(loaded.origins.at("momentum"), Origin::standard);
  const auto json = config_to_json(loaded);
  EXPECT_EQ(json["kernels"]["origin"], "command_line");
  for (const Key& key : all_keys())
    EXPECT_EQ(json.contains(key.name), key.commands.contains(Command::infer)) << key.name;
}

TEST(Infer, ASingleStreamAsksOneSampleAtATime) {
  const auto batch_size = [](const Words& words) {
    return load(words, {}, Command::infer).config.batch_size;
  };
  EXPECT_EQ(batch_size({"--mode", "single_stream"}), 1);
  EXPECT_EQ(batch_size({"--mode", "single_stream", "--batch_size", "4"}), 4);
  EXPECT_EQ(batch_size({"--mode", "batch"}), std::nullopt);
}

TEST(Preflight, HasKeysOfItsOwnAndForgetsThoseOfTraining) {
  const TemporaryFile file(R"({"momentum": 0.5, "sizes": [8, 1024], "num_batches": 7})");
  const LoadedConfig loaded =
      load({"--config", file.path(), "--seconds=0.5", "--pinning"}, {}, Command::preflight);
  EXPECT_EQ(loaded.config.sizes, (std::vector<std::int64_t>{8, 1024}));
  EXPECT_TRUE(loaded.config.pinning);
  EXPECT_EQ(loaded.config.num_batches, RunConfig{}.num_batches);
  const auto json = config_to_json(loaded);
  for (const Key& key : all_keys())
    EXPECT_EQ(json.contains(key.name), key.commands.contains(Command::preflight)) << key.name;
}

TEST(Preflight, RefusesWhatItHasNot) {
  EXPECT_THAT(refused({"--model=resnet50"}, {}, Command::preflight), HasSubstr("scalemark run"));
  EXPECT_THAT(refused({"--sizes=8,4"}, {}, Command::preflight), HasSubstr("4,8"));
  EXPECT_THAT(refused({"--sizes=0"}, {}, Command::preflight), HasSubstr("4 to 8589934592"));
  EXPECT_THAT(refused({"--inject=nan_loss"}, {}, Command::preflight),
              HasSubstr("corrupt_allreduce"));
  EXPECT_THAT(refused({"--pinning", "--make_rules=r.json"}, {}, Command::preflight),
              HasSubstr("--make_rules"));
  EXPECT_THAT(refused({"--cpu_masks=ff"}, {}, Command::preflight), HasSubstr("give --pinning"));
  EXPECT_THAT(refused({"--pinning", "--cpu_masks=ff,x"}, {}, Command::preflight),
              HasSubstr("--cpu_masks: mask 2"));
  EXPECT_THAT(refused({"--pinning", "--cpu_masks=ff", "--ranks=2"}, {}, Command::preflight),
              HasSubstr("leave out --ranks"));
  EXPECT_THAT(refused({"--seconds=10", "--timeout=10"}, {}, Command::preflight),
              HasSubstr("--timeout 10"));
  EXPECT_THAT(refused({"--pinning"}), HasSubstr("but of scalemark preflight"));
}

TEST(Infer, RefusesFlagsOfTrainingAndTrainingThoseOfInfer) {
  EXPECT_THAT(refused({"--optimizer", "adam"}, {}, Command::infer),
              AllOf(HasSubstr("not a flag of scalemark infer"), HasSubstr("scalemark run")));
  EXPECT_THAT(refused({"--mode", "batch"}), HasSubstr("but of scalemark infer"));
  EXPECT_THAT(refused({"--inject", "corrupt_allreduce"}, {}, Command::infer),
              HasSubstr("allreduce"));
  EXPECT_THAT(refused({"--mode", "multi_stream"}, {}, Command::infer),
              HasSubstr("batch, single_stream"));
}

TEST(LargestBatch, IsAWordInEverySource) {
  const TemporaryFile file(R"({"batch_size": "max"})");
  for (const Words& words : {Words{"--batch_size", "max"}, Words{"--config", file.path()},
                             Words{"--set=batch_size=max"}}) {
    const LoadedConfig loaded = load(words);
    EXPECT_TRUE(loaded.config.largest_batch);
    EXPECT_EQ(loaded.config.batch_size, std::nullopt);
    EXPECT_EQ(config_to_json(loaded)["batch_size"]["value"], "max");
  }
  const LoadedConfig number = load({"--config", file.path(), "--batch_size", "8"});
  EXPECT_FALSE(number.config.largest_batch);
  EXPECT_EQ(number.config.batch_size, 8);
}

TEST(LargestBatch, OnceFoundTheRecordHasTheNumberAndItsOrigin) {
  LoadedConfig loaded = load({"--batch_size", "max"});
  EXPECT_THROW(plan_batch(loaded.config, 2), ConfigError);
  loaded.config.batch_size = 24;
  EXPECT_EQ(config_to_json(loaded)["batch_size"]["value"], 24);
  EXPECT_EQ(config_to_json(loaded)["batch_size"]["origin"], "command_line");
  EXPECT_EQ(config_hash(loaded.config, 2), config_hash(load({"--batch_size=24"}).config, 2));
}

TEST(LargestBatch, RefusesWhatSettlesTheBatchToo) {
  for (const auto& [flag, remedy] :
       std::map<std::string, std::string>{{"--global_batch_size=64", "use weak scaling without"},
                                          {"--global_batch_tokens=64", "use weak scaling without"},
                                          {"--micro_batch_size=2", "leave out --micro_batch_size"},
                                          {"--dry_run", "give a number"}})
    EXPECT_THAT(refused({"--batch_size=max", flag}), HasSubstr(remedy)) << flag;
  EXPECT_THAT(refused({"--batch_size=maximum"}), HasSubstr("1 to 1000000, or max"));
  EXPECT_THAT(refusal([] {
                load({"--batch_size=max", "--mode=single_stream"}, {}, Command::infer);
              }),
              HasSubstr("single stream"));
  EXPECT_THAT(refusal([] {
                load_scale({"--batch_size=max", "--base_batch_size=4"});
              }),
              HasSubstr("leave out --base_batch_size"));
}

TEST(Refusals, CheckpointsNeedTrainingAndAnInterval) {
  EXPECT_THAT(refused({"--checkpoint_every=5", "--forward_only"}), HasSubstr("--forward_only"));
  EXPECT_THAT(refused({"--checkpoint_dir=x"}), HasSubstr("--checkpoint_every N"));
  // Of shards every rank writes its part.
  for (const char* writers : {"--checkpoint_writers=root", "--checkpoint_writers=node"})
    EXPECT_THAT(refused({"--shard=optimizer", "--checkpoint_every=5", writers}),
                HasSubstr("leave it out, or give rank"));
  EXPECT_EQ(load({"--shard=optimizer", "--checkpoint_every=5"}).config.checkpoint_every, 5);
  EXPECT_EQ(load({"--shard=optimizer", "--checkpoint_every=5", "--checkpoint_writers=rank"})
                .config.checkpoint_writers,
            CheckpointWriters::rank);
}

TEST(Refusals, UnknownFlagsNameTheNearest) {
  EXPECT_THAT(refused({"--num_batchs", "3"}),
              AllOf(HasSubstr("--num_batchs"), HasSubstr("mean --num_batches?")));
  EXPECT_THAT(refused({"--xyzzyxyzzy=3"}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(refused({"--set", "momentun=3"}), HasSubstr("mean --momentum?"));
  EXPECT_THAT(refused({"-x"}), HasSubstr("unexpected argument"));
  EXPECT_THAT(refused({"fast"}), HasSubstr("unexpected argument"));
  EXPECT_THAT(refused({"--"}), HasSubstr("unexpected argument"));
  EXPECT_THAT(refused({"--set", "seed"}), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(refused({"--seed"}), HasSubstr("value is missing"));
  EXPECT_THAT(refused({"--nomodel"}), HasSubstr("--nomodel"));
}

TEST(Refusals, FlagsOfScaleAreNotThoseOfRun) {
  EXPECT_THAT(refused({"--ranks", "1,2"}), HasSubstr("scalemark scale"));
  EXPECT_THAT(refused({"--nobaseline"}), HasSubstr("--nobaseline"));
  EXPECT_THAT(refused({"--set", "repeats=2"}), HasSubstr("scalemark scale"));
}

TEST(Refusals, AStepThatRunsOnNeedsNothingOfAllGradients) {
  EXPECT_EQ(load({"--overlap=step"}).config.overlap, Overlap::step);
  for (const auto& [flag, named] :
       {std::pair{"--clip_norm=1", "norm of all"}, std::pair{"--precision=fp16", "overflowed"},
        std::pair{"--reducer=c10d", "--reducer c10d"}})
    EXPECT_THAT(refused({"--overlap=step", flag}), HasSubstr(named)) << flag;
}

TEST(Flags, UseFp16IsThePrecision) {
  EXPECT_EQ(load({"--use_fp16"}).config.precision, Precision::fp16);
  EXPECT_EQ(load({"--use-fp16=true"}).config.precision, Precision::fp16);
  EXPECT_THAT(refused({"--use_fp16=maybe"}), HasSubstr("--precision"));
}

TEST(Refusals, SequencesOfBertFitItsPositions) {
  for (const char* bad : {"3", "513"})
    EXPECT_THAT(refused({"--model=bert_base", "--sequence_length", bad}), HasSubstr("4 to 512"));
  for (const char* good : {"4", "512"})
    EXPECT_NO_THROW(load({"--model=bert_base", "--sequence_length", good}));
}

TEST(Refusals, NumbersAreStrict) {
  for (const char* bad : {"1e3x", "0x10", "1e3", "", " 7", "7 ", "+7", "1.5", "seven", "--", "7\n"})
    EXPECT_THAT(refused({"--num_batches", bad}),
                AllOf(HasSubstr("--num_batches"), HasSubstr("1 to 1000000000")))
        << bad;
  for (const char* bad : {"-1", "0", "1000000001", "9223372036854775808", "-99999999999999999999"})
    EXPECT_THAT(refused({"--num_batches", bad}), HasSubstr("out of range (legal: 1 to 1000000000)"))
        << bad;
  for (const char* bad : {"nan", "inf", "1e999", "0x1p3", "1,5", "0.5s", ""})
    EXPECT_THAT(refused({"--momentum", bad}), AllOf(HasSubstr("--momentum"), HasSubstr("0 to 1")))
        << bad;
  EXPECT_THAT(refused({"--momentum", "-0.1"}), HasSubstr("out of range"));
  EXPECT_THAT(refused({}, {"SCALEMARK_SEED=1O"}), HasSubstr("SCALEMARK_SEED: \"1O\""));
}

/// Every key with a range takes its ends and refuses what lies beyond.
TEST(Refusals, RangesAreInclusive) {
  for (const Key& key : all_keys()) {
    if (key.kind != Kind::integer && key.kind != Kind::real) continue;
    const auto with = [&](double number) {
      const bool whole = key.kind == Kind::integer;
      const nlohmann::json file{{key.name, whole ? nlohmann::json(static_cast<std::int64_t>(number))
                                                 : nlohmann::json(number)}};
      RunConfig config;
      key.set(config, parse_config_text(file.dump(), "file")[key.name]);
      return config;
    };
    EXPECT_EQ(key.get(with(key.lowest)), key.lowest) << key.name;
    EXPECT_EQ(key.get(with(key.highest)), key.highest) << key.name;
    const std::string pointer = "/" + key.name + ":";
    EXPECT_THAT(refusal([&] { with(key.lowest - 1); }),
                AllOf(HasSubstr(pointer), HasSubstr(legal_values(key))));
    EXPECT_THAT(refusal([&] { with(key.highest * 2 + 1); }),
                AllOf(HasSubstr(pointer), HasSubstr(legal_values(key))));
  }
}

TEST(Refusals, TextsHoldNoControlCharacters) {
  for (const std::string& bad :
       {std::string("a\nb"), std::string("a\x1b[2J"), std::string("a\0b", 3), std::string("\x7f"),
        std::string("\xff\xfe"), std::string(), std::string(5000, 'x')}) {
    for (const char* flag : {"--output", "--label"}) {
      const std::string message = refused({flag, bad});
      EXPECT_THAT(message, HasSubstr(flag));
      EXPECT_TRUE(std::all_of(message.begin(), message.end(), [](char c) {
        return c >= 0x20 && c < 0x7f;
      })) << message;
    }
  }
  EXPECT_EQ(load({"--output", "a b/$(touch x)/'q'.json"}).config.output, "a b/$(touch x)/'q'.json");
}

TEST(Refusals, InjectionsAreChecked) {
  const auto injection =
      load({"--inject", "delay:rank=1:step=3:milliseconds=2.5"}).config.inject.value();
  EXPECT_EQ(injection.kind, "delay");
  EXPECT_EQ(injection.rank, 1);
  EXPECT_EQ(injection.step, 3);
  EXPECT_EQ(injection.milliseconds, 2.5);
  EXPECT_EQ(load({"--inject=kill"}).config.inject->rank, -1);
  EXPECT_THAT(refused({"--inject", "kll"}), HasSubstr("mean kill?"));
  EXPECT_THAT(refused({"--inject", "kill:rnk=1"}), HasSubstr("mean rank?"));
  for (const char* bad :
       {"kill:", "kill:rank", "kill:rank=x", "kill:rank=-1", "delay", "kill:milliseconds=5",
        "delay:milliseconds=-1", "delay:milliseconds=0", "busy", ":", "kill::rank=1"})
    EXPECT_THAT(refused({"--inject", bad}), HasSubstr("--inject")) << bad;
}

TEST(Refusals, MeaninglessCombinations) {
  EXPECT_THAT(refused({"--device=cpu", "--communicator=nccl"}), HasSubstr("nccl"));
  for (const char* with : {"backward", "step"})
    EXPECT_THAT(refused({"--forward_only", "--overlap", with}), HasSubstr("--forward_only"));
  EXPECT_THAT(refused({"--scaling=strong"}), HasSubstr("--global_batch_size"));
  EXPECT_THAT(refused({"--batch_size=8", "--global_batch_size=30"}), HasSubstr("24 and 32"));
  EXPECT_THAT(refusal([] {
                load_scale({"--global_batch_size=32", "--ranks=1,2"});
              }),
              HasSubstr("strong"));
  EXPECT_THAT(refusal([] {
                load_scale({"--scaling=strong", "--global_batch_size=30", "--ranks=1,2,4"});
              }),
              HasSubstr("28 and 32"));
}

TEST(Refusals, GroupsOfShardsDivideTheRanks) {
  EXPECT_THAT(refused({"--shard_ranks=2"}),
              HasSubstr("--shard optimizer, gradients or parameters"));
  EXPECT_THAT(refused({"--shard=optimizer", "--shard_ranks=0"}), HasSubstr("1 to 1000000"));
  EXPECT_THAT(refused({"--shard=optimizer", "--shard_ranks=3", "--ranks=4"}),
              HasSubstr("legal values are 1, 2, 4"));
  for (const char* shards : {"none,parameters", "parameters,none"}) {
    const Words words{std::string("--shard=") + shards, "--shard_ranks=4", "--ranks=2,4,12"};
    EXPECT_EQ(load_scale(words).config.shard_ranks, 4);
    Words more = words;
    more.back() += ",18";
    EXPECT_THAT(refused(more, {}, Command::scale), HasSubstr("legal values are 1, 2, 3, 6, 9, 18"));
  }
}

TEST(Help, NamesEveryFlagOfTheCommandAndNoOther) {
  for (const Command command : {Command::run, Command::scale, Command::infer, Command::preflight})
    for (const Key& key : all_keys()) {
      const std::string help = full_help(key_help(command), 80);
      const bool named = help.find("--" + key.name + " ") != help.npos ||
                         help.find("--" + key.name + "\n") != help.npos;
      EXPECT_EQ(named, key.commands.contains(command)) << key.name;
    }
}

/// What the engine works with, whether it has read the layers or got what the front door has read.
void expect_same(const LoadedConfig& handed, const LoadedConfig& read) {
  for (const Key& key : all_keys()) {
    EXPECT_EQ(key.get(handed.config), key.get(read.config)) << key.name;
    EXPECT_EQ(key.get(handed.given), key.get(read.given)) << key.name;
    for (const std::string& model : read.config.more_models)
      EXPECT_EQ(key.get(handed.config.of_model(model)), key.get(read.config.of_model(model)))
          << key.name << " of " << model;
  }
  EXPECT_EQ(handed.command, read.command);
  EXPECT_EQ(handed.origins, read.origins);
  EXPECT_EQ(handed.warnings, read.warnings);
}

TEST(HandedConfig, IsWhatWasRead) {
  for (const auto& [command, words] : std::vector<std::pair<Command, Words>>{
           {Command::run, {}},
           {Command::run, {"--lr_schedule=0.1;30;0.01", "--inject=delay:rank=0:milliseconds=1.5"}},
           {Command::run, {"--batch_size=max", "--momentum=0.1234567890123", "--use_fp16"}},
           {Command::scale,
            {"--model=smallnet,trivial", "--ranks=1,2", "--reducer=scalemark,c10d"}},
           {Command::infer, {"--model=bert_tiny", "--mode=single_stream"}},
           {Command::preflight, {"--output", "a b.json"}}}) {
    const LoadedConfig read = load_config(command, words, Words{"SCALEMARK_SEEED=1"});
    hand_over_config(read);
    const auto handed = handed_config(command);
    ASSERT_TRUE(handed) << name_of(command);
    expect_same(*handed, read);
    EXPECT_FALSE(handed_config(command)) << "it was taken already";
  }
}

TEST(HandedConfig, OfAnotherCommandIsNone) {
  hand_over_config(load({}));
  EXPECT_FALSE(handed_config(Command::infer));
  EXPECT_FALSE(handed_config(Command::run)) << "what nobody takes must not be found later";
}

TEST(HandedConfig, WhatIsNoneOfOursIsNotTaken) {
  for (const char* text : {"0", "2", "999999", "nothing", ""}) {
    setenv("SMK_INTERNAL_CONFIG", text, 1);
    EXPECT_FALSE(handed_config(Command::run)) << text;
  }
  unsetenv("SMK_INTERNAL_CONFIG");
}

}  // namespace
}  // namespace scalemark::load_test

// Lists of one key make a curve of each value; the base of a curve may have a batch of its own.
#include "config/curves.hpp"

#include "config/keys.hpp"
#include "config_support.hpp"

namespace scalemark::curves_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const Words& arguments) {
  std::vector<std::string> list;
  for (const CurveConfig& curve : curves_of(load_scale(arguments).config))
    list.push_back(curve.name);
  return list;
}

const Words kStrong{"--model=smallnet", "--scaling=strong", "--global_batch_size=8,16"};

Words strong(const Words& more) {
  Words all = kStrong;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Curves, AreNamedByWhatTheyDifferIn) {
  EXPECT_THAT(names({}), ElementsAre(""));
  EXPECT_THAT(names({"--precision=bf16"}), ElementsAre(""));
  EXPECT_THAT(names({"--precision=fp32,bf16"}), ElementsAre("fp32", "bf16"));
  EXPECT_THAT(names(kStrong), ElementsAre("b8", "b16"));
  EXPECT_THAT(names(strong({"--precision=bf16,fp32"})),
              ElementsAre("bf16-b8", "bf16-b16", "fp32-b8", "fp32-b16"));
}

TEST(Curves, ModelsAndReducersHaveListsToo) {
  EXPECT_THAT(
      names({"--model=trivial,smallnet", "--reducer=scalemark,c10d", "--precision=fp32,bf16"}),
      ElementsAre("trivial-fp32-scalemark", "trivial-fp32-c10d", "trivial-bf16-scalemark",
                  "trivial-bf16-c10d", "smallnet-fp32-scalemark", "smallnet-fp32-c10d",
                  "smallnet-bf16-scalemark", "smallnet-bf16-c10d"));
}

TEST(Curves, EachModelHasItsOwnDefaults) {
  const LoadedConfig loaded = load_scale({"--model=smallnet,transformer_tiny"});
  const auto curves = curves_of(loaded.config);
  ASSERT_EQ(curves.size(), 2u);
  for (const CurveConfig& curve : curves) {
    const LoadedConfig alone = load_scale({"--model=" + curve.name});
    EXPECT_EQ(hashed_config(curve.config, 2), hashed_config(alone.config, 2)) << curve.name;
  }
  EXPECT_TRUE(curves[0].config.image_size && !curves[0].config.sequence_length);
  EXPECT_TRUE(!curves[1].config.image_size && curves[1].config.sequence_length);
}

TEST(Curves, WhatOneModelOrReducerCannotIsRefused) {
  EXPECT_THAT(refused({"--model=smallnet,transformer_tiny", "--image_size=64"}, {}, Command::scale),
              HasSubstr("transformer_tiny has sequences"));
  EXPECT_THAT(refused({"--reducer=scalemark,c10d", "--wire_dtype=bf16"}, {}, Command::scale),
              HasSubstr("--reducer c10d sends gradients as fp32"));
  EXPECT_THAT(refused({"--model=smallnet,trivial"}), HasSubstr("scalemark scale"));
}

TEST(Curves, ABatchPerPrecisionMakesPairs) {
  EXPECT_THAT(names({"--model=smallnet", "--precision=fp32,bf16", "--batch_size=4,8",
                     "--batch_per_precision"}),
              ElementsAre("fp32-b4", "bf16-b8"));
  EXPECT_THAT(names(strong({"--precision=bf16,fp32", "--batch_per_precision"})),
              ElementsAre("bf16-b8", "fp32-b16"));
  for (const Words& unlike : {Words{"--batch_size=4,8,16"}, Words{"--batch_size=4"}, Words{}}) {
    Words words{"--model=smallnet", "--precision=fp32,bf16", "--batch_per_precision"};
    words.insert(words.end(), unlike.begin(), unlike.end());
    EXPECT_THAT(refused(words, {}, Command::scale), HasSubstr("of one length"));
  }
}

TEST(Curves, OfAListShowAndHashTheirOwnValue) {
  const LoadedConfig loaded = load_scale({"--model=smallnet", "--precision=fp32,bf16"});
  EXPECT_EQ(config_to_json(loaded)["precision"]["value"],
            nlohmann::ordered_json::array({"fp32", "bf16"}));
  for (const CurveConfig& curve : curves_of(loaded.config)) {
    const LoadedConfig alone = load_scale({"--model=smallnet", "--precision=" + curve.name});
    EXPECT_EQ(hashed_config(curve.config, 2), hashed_config(alone.config, 2));
    EXPECT_EQ(find_key("precision")->get(curve.config), curve.name);
  }
}

TEST(Curves, ComeFromFilesAndVariablesToo) {
  const TemporaryFile file(R"({"precision": ["bf16", "fp32"], "scaling": "strong",
                              "global_batch_size": [16, 8], "model": "smallnet"})");
  const auto curves = curves_of(load_scale({"--config", file.path()}).config);
  ASSERT_EQ(curves.size(), 4u);
  EXPECT_EQ(curves[1].config.precision, Precision::bf16);
  EXPECT_EQ(curves[1].config.global_batch_size, 8);
  EXPECT_EQ(curves_of(load({}, {"SCALEMARK_PRECISION=fp32,bf16"}, Command::scale).config).size(),
            2u);
  EXPECT_THAT(names({"--config", file.path(), "--precision=fp32", "--global_batch_size=8"}),
              ElementsAre(""))
      << "a later value replaces the whole list";
}

TEST(Curves, OfBatchesPerRank) {
  const auto curves = curves_of(
      load_scale({"--model=smallnet", "--precision=fp32,bf16", "--batch_size=4,8"}).config);
  ASSERT_EQ(curves.size(), 4u);
  EXPECT_EQ(curves[1].name, "fp32-b8");
  EXPECT_EQ(curves[1].config.batch_size, 8);
  EXPECT_EQ(plan_batch(curves[1].config, 2).global_batch_size, 16);
  const auto wrong = [](const Words& words) { return refused(words, {}, Command::scale); };
  EXPECT_THAT(wrong({"--batch_size=4,max"}), HasSubstr("\"max\" stands alone"));
  EXPECT_THAT(wrong({"--scaling=strong", "--global_batch_size=16", "--batch_size=4,8"}),
              HasSubstr("leave one of the two out"));
  EXPECT_EQ(curves_of(load_scale({"--model=smallnet", "--batch_size=max"}).config).size(), 1u);
}

TEST(Curves, ListsAreRefusedWithTheirPlace) {
  const auto wrong = [](const std::string& flag) { return refused({flag}, {}, Command::scale); };
  EXPECT_THAT(wrong("--precision=fp32,fp23"),
              AllOf(HasSubstr("--precision: unknown precision"), HasSubstr("did you mean fp32")));
  EXPECT_THAT(wrong("--precision=fp32,bf16,fp32"), HasSubstr("\"fp32\" is there twice"));
  EXPECT_THAT(wrong("--precision=fp32,"), HasSubstr("--precision: unknown precision"));
  EXPECT_THAT(wrong("--global_batch_size=8,0"),
              AllOf(HasSubstr("--global_batch_size: "), HasSubstr("1 to 1000000000")));
  EXPECT_THAT(wrong("--seed=1,2"), HasSubstr("--seed"));
  const TemporaryFile nested(R"({"precision": [["fp32"]]})"), empty(R"({"precision": []})");
  EXPECT_THAT(wrong("--config=" + nested.path()), HasSubstr("/precision/0"));
  EXPECT_THAT(wrong("--config=" + empty.path()), HasSubstr("1 to 64 values"));
}

TEST(Curves, AreForScaleOnly) {
  EXPECT_THAT(refused({"--precision=fp32,bf16"}), HasSubstr("scalemark scale"));
  EXPECT_THAT(refused({"--global_batch_size=8,16"}), HasSubstr("scalemark scale"));
  EXPECT_THAT(refused({"--batch_size=8,16"}), HasSubstr("--batch_size: a list"));
  EXPECT_THAT(refused({"--precision=fp32,bf16"}, {}, Command::infer), HasSubstr("scalemark scale"));
}

TEST(Curves, EveryOneMustDivideAtEveryPoint) {
  EXPECT_THAT(
      refused({"--scaling=strong", "--global_batch_size=8,30", "--ranks=1,4"}, {}, Command::scale),
      HasSubstr("28 and 32"));
}

TEST(CurvePath, PutsTheNameBeforeTheExtension) {
  EXPECT_EQ(curve_path("out/scaling.json", "").string(), "out/scaling.json");
  EXPECT_EQ(curve_path("out/scaling.json", "fp32-b16").string(), "out/scaling-fp32-b16.json");
  EXPECT_EQ(curve_path("v1.2/curve", "bf16").string(), "v1.2/curve-bf16");
}

TEST(PointConfig, TheBaseMayHaveItsOwnBatch) {
  const LoadedConfig curve =
      load_scale({"--model=transformer_big", "--scaling=strong", "--global_batch_tokens=819200",
                  "--ranks=2,400", "--solution_steps=1000", "--base_solution_steps=16000",
                  "--base_batch_size=400"});
  const LoadedConfig base = point_config(curve, 2, 2), point = point_config(curve, 400, 2);
  const BatchPlan small = plan_batch(base.config, 2);
  EXPECT_EQ(small.batch_size_per_rank, 400);  // 25,600 tokens a worker
  EXPECT_EQ(small.global_batch_size, 800);
  EXPECT_EQ(plan_batch(point.config, 400).global_batch_size, 12'800);
  EXPECT_EQ(base.origins.at("batch_size"), Origin::command_line);
  EXPECT_EQ(point.origins.at("batch_size"), Origin::standard);
  EXPECT_NE(config_hash(base.config, 2), config_hash(curve.config, 2));
}

TEST(PointConfig, AMicroBatchForEachPoint) {
  const LoadedConfig curve =
      load_scale({"--model=transformer_big", "--scaling=strong", "--global_batch_tokens=819200",
                  "--ranks=16,64,200", "--micro_batch_size=16,10,16"});
  EXPECT_EQ(plan_batch(point_config(curve.config, 16, 16), 16).micro_batch_size, 16);
  EXPECT_EQ(plan_batch(point_config(curve.config, 64, 16), 64).micro_batch_size, 10);  // of 200
  EXPECT_EQ(plan_batch(point_config(curve.config, 200, 16), 200).micro_batch_size, 16);
  EXPECT_TRUE(curves_of(curve.config).front().name.empty());  // it is one curve
  const auto refusal = [](std::vector<std::string> words) {
    return refused(std::move(words), {}, Command::scale);
  };
  EXPECT_THAT(refusal({"--ranks=1,2", "--micro_batch_size=4,2,1"}),
              HasSubstr("one for each point"));
  EXPECT_THAT(refusal({"--micro_batch_size=4,2"}), HasSubstr("give both"));
  EXPECT_THAT(refused({"--micro_batch_size=4,2"}, {}, Command::run), HasSubstr("a list is for"));
}

TEST(PointConfig, ABatchOfTheBaseNeedNotDivideTheOthers) {
  EXPECT_NO_THROW(load_scale({"--model=smallnet", "--scaling=strong", "--global_batch_size=8",
                              "--ranks=3,4", "--solution_steps=10", "--base_batch_size=5"}));
  EXPECT_EQ(plan_batch(point_config(load_scale({"--model=smallnet", "--batch_size=4",
                                                "--solution_steps=10", "--base_batch_size=64"})
                                        .config,
                                    1, 1),
                       1)
                .batch_size_per_rank,
            64);
}

TEST(PointConfig, ABaseOfItsOwnIsForATimeToSolution) {
  const auto wrong = [](const Words& flags) { return refused(flags, {}, Command::scale); };
  EXPECT_THAT(wrong({"--base_batch_size=4"}), HasSubstr("--solution_steps"));
  EXPECT_THAT(wrong({"--base_solution_steps=4"}), HasSubstr("--solution_steps"));
  EXPECT_THAT(wrong({"--solution_steps=4", "--base_batch_size=4", "--ranks=2"}),
              HasSubstr("two or more in --ranks"));
}

TEST(TargetLossKey, WarnsOfNoiseAndRefusesForwardPasses) {
  EXPECT_THAT(load({"--target_loss=0.3"}).warnings, ElementsAre(HasSubstr("--data learnable")));
  EXPECT_TRUE(load({"--target_loss=0.3", "--data=learnable"}).warnings.empty());
  EXPECT_THAT(refused({"--target_loss=0.3", "--forward_only"}), HasSubstr("--forward_only"));
}

TEST(ResourceKey, GpusNeedADeviceThatIsOne) {
  EXPECT_THAT(refused({"--resource=gpu", "--device=cpu"}, {}, Command::scale),
              HasSubstr("--resource gpu"));
  EXPECT_EQ(load_scale({"--resource=node"}).config.resource, Resource::node);
}

/// The same with every standard library: a curve is measured again in the same order.
TEST(Curves, TheOrderOfASeedIsFixed) {
  const auto run = [](std::size_t point, int round) { return CurveSegment{point, round, false}; };
  EXPECT_THAT(
      curve_segments(load_scale({"--repeats=3", "--no-baseline", "--seed=1"}).config, {1, 2, 4}),
      ElementsAre(run(2, 0), run(0, 0), run(1, 0), run(2, 1), run(0, 1), run(1, 1), run(0, 2),
                  run(1, 2), run(2, 2)));
}

TEST(Curves, BaselinesComeBeforeTheirPoint) {
  EXPECT_THAT(
      curve_segments(load_scale({"--repeats=1", "--seed=1"}).config, {1, 2, 4}),
      ElementsAre(CurveSegment{2, 0, true}, CurveSegment{2, 0, false}, CurveSegment{0, 0, false},
                  CurveSegment{1, 0, true}, CurveSegment{1, 0, false}));
}

/// Whatever drifts within a round meets the whole run and the others from both sides.
TEST(Curves, EachCollectiveOfShardsIsLeftOutInTurn) {
  const auto segments = [](const Words& more) {
    Words all{"--model=llama_tiny", "--repeats=2"};
    all.insert(all.end(), more.begin(), more.end());
    return curve_segments(load_scale(all).config, {2});
  };
  constexpr LeaveOut kScatter = LeaveOut::reduce_scatter, kGather = LeaveOut::allgather;
  EXPECT_THAT(segments({"--shard=parameters"}),
              ElementsAre(CurveSegment{0, 0, true}, CurveSegment{0, 0, false},
                          CurveSegment{0, 0, false, kScatter}, CurveSegment{0, 0, false, kGather},
                          CurveSegment{0, 1, true}, CurveSegment{0, 1, false, kGather},
                          CurveSegment{0, 1, false, kScatter}, CurveSegment{0, 1, false}));
  EXPECT_EQ(segments({"--shard=none"}).size(), 4u);
  EXPECT_EQ(segments({"--shard=optimizer", "--no-baseline"}).size(), 2u);
  EXPECT_EQ(segments({"--shard=optimizer", "--leave_out=allgather"}).size(), 4u);
  EXPECT_THAT(refused({"--model=llama_tiny", "--leave_out=allgather"}),
              AllOf(HasSubstr("--shard"), HasSubstr("--communicator none")));
}

TEST(Curves, APlanOfLaunchesLeavesThemOutToo) {
  const LoadedConfig loaded = load_scale({"--model=llama_tiny", "--shard=optimizer"});
  const auto plan = curve_plan(loaded, {1, 2}, 1);
  ASSERT_EQ(plan["points"].size(), 5u);  // one rank; all, without each, without communication
  EXPECT_FALSE(plan["points"][1].contains("leave_out"));
  EXPECT_EQ(plan["points"][2]["leave_out"], "reduce_scatter");
  EXPECT_EQ(plan["points"][3]["leave_out"], "allgather");
  EXPECT_EQ(plan["points"][4]["communicator"], "none");
}

}  // namespace
}  // namespace scalemark::curves_test

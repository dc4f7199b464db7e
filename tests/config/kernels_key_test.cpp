// --kernels, and --fused as it was called before: with a warning wherever a user writes it, and in
// older records without.
#include "config/keys.hpp"
#include "config/sweep_plan.hpp"
#include "json.hpp"
#include "tests/config/config_support.hpp"

namespace scalemark::kernels_key_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Kernels kernels_of(const LoadedConfig& loaded) { return *loaded.config.kernels; }

/// Returns what the build lacks for a flag.
std::string missing_for(const std::string& flag) {
  try {
    load({flag});
  } catch (const EnvironmentError& error) {
    EXPECT_EQ(error.code(), ExitCode::environment);
    return error.what();
  }
  return "nothing";
}

TEST(KernelsKey, IsOurOwnWhereNobodySaysOtherwise) {
  EXPECT_EQ(kernels_of(load({})), has_own_kernels() ? Kernels::scalemark : Kernels::torch);
  EXPECT_EQ(load({}).origins.at("kernels"), Origin::standard);
  EXPECT_EQ(kernels_of(load({"--kernels", "torch"})), Kernels::torch);
  EXPECT_EQ(config_to_json(load({"--kernels=torch"}))["kernels"]["value"], "torch");
  EXPECT_THAT(refused({"--kernels=on"}), HasSubstr("scalemark, torch"));
  EXPECT_THAT(refused({"--precision=int8", "--kernels=torch"}, {}, Command::infer),
              HasSubstr("--kernels torch"));
}

TEST(KernelsKey, OfABuildWithoutThemIsAMatterOfTheEnvironment) {
  if (has_own_kernels()) {
    EXPECT_EQ(kernels_of(load({"--kernels=scalemark"})), Kernels::scalemark);
    return;
  }
  EXPECT_THAT(missing_for("--kernels=scalemark"), HasSubstr("-DSCALEMARK_KERNELS=ON"));
}

TEST(KernelsKey, OfAGpuTrainThere) {
  EXPECT_THAT(refused({"--kernels=triton", "--device=cpu"}), HasSubstr("--device cuda"));
  EXPECT_THAT(refused({"--kernels=triton"}, {}, Command::infer), HasSubstr("computes training"));
  if (has_triton_kernels()) {
    EXPECT_EQ(kernels_of(load({"--kernels=triton"})), Kernels::triton);
    return;
  }
  EXPECT_THAT(missing_for("--kernels=triton"), HasSubstr("-DSCALEMARK_TRITON=ON"));
}

TEST(CudaGraphKey, RefusesWhatCannotBeRecorded) {
  for (const Words& words : {Words{"--device=cpu"},
                             {"--forward_only"},
                             {"--input=host"},
                             {"--communicator=mpi"},
                             {"--overlap=step"},
                             {"--reducer=c10d"},
                             {"--model=llama_tiny", "--recompute=layer"},
                             {"--shard=optimizer"},
                             {"--model=llama_tiny", "--embedding_gradients=sparse"}}) {
    Words on = words, automatic = words;
    on.emplace_back("--cuda_graph=on");
    automatic.emplace_back("--cuda_graph=auto");
    const std::string name = words.back().substr(0, words.back().find('='));
    EXPECT_THAT(refused(on), AllOf(HasSubstr("--cuda_graph on"), HasSubstr(name))) << name;
    EXPECT_EQ(load(automatic).config.cuda_graph, CudaGraph::automatic) << name;
  }
  EXPECT_EQ(load({"--cuda_graph=on", "--device=cuda"}).config.cuda_graph, CudaGraph::on);
  EXPECT_EQ(load({}).config.cuda_graph, CudaGraph::off);
}

TEST(FormerKey, IsTakenWithAWarningFromEveryPlace) {
  const TemporaryFile file(R"({"fused": "off"})");
  const auto expect_torch = [](const LoadedConfig& loaded, const std::string& place) {
    EXPECT_EQ(kernels_of(loaded), Kernels::torch) << place;
    EXPECT_THAT(loaded.warnings,
                ElementsAre(AllOf(HasSubstr(place), HasSubstr("write --kernels torch"))));
    EXPECT_FALSE(config_to_json(loaded).contains("fused"));
  };
  expect_torch(load({"--fused", "off"}), "--fused");
  expect_torch(load({"--fused=off"}, {}, Command::infer), "--fused");
  expect_torch(load({"--set", "fused=off"}), "--set fused");
  expect_torch(load({"--config", file.path()}), "/fused");
  expect_torch(load({}, {"SCALEMARK_FUSED=off"}), "SCALEMARK_FUSED");
  EXPECT_THAT(load({"--kernels=torch"}).warnings, IsEmpty());
  EXPECT_THAT(refused({"--fused=maybe"}), AllOf(HasSubstr("off, on"), HasSubstr("kernels")));
  EXPECT_THAT(refused({"--fused=true"}), HasSubstr("off, on"));
}

TEST(FormerKey, MayNotContradictTheOtherName) {
  EXPECT_THAT(refused({"--fused=off", "--kernels=scalemark"}),
              AllOf(HasSubstr("--fused"), HasSubstr("--kernels"), HasSubstr("contradict")));
  EXPECT_THAT(refused({}, {"SCALEMARK_KERNELS=scalemark", "SCALEMARK_FUSED=off"}),
              HasSubstr("contradict"));
  EXPECT_EQ(kernels_of(load({"--fused=off", "--kernels=torch"})), Kernels::torch);
  const TemporaryFile both(R"({"fused": "on", "kernels": "torch"})");
  EXPECT_THAT(refused({"--config", both.path()}), HasSubstr("twice"));
  // One layer replaces another one, whatever the key was called there.
  const TemporaryFile file(R"({"kernels": "torch"})");
  EXPECT_EQ(kernels_of(load({"--config", file.path(), "--fused=on"})), Kernels::scalemark);
}

TEST(FormerKey, OfAPlanIsTheNewOneInItsPoints) {
  const SweepPlan plan =
      parse_sweep_plan({{"axes", {{"fused", {"on", "off"}}}}, {"settings", {{"model", "trivial"}}}},
                       "plan.json", {}, 2);
  ASSERT_EQ(plan.points.size(), 2u);
  EXPECT_EQ(plan.points[0].settings["kernels"], "scalemark");
  EXPECT_EQ(plan.points[1].settings["kernels"], "torch");
  EXPECT_THAT(plan.warnings,
              ElementsAre(HasSubstr("kernels scalemark"), HasSubstr("kernels torch")));
}

TEST(FormerKey, OfAnOlderRecordIsReadAsTheNewOne) {
  Json record = config_to_json(load({}));
  record.erase("kernels");
  record["fused"] = {{"value", "off"}, {"origin", "command_line"}};
  const LoadedConfig read = config_from_json(record, Command::run, "run.json");
  EXPECT_EQ(kernels_of(read), Kernels::torch);
  EXPECT_EQ(read.origins.at("kernels"), Origin::command_line);
}

}  // namespace
}  // namespace scalemark::kernels_key_test

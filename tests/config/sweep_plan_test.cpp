// Plans of sweeps: their points, the order of their launches, what is refused and where.
#include "config/sweep_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "config_support.hpp"

namespace scalemark::sweep_plan_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SweepPlan parse(const std::string& text, const Words& environment = {}) {
  return parse_sweep_plan(parse_json_object(text, "plan.json", "plan"), "plan.json", environment,
                          /*cores=*/6);
}
std::string refused_plan(const std::string& text) {
  return refusal([&] { parse(text); });
}
std::vector<std::string> titles(const SweepPlan& plan) {
  std::vector<std::string> all;
  for (const SweepPoint& point : plan.points) all.push_back(point.title());
  return all;
}

std::vector<CommandWords> words_of(const std::vector<PlanCommand>& commands,
                                   const LaunchWords& launch) {
  std::vector<CommandWords> all;
  for (const PlanCommand& command : commands) all.push_back(filled_in(command.words, launch));
  return all;
}

TEST(SweepPlan, CrossesPointsAndAxes) {
  const SweepPlan plan = parse(R"({
    "settings": {"model": "smallnet", "num-batches": 5},
    "points": [{"ranks": 1}, {"ranks": 2, "ranks_per_node": 1}],
    "axes": {"precision": ["fp32", "bf16"], "env.OMP_WAIT_POLICY": ["active", null]}})");
  EXPECT_EQ(plan.points.size(), 8u);
  EXPECT_EQ(plan.points.back().title(),
            "ranks=2 ranks_per_node=1 precision=bf16 env.OMP_WAIT_POLICY=null");
  const SweepPoint& point = plan.points[6];
  EXPECT_THAT(point.arguments,
              ElementsAre("--model=smallnet", "--num_batches=5", "--precision=bf16"));
  EXPECT_EQ(point.launch.ranks, 2);
  EXPECT_EQ(point.launch.ranks_per_node, 1);
  EXPECT_EQ(point.launch.environment.front().first, "OMP_WAIT_POLICY");
  EXPECT_EQ(point.launch.environment.front().second, "active");
  EXPECT_EQ(plan.points[7].launch.environment.front().second, std::nullopt);
  EXPECT_EQ(point.config.precision, Precision::bf16);
  std::set<std::string> ids;
  for (const SweepPoint& each : plan.points) ids.insert(each.id);
  EXPECT_EQ(ids.size(), plan.points.size());
}

TEST(SweepPlan, APointIsWhatItMeasuresNotWhereItStands) {
  const SweepPlan one = parse(R"({"settings": {"model": "trivial"}, "axes": {"ranks": [1, 2]}})");
  const SweepPlan other = parse(R"({"axes": {"ranks": [4, 2]}, "points": [{"model": "trivial"}]})");
  EXPECT_EQ(one.points[1].id, other.points[1].id);
  EXPECT_EQ(one.points[1].config_hash, other.points[1].config_hash);
  EXPECT_NE(one.points[0].id, other.points[0].id);
}

TEST(SweepPlan, WithoutAxesIsOnePoint) {
  EXPECT_THAT(titles(parse(R"({"settings": {"model": "trivial"}})")),
              ElementsAre("the only point"));
}

TEST(SweepPlan, EachRepeatGoesThroughAllPointsInAnOrderOfTheSeed) {
  const std::string axes =
      R"("axes": {"ranks": [1, 2, 3, 4, 5, 6]}, "settings": {"model": "trivial"},
                              "repeats": 3, "seed": )";
  const auto order = launch_order(parse("{" + axes + "1}"));
  ASSERT_EQ(order.size(), 18u);
  for (std::size_t begin = 0; begin < 18; begin += 6) {
    std::set<std::size_t> seen;
    for (std::size_t i = begin; i < begin + 6; ++i) {
      EXPECT_EQ(order[i].second, static_cast<std::int64_t>(begin / 6 + 1));
      seen.insert(order[i].first);
    }
    EXPECT_EQ(seen.size(), 6u);
  }
  EXPECT_EQ(order, launch_order(parse("{" + axes + "1}")));
  EXPECT_NE(order, launch_order(parse("{" + axes + "2}")));
}

TEST(SweepPlan, KnowsItsDefaultPoint) {
  const std::string plan =
      R"({"axes": {"ranks": [1, 2], "precision": ["fp32", "bf16"]}, "default": )";
  EXPECT_EQ(parse(plan + R"({"precision": "fp32", "ranks": 2}})").standard, 2u);
  EXPECT_THAT(refused_plan(plan + R"({"ranks": 2}})"),
              AllOf(HasSubstr("plan.json: /default"), HasSubstr("2 points")));
}

TEST(SweepPlan, NamesThePlaceOfWhatIsWrong) {
  const auto wrong = [](const std::string& text, const std::string& place,
                        const std::string& what) {
    EXPECT_THAT(refused_plan(text), AllOf(HasSubstr("plan.json: " + place), HasSubstr(what)))
        << text;
  };
  wrong(R"({"axis": {}})", "/axis", "axes");
  wrong(R"({"axes": {"precision": ["fp32", "fp8"]}})", "/axes/precision/1/precision", "fp16");
  wrong(R"({"axes": {"precison": ["fp32"]}})", "/axes/precison/0/precison", "precision");
  wrong(R"({"axes": {"ranks": []}})", "/axes/ranks", "list");
  wrong(R"({"axes": {"ranks": [0]}})", "/axes/ranks/0", "from 1");
  wrong(R"({"points": {"ranks": 2}})", "/points", "list");
  wrong(R"({"points": [{"ranks": 2}, 7]})", "/points/1", "object");
  wrong(R"({"points": [{"seed": 1}], "axes": {"seed": [1, 2]}})", "/axes/seed", "both");
  wrong(R"({"axes": {"ranks": ["cores+1", "core"]}})", "/axes/ranks/0/ranks", "whole number");
  wrong(R"({"settings": {"output": "x.json"}})", "/settings/output", "decides this itself");
  wrong(R"({"settings": {"repeats": 2}})", "/settings/repeats", "no key of scalemark run");
  wrong(R"({"settings": {"env.A-B": "1"}})", "/settings/env.A-B", "name of a variable");
  wrong(R"({"settings": {"env.SCALEMARK_SEED": "1"}})", "/settings", "keys of the plan");
  wrong(R"({"settings": {"env.X": 1}})", "/settings/env.X", "text");
  wrong(R"({"repeats": 0})", "/repeats", "from 1");
  wrong(R"({"settings": {"model": "trivial"}, "axes": {"seed": [1,2,3,4,5,6,7,8,9,10,11]},
            "repeats": 10000})",
        "/repeats", "more than 100000 launches");
  wrong(R"({"launch_timeout": "1"})", "/launch_timeout", "seconds");
  wrong(R"({"launcher": "ssh"})", "/launcher", "mpirun");
  wrong(R"({"command": "scale"})", "/command", "run, infer");
  wrong(R"({"settings": {"scaling": "strong", "global_batch_size": 4}, "axes": {"ranks": [3]}})",
        "ranks=3", "4");
  wrong(R"({"points": [{"ranks": 3, "ranks_per_node": 2}]})", "ranks=3", "multiple");
}

TEST(SweepPlan, CommandsAroundLaunchesNest) {
  const SweepPlan plan = parse(R"({"settings": {"model": "trivial"}, "command_timeout": 5,
    "before": [["plan", "{ranks}"]], "after": [["plan"]],
    "points": [{"ranks": 2, "before": [["point", "{repeat}", ""]], "after": [["point"]]},
               {"ranks": 3}],
    "alternate": [{"level": "a", "before": [["level", "-{level}-"]], "after": [["level"]]},
                  {"level": "b", "set": {"precision": "bf16", "env.X": "1"}}]})");
  EXPECT_EQ(plan.command_timeout, 5);
  EXPECT_THAT(titles(plan), ElementsAre("ranks=2 alternate=a", "ranks=2 alternate=b",
                                        "ranks=3 alternate=a", "ranks=3 alternate=b"));
  const SweepPoint& point = plan.points.front();
  EXPECT_THAT(words_of(point.commands.before, point.words(7)),
              ElementsAre(CommandWords{"plan", "2"}, CommandWords{"point", "7", ""},
                          CommandWords{"level", "-a-"}));
  EXPECT_THAT(words_of(point.commands.after, point.words(7)),
              ElementsAre(CommandWords{"level"}, CommandWords{"point"}, CommandWords{"plan"}));
  EXPECT_THAT(plan.points[3].arguments, ElementsAre("--model=trivial", "--precision=bf16"));
  EXPECT_EQ(plan.points[3].launch.environment.front().first, "X");
  EXPECT_THAT(plan.points[2].arguments, ElementsAre("--model=trivial"));
}

TEST(SweepPlan, CommandsAndLevelsAreWhatAPointIs) {
  const std::string settings = R"({"settings": {"model": "trivial"})";
  const auto id = [&](const std::string& more) {
    return parse(settings + more + "}").points.front().id;
  };
  const std::string levels = R"(, "alternate": [{"level": "%"}, {"level": "z"}])";
  const auto labelled = [&](const std::string& label) {
    return std::string(levels).replace(levels.find('%'), 1, label);
  };
  const std::set<std::string> ids{id(""),
                                  id(R"(, "before": [["a"]])"),
                                  id(R"(, "after": [["a"]])"),
                                  id(R"(, "before": [["b"]])"),
                                  id(labelled("x")),
                                  id(labelled("y"))};
  EXPECT_EQ(ids.size(), 6u);
  EXPECT_EQ(id(R"(, "before": [])"), id(""));
}

TEST(SweepPlan, CommandsAreGivenTheValuesOfThePlan) {
  const std::string text = R"({"settings": {"model": "trivial"},
    "values": {"device": "eth0", "low": "{ranks}"},
    "before": [{"each_host": ["ethtool", "-s", "{device}", "{device}.{low}-{low}"]},
               ["sh", "-c", "x=${x} awk '{ print $1 }' {} {a,b} {{device}} {"]],
    "points": [{"ranks": 2, "after": [{"each_host": ["{device}"]}]}]})";
  SweepPlan plan = parse(text);
  EXPECT_THAT(plan.values, ElementsAre(std::pair("device", "eth0"), std::pair("low", "{ranks}")));
  const LaunchCommands& commands = plan.points.front().commands;
  EXPECT_TRUE(commands.before[0].each_host);
  EXPECT_FALSE(commands.before[1].each_host);
  EXPECT_THAT(words_of(commands.before, plan.points.front().words(1)),
              ElementsAre(CommandWords{"ethtool", "-s", "eth0", "eth0.2-2"},
                          CommandWords{"sh", "-c", "x=${x} awk '{ print $1 }' {} {a,b} {eth0} {"}));
  EXPECT_TRUE(commands.after[0].each_host);

  Json json = parse_json_object(text, "plan.json", "plan");
  replace_values({&json}, {"device=ib0", "low=a=b", "device=ib1"});
  plan = parse_sweep_plan(json, "plan.json", {}, 6);
  EXPECT_THAT(words_of(plan.points.front().commands.before, {}).front(),
              ElementsAre("ethtool", "-s", "ib1", "ib1.a=b-a=b"));
}

TEST(SweepPlan, AValueOrAHostIsPartOfWhatAPointIs) {
  const auto id = [](const std::string& more) {
    return parse(R"({"settings": {"model": "trivial"}, )" + more + "}").points.front().id;
  };
  const std::string here = id(R"("before": [["ethtool", "eth0"]])");
  EXPECT_EQ(id(R"("values": {"device": "eth0"}, "before": [["ethtool", "{device}"]])"), here);
  EXPECT_NE(id(R"("values": {"device": "ib0"}, "before": [["ethtool", "{device}"]])"), here);
  EXPECT_NE(id(R"("before": [{"each_host": ["ethtool", "eth0"]}])"), here);
}

TEST(SweepPlan, ReplacesNoValueThatThereIsNot) {
  const auto refused = [](const std::string& word, const std::string& values) {
    Json one = {{"before", Json::array()}},
         other = parse_json_object(R"({"values": )" + values + "}", "plan.json", "plan");
    return refusal([&] { replace_values({&one, &other}, {word}); });
  };
  EXPECT_THAT(refused("devise=ib0", R"({"device": "eth0", "mtu": "1"})"),
              AllOf(HasSubstr("--value"), HasSubstr("did you mean device?"),
                    HasSubstr("it has device, mtu")));
  EXPECT_THAT(refused("device=ib0", "{}"), HasSubstr("it has none"));
  EXPECT_THAT(refused("device=ib0", "7"), HasSubstr("it has none"));
  EXPECT_THAT(refused("device", R"({"device": "eth0"})"), HasSubstr("no NAME=TEXT"));
  EXPECT_THAT(refused("=ib0", R"({"device": "eth0"})"), HasSubstr("no NAME=TEXT"));
  EXPECT_THAT(refusal([] { replace_values({}, {"device=ib0"}); }), HasSubstr("it has none"));
}

TEST(SweepPlan, LevelsFollowEachOtherInAnOrderOfTheSeed) {
  const std::string text =
      R"({"settings": {"model": "trivial"}, "axes": {"ranks": [1, 2, 3]}, "repeats": 20,
          "alternate": [{"level": "a"}, {"level": "b"}, {"level": "c"}], "seed": )";
  const SweepPlan plan = parse(text + "1}");
  const auto order = launch_order(plan);
  ASSERT_EQ(order.size(), 180u);
  std::set<std::vector<std::size_t>> orders_of_levels, orders_of_groups;
  for (std::size_t repeat = 0; repeat < 20; ++repeat) {
    std::vector<std::size_t> groups;
    for (std::size_t k = 0; k < 3; ++k) {
      std::set<std::size_t> levels;
      std::vector<std::size_t> in_order;
      const std::size_t group = plan.points[order[repeat * 9 + k * 3].first].group;
      for (std::size_t i = repeat * 9 + k * 3; i < repeat * 9 + k * 3 + 3; ++i) {
        EXPECT_EQ(order[i].second, static_cast<std::int64_t>(repeat + 1));
        EXPECT_EQ(plan.points[order[i].first].group, group);
        levels.insert(order[i].first);
        in_order.push_back(order[i].first % 3);
      }
      EXPECT_EQ(levels.size(), 3u);
      groups.push_back(group);
      orders_of_levels.insert(in_order);
    }
    EXPECT_EQ(std::set(groups.begin(), groups.end()).size(), 3u);
    orders_of_groups.insert(groups);
  }
  EXPECT_EQ(orders_of_levels.size(), 6u);
  EXPECT_GE(orders_of_groups.size(), 4u);
  EXPECT_EQ(order, launch_order(parse(text + "1}")));
  EXPECT_NE(order, launch_order(parse(text + "2}")));
}

TEST(SweepPlan, ALevelMayBeTheDefault) {
  const std::string text =
      R"({"settings": {"model": "trivial"}, "alternate": [{"level": "a"}, {"level": "b"}],
          "default": {"alternate": ")";
  EXPECT_EQ(parse(text + R"(b"}})").standard, 1u);
  EXPECT_THAT(refused_plan(text + R"(c"}})"), HasSubstr("names 0 points"));
}

TEST(SweepPlan, NamesThePlaceOfAWrongCommand) {
  const auto wrong = [](const std::string& members, const std::string& place,
                        const std::string& what) {
    EXPECT_THAT(refused_plan(R"({"settings": {"model": "trivial"}, )" + members + "}"),
                AllOf(HasSubstr("plan.json: " + place), HasSubstr(what)))
        << members;
  };
  wrong(R"("before": "sleep 1")", "/before", "list of commands");
  wrong(R"("before": ["sleep", "1"])", "/before/0", "list of words");
  wrong(R"("after": [[]])", "/after/0", "list of words");
  wrong(R"("after": [["sleep", 1]])", "/after/0/1", "text");
  wrong(R"("after": [["", "x"]])", "/after/0/0", "empty");
  wrong(R"("before": [["a\nb"]])", "/before/0/0", "control");
  wrong(R"("before": [["a", "{level}"]])", "/before/0/1", "no \"alternate\"");
  wrong(R"("values": {"device": "eth0"}, "before": [["a", "x{devise}"]])", "/before/0/1",
        "{devise} stands for nothing; did you mean device?");
  wrong(R"("before": [["awk", "/x/ {print}"]])", "/before/0/1", "with a space");
  wrong(R"("before": [{"each_host": "ethtool"}])", "/before/0/each_host", "list of words");
  wrong(R"("before": [{"each_host": ["a", "{b}"]}])", "/before/0/each_host/1", "known: ranks");
  wrong(R"("before": [{}])", "/before/0", "each_host");
  wrong(R"("after": [{"every_host": ["a"]}])", "/after/0/every_host", "no member of a command");
  wrong(R"("before": [{"each_host": ["a"], "on": "n0"}])", "/before/0/on", "legal: each_host");
  wrong(R"("values": ["eth0"])", "/values", "no object");
  wrong(R"("values": {"ranks": "2"})", "/values/ranks", "no name of a value");
  wrong(R"("values": {"Device": "2"})", "/values/Device", "small letters");
  wrong(R"("values": {"": "2"})", "/values/", "no name of a value");
  wrong(R"("values": {"mtu": 1500})", "/values/mtu", "1500 is no text");
  wrong(R"("values": {"device": ""})", "/values/device", "empty");
  wrong(R"("values": {"device": "a\nb"})", "/values/device", "control");
  wrong(R"("points": [{"ranks": 1, "before": [7]}])", "/points/0/before/0", "list of words");
  wrong(R"("points": [{"ranks": 1}, {"ranks": 1, "before": [["a"]]}])", "ranks=1", "levels");
  wrong(R"("command_timeout": 0)", "/command_timeout", "seconds");
  wrong(R"("alternate": [{"level": "a"}])", "/alternate", "two levels");
  wrong(R"("alternate": [{"level": "a"}, {}])", "/alternate/1", "level");
  wrong(R"("alternate": [{"level": "a"}, {"level": "a"}])", "/alternate/1/level", "twice");
  wrong(R"("alternate": [{"level": "a"}, {"level": "b", "bofore": []}])", "/alternate/1/bofore",
        "did you mean before?");
  wrong(R"("alternate": [{"level": "a"}, {"level": "b", "set": {"sead": 1}}])",
        "/alternate/1/set/sead", "seed");
  wrong(
      R"("axes": {"seed": [1]}, "alternate": [{"level": "a"}, {"level": "b", "set": {"seed": 1}}])",
      "/alternate/1/set", "both");
}

TEST(SweepPlan, RefusesCommandsWhereTheyDoNotBelong) {
  const auto refused = [](const std::string& members) {
    return refusal([&] {
      refuse_commands(parse(R"({"settings": {"model": "trivial"})" + members + "}"), "plan.json");
    });
  };
  EXPECT_NO_THROW(refuse_commands(parse(R"({"settings": {"model": "trivial"}})"), "plan.json"));
  EXPECT_THAT(refused(R"(, "before": [["a"]])"), HasSubstr("plan.json"));
  EXPECT_THAT(refused(R"(, "alternate": [{"level": "a"}, {"level": "b"}])"),
              HasSubstr("scalemark sweep"));
}

TEST(SweepPlan, CountsTheCoresOfAHost) {
  const SweepPlan plan = parse(R"({"settings": {"model": "trivial", "batch_size": "cores*8"},
    "axes": {"ranks": ["cores", "cores-1", "cores/4", "cores-9", 6, "cores/2-1", "cores*2-3"]}})");
  EXPECT_THAT(titles(plan), ElementsAre("ranks=6", "ranks=5", "ranks=1", "ranks=2", "ranks=9"));
  EXPECT_EQ(plan.points.front().config.batch_size, 48);
}

TEST(SweepPlan, RefusesWhatCountsNoCores) {
  for (const char* written :
       {"cores/0", "cores-", "cores/2-0", "cores/2/2", "cores-1-1", "cores+1"})
    EXPECT_THAT(refusal([&] {
                  parse(fmt::format(
                      R"({{"settings": {{"model": "trivial", "cpus_per_rank": "{}"}}}})", written));
                }),
                HasSubstr("/settings/cpus_per_rank"))
        << written;
}

TEST(SweepPlan, ABindingIsOfTheLaunch) {
  const SweepPlan plan = parse(R"({"settings": {"model": "trivial", "ranks": 2},
    "points": [{}, {"binding": "socket"}, {"binding": "none"}]})");
  ASSERT_EQ(plan.points.size(), 3u);
  EXPECT_EQ(plan.points[0].launch.binding, std::nullopt);
  EXPECT_EQ(plan.points[1].launch.binding, Binding::socket);
  EXPECT_EQ(plan.points[2].title(), "binding=none");
  EXPECT_EQ(plan.points[1].config_hash, plan.points[2].config_hash);
  EXPECT_NE(plan.points[1].id, plan.points[2].id);
  EXPECT_THAT(refusal([] { parse(R"({"settings": {"model": "trivial", "binding": "thread"}})"); }),
              HasSubstr("legal: core, socket, numa, none"));
}

TEST(SweepPlan, EveryShippedPlanLoads) {
  int found = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SCALEMARK_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".json" || !is_plan(entry.path())) continue;
    for (const int cores : {1, 2, 8, 96}) {
      ++found;
      EXPECT_NO_THROW(read_sweep_plan(entry.path(), {}, cores)) << entry.path() << " " << cores;
    }
  }
  EXPECT_GE(found, 24);
}

TEST(SweepPlan, SettingsBeatVariables) {
  const SweepPlan plan = parse(R"({"settings": {"model": "trivial"}})",
                               {"SCALEMARK_MODEL=resnet50", "SCALEMARK_SEED=9"});
  EXPECT_EQ(plan.points.front().config.model, "trivial");
  EXPECT_EQ(plan.points.front().config.seed, 9);
}

}  // namespace
}  // namespace scalemark::sweep_plan_test

// What in a record is worth a warning, and that makers put it there.
#include "result/warnings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/partly.hpp"
#include "result/noise_summary.hpp"
#include "result/support.hpp"

namespace scalemark::warnings_test {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// As much of a run record as is looked at.
Json run() {
  return {{"status", "ok"},
          {"ranks",
           {{{"rank", 0}, {"host", "n0"}, {"straggler", false}},
            {{"rank", 1}, {"host", "n1"}, {"straggler", false}}}},
          {"noise", {{"steal", 0.002}, {"throttled", 0}, {"error_counters", {{"n0:eth0", 0}}}}},
          {"wall_seconds", 223.78}};
}

RunResult run_of(const Json& record) { return test::partly<RunResult>(record); }

TEST(RunWarnings, NoneOfAQuietRun) { EXPECT_THAT(run_warnings(run_of(run())), IsEmpty()); }

TEST(RunWarnings, NameStragglersAndWhatDisturbed) {
  Json record = run();
  record["ranks"][1]["straggler"] = true;
  record["noise"]["steal"] = 0.041;
  EXPECT_THAT(run_warnings(run_of(record)),
              ElementsAre("slower than the others (straggler): rank 1 on n1",
                          "the hypervisor took up to 4.1 % of the CPU time (steal)"));
}

TEST(RunWarnings, NameWhatOtherProcessesUsedWhereItIsMore) {
  Json record = run();
  const auto others = [&](double cpus, double seconds) {
    record["noise"]["foreign"] = {
        {"host", "n1"}, {"cpus", cpus}, {"of_cpus", 2}, {"seconds", seconds}};
    return run_warnings(run_of(record));
  };
  EXPECT_THAT(others(1.34, 20),
              ElementsAre("other processes used 1.3 of 2 CPUs of n1 while this was measured"));
  EXPECT_THAT(others(0.09, 20), IsEmpty());   // daemons
  EXPECT_THAT(others(1.34, 0.1), IsEmpty());  // a few ticks
}

TEST(RunWarnings, NameRanksThatCrossNumaNodes) {
  Json record = run();
  record["ranks"][1].update({{"cpus", "44-67"}, {"numa", {1, 2}}});
  Json& binding = record["ranks"][1]["binding"];
  binding = {{"overlaps_with", Json::array()}, {"as_asked", true}, {"near_gpu", nullptr}};
  EXPECT_THAT(run_warnings(run_of(record)), IsEmpty());  // of an older record
  binding["crosses_numa"] = true;
  EXPECT_THAT(run_warnings(run_of(record)),
              ElementsAre("rank 1 on n1 runs on CPUs 44-67, which cross NUMA nodes 1, 2"));
}

TEST(RunWarnings, OfALossThatDiverged) {
  Json record = run();
  record["loss"] = {{"first", 6.9}, {"last", 123.4}, {"diverged", true}};
  const std::string warning = divergence_warning(run_of(record));
  EXPECT_EQ(warning.substr(0, 46), "the loss diverged (first 6.900, last 123.4): t");
  EXPECT_THAT(run_warnings(run_of(record)), ElementsAre(warning));
  record["loss"]["diverged"] = false;
  EXPECT_EQ(divergence_warning(run_of(record)), "");
  record["loss"] = nullptr;
  EXPECT_EQ(divergence_warning(run_of(record)), "");
}

TEST(RunWarnings, OfAPreflightThatIsNoneOrFailed) {
  Json record = run();
  const auto warning = [&](const Json& verdict, const Json& hosts) {
    record["preflight"] = {{"id", "12345678-9"},
                           {"status", "ok"},
                           {"verdict", verdict},
                           {"created_at", "t"},
                           {"hosts_not_covered", hosts}};
    return preflight_warning(run_of(record).preflight);
  };
  EXPECT_EQ(preflight_warning(run_of(record).preflight), "");
  EXPECT_EQ(warning("pass", Json::array()), "");
  EXPECT_THAT(run_warnings(run_of(record)), IsEmpty());
  EXPECT_EQ(warning("fail", Json::array()), "preflight 12345678 has the verdict fail");
  EXPECT_EQ(warning("warn", Json::array()), "preflight 12345678 has the verdict warn");
  EXPECT_EQ(warning(nullptr, {"n3"}),
            "preflight 12345678 did not come to an end and did not run on n3");
  EXPECT_EQ(warning("pass", {"n3", "n4", "n5"}), "preflight 12345678 did not run on n3 and 2 more");
  EXPECT_THAT(run_warnings(run_of(record)),
              ElementsAre(preflight_warning(run_of(record).preflight)));
  record["preflight"] = nullptr;
  EXPECT_EQ(preflight_warning(run_of(record).preflight), "");
}

TEST(RunWarnings, OfAnInferenceAreThoseOfItsRanks) {
  Json record = run();
  record["ranks"][0]["straggler"] = true;
  EXPECT_THAT(run_warnings(test::partly<InferenceResult>(record)),
              ElementsAre("slower than the others (straggler): rank 0 on n0"));
}

TEST(RunWarnings, StandInTheRecordBehindThoseOfTheConfiguration) {
  auto disturbed = test::make_report(0, {1, 1}, {0, 0});
  disturbed.noise.steal = 0.5;
  disturbed.noise.error_counters = {};
  RecordContext context = test::make_context();
  context.config.warnings = {"SCALEMARK_BACTH_SIZE is no key"};
  const Json record = test::make_run_record(context, test::make_facts(1), {disturbed});
  EXPECT_THAT(record["warnings"],
              ElementsAre("SCALEMARK_BACTH_SIZE is no key",
                          "the hypervisor took up to 50.0 % of the CPU time (steal)"));
  const Json failed = make_failed_record(context, 1, {Status::failed, "x"});
  EXPECT_THAT(failed["warnings"], ElementsAre("SCALEMARK_BACTH_SIZE is no key"));
}

TEST(NoiseSummary, IsSilentOnAQuietMachine) {
  NoiseSummary noise;
  noise.add(run_of(run()));
  EXPECT_TRUE(noise.warnings().empty());
}

TEST(NoiseSummary, NamesStealThrottlingAndErrors) {
  NoiseSummary noise;
  noise.add(run_of(run()));
  Json disturbed = run();
  disturbed["noise"] = {
      {"steal", 0.041}, {"throttled", 12.5}, {"error_counters", {{"n0:eth0", 3}}}};
  noise.add(run_of(disturbed));
  noise.add(run_of(disturbed));
  EXPECT_EQ(noise.warnings(),
            (std::vector<std::string>{
                "the hypervisor took up to 4.1 % of the CPU time (steal) in 2 of 3 runs",
                "a CPU quota stopped threads for up to 12.5 s (cgroup throttling) in 2 of 3 runs",
                "network interface n0:eth0 counted 6 errors or drops"}));
}

TEST(NoiseSummary, UnknownEvidenceIsNoNoise) {
  Json record = run();
  record["noise"] = {{"steal", nullptr}, {"throttled", nullptr}, {"error_counters", nullptr}};
  record["wall_seconds"] = nullptr;
  NoiseSummary noise;
  noise.add(run_of(record));
  EXPECT_TRUE(noise.warnings().empty());
}

}  // namespace
}  // namespace scalemark::warnings_test

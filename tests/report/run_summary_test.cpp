// Golden text of the end of `run` and of `infer`.
#include <gtest/gtest.h>

#include "record/partly.hpp"
#include "report/console.hpp"

namespace scalemark::run_summary_test {
namespace {
using test::partly;

Json run() {
  return {
      {"status", "ok"},
      {"reason", ""},
      {"model", "resnet50"},
      {"precision", "bf16"},
      {"unit", "images/sec"},
      {"world_size", 2},
      {"batch_size_per_rank", 16},
      {"throughput", {{"mean", 14.3}, {"ci95", {14.1, 14.5}}, {"ci95_scope", "this launch only"}}},
      {"partial_throughput", nullptr},
      {"step_seconds", {{"mean", 2.2378}, {"p50", 2.23}, {"p90", 2.3}, {"p99", 2.41}}},
      {"steps", 100},
      {"phases",
       {{"fractions",
         {{"forward", 0.2992},
          {"backward", 0.62},
          {"communication", nullptr},
          {"optimizer", 0.0806},
          {"rest", 0.0002}}}}},
      {"windows", nullptr},
      {"communication",
       {{"communicator", "mpi"},
        {"bytes_per_step", 102228128},
        {"total_seconds", 0.0551},
        {"exposed_seconds", 0.0123},
        {"exposed_method", "wait"}}},
      {"batch_size_search", nullptr},
      {"input", {{"place", "device"}, {"bytes_per_step", 0}}},
      {"checkpoint", nullptr},
      {"trace", nullptr},
      {"achieved_flops", 3.5086e11},
      {"roofline", {{"fraction", 0.864}}},
      {"warnings", {"slower than the others (straggler): rank 1 on n1"}}};
}

TEST(RunSummary, SaysWhatTheRecordSays) {
  EXPECT_EQ(
      run_summary(partly<RunResult>(run())),
      R"(resnet50 bf16, 2 ranks x 16: 14.30 images/sec, 95 % interval [14.10, 14.50] of this launch only
steps: 100, mean 2238 ms, p50 2230, p90 2300, p99 2410 ms
of a step: backward 62.0 %, forward 29.9 %, optimizer 8.1 %
communication: mpi, 102.2 MB per rank and step, 55.10 ms a step of which 12.30 ms exposed (waiting time)
compute: 350.9 GFLOP/s, 86 % of the measured GEMM rate
warning: slower than the others (straggler): rank 1 on n1)");
}

TEST(RunSummary, SaysWhatATraceShows) {
  const auto group = [](double share, Json fraction) {
    return Json{{"share", share}, {"roofline_fraction", std::move(fraction)}};
  };
  Json record = run();
  record["trace"] = {{"path", "t.json"}, {"steps", 3}, {"slowdown", 0.125}, {"dropped_events", 0}};
  record["operators"] = {{"groups",
                          {{"convolution", group(0.5, nullptr)},
                           {"matrix_product", group(0.25, 0.843)},
                           {"optimizer", group(0.0005, nullptr)}}},
                         {"outside", {{"share", 0.2495}}}};
  EXPECT_EQ(trace_summary(partly<RunResult>(record)),
            "trace: t.json: 3 steps, 12.5 % slower than measured ones; https://ui.perfetto.dev or "
            "chrome://tracing opens it\n"
            "operators: convolution 50.0 %, matrix product 25.0 % (at 84 % of the GEMM rate), "
            "outside of operators 24.9 %");
  record["trace"]["slowdown"] = -0.02;
  record["trace"]["dropped_events"] = 70;
  record["operators"]["groups"] = {{"convolution", group(0.5, nullptr)}};
  record["operators"]["groups"]["convolution"]["share"] = nullptr;
  record["operators"]["outside"]["share"] = nullptr;
  EXPECT_EQ(trace_summary(partly<RunResult>(record)),
            "trace: t.json: 3 steps, 2 % faster than measured ones; https://ui.perfetto.dev or "
            "chrome://tracing opens it\n"
            "trace: full, 70 operators are left out (fewer: --trace_steps)");
}

TEST(RunSummary, SaysWhatWasAroundTheStep) {
  Json record = run();
  const Json tried = {{"batch_size", 8}};
  record["batch_size_search"] = {{"tried", {tried, tried, tried}}, {"limited_by", "memory"}};
  record["input"] = {{"place", "host"},
                     {"bytes_per_step", 9633792},
                     {"copy_seconds", 0.0021},
                     {"wait_seconds", 0.0001}};
  record["checkpoint"] = {{"every", 10},
                          {"bytes", 204456256},
                          {"count", 10},
                          {"write_seconds", {{"mean", 0.25}, {"max", 0.4}}},
                          {"files", 1},
                          {"total_bytes_per_second", 0.8e9},
                          {"step_overhead_fraction", 0.0112},
                          {"storage", nullptr}};
  std::string text = run_summary(partly<RunResult>(record));
  EXPECT_NE(text.find("batch size: the largest of 3 tried, limited by memory\n"), text.npos);
  EXPECT_NE(text.find("input: 9.6 MB a step from host memory in 2.100 ms, of which 0.1000 ms"),
            text.npos)
      << text;
  EXPECT_NE(text.find("checkpoints: 10 of 204.5 MB, 250.0 ms each (0.80 GB/s), 1.1 % of the run\n"),
            text.npos)
      << text;
  record["checkpoint"]["files"] = 8;
  record["checkpoint"]["storage"] = {{"bytes_per_second", 2.5e9},
                                     {"limited_by", "node"},
                                     {"seconds", 0.5},
                                     {"overhead_fraction", 0.02}};
  text = run_summary(partly<RunResult>(record));
  EXPECT_NE(text.find("checkpoints: 10 of 8 x 204.5 MB"), text.npos) << text;
  EXPECT_NE(text.find("; on 20 Gbit/s of storage 500.0 ms each (limited by the node), 2 %\n"),
            text.npos)
      << text;
}

TEST(RunSummary, EndsWithTheWarningsThatWereNotTold) {
  Json record = run();
  record["warnings"] = {"first", "second", "third"};
  EXPECT_TRUE(run_summary(partly<RunResult>(record), 1)
                  .ends_with("GEMM rate\nwarning: second\nwarning: third"));
  EXPECT_TRUE(run_summary(partly<RunResult>(record))
                  .ends_with("\nwarning: first\nwarning: second\nwarning: third"));
}

TEST(RunSummary, SaysWhenTheTargetLossWasReached) {
  Json record = run();
  record["loss"] = {
      {"first", 2.3},
      {"last", 0.28},
      {"diverged", false},
      {"target", {{"loss", 0.3}, {"reached", true}, {"steps", 57}, {"seconds", 12.345}}}};
  EXPECT_NE(run_summary(partly<RunResult>(record))
                .find("\ntarget loss 0.3: reached after 57 steps and 12.35 s of "
                      "training, warm-up included"),
            std::string::npos);
  record["loss"]["target"] = {
      {"loss", 0.1}, {"reached", false}, {"steps", nullptr}, {"seconds", nullptr}};
  EXPECT_NE(run_summary(partly<RunResult>(record))
                .find("\ntarget loss 0.1: not reached, the last loss is 0.2800"),
            std::string::npos);
  record["loss"]["target"] = nullptr;
  EXPECT_EQ(run_summary(partly<RunResult>(record)).find("target"), std::string::npos);
}

TEST(RunSummary, LeavesOutWhatIsUnknown) {
  Json record = run();
  record["world_size"] = 1;
  record["throughput"]["ci95"] = nullptr;
  record["communication"]["exposed_seconds"] = nullptr;
  record["achieved_flops"] = nullptr;
  record["phases"] = nullptr;
  record["warnings"] = Json::array();
  EXPECT_EQ(
      run_summary(partly<RunResult>(record)),
      R"(resnet50 bf16, 1 rank x 16: 14.30 images/sec, no interval (fewer than 30 effective samples)
steps: 100, mean 2238 ms, p50 2230, p90 2300, p99 2410 ms)");
}

TEST(RunSummary, OfARunWithoutResultGivesStatusAndReason) {
  Json record = run();
  record["status"] = "interrupted";
  record["reason"] = "stopped by a signal after step 7";
  record["throughput"] = nullptr;
  record["partial_throughput"] = 14.0;
  EXPECT_EQ(run_summary(partly<RunResult>(record)),
            "resnet50 bf16, 2 ranks x 16: interrupted: stopped by a signal after step 7\n"
            "until then 14.00 images/sec (not a result)");
}

TEST(RunSummary, NamesTheKernelsInItsTitle) {
  Json record = run();
  record["kernels"] = "torch";
  EXPECT_TRUE(run_summary(partly<RunResult>(record))
                  .starts_with("resnet50 bf16, torch kernels, 2 ranks x "));
}

TEST(InferenceSummary, SaysWhatTheRecordSays) {
  Json record = run();
  record["mode"] = "single_stream";
  record["server"] = nullptr;
  record["fused"] = "on";
  record["batch_size_per_rank"] = 1;
  record["queries"] = 200;
  record["latency_seconds"] = {
      {"mean", 0.02154}, {"p50", 0.0214}, {"p90", 0.0221}, {"p99", 0.0302}, {"p99_9", nullptr}};
  EXPECT_EQ(
      inference_summary(partly<InferenceResult>(record)),
      R"(resnet50 bf16, 2 ranks x 1: 14.30 images/sec, 95 % interval [14.10, 14.50] of this launch only
latency of 200 queries, single_stream: mean 21.54, p50 21.40, p90 22.10, p99 30.20, p99.9 unknown ms
compute: 350.9 GFLOP/s, 86 % of the measured GEMM rate
fused: batch normalisation folded, oneDNN's fused operators
warning: slower than the others (straggler): rank 1 on n1)");
}

TEST(InferenceSummary, OfAServer) {
  const Json trial = {{"arrival_rate", 50.}, {"seconds", 1.}};
  Json record = run();
  record["mode"] = "server";
  record["fused"] = "off";
  record["queries"] = 1000;
  record["latency_seconds"] = {
      {"mean", 0.02}, {"p50", 0.02}, {"p90", 0.03}, {"p99", 0.04}, {"p99_9", nullptr}};
  record["server"] = {
      {"arrival_rate", 50.},
      {"achieved_rate", 49.9},
      {"queue_seconds", {{"mean", 0.005}}},
      {"service_seconds", {{"mean", 0.015}}},
      {"ended_by", "all_served"},
      {"holds", true},
      {"latency_quantile", 0.99},
      {"latency_at_quantile_seconds", 0.04},
      {"latency_bound_seconds", 0.05},
      {"search", {{"found", 50.}, {"limited_by", "latency bound"}, {"trials", {trial, trial}}}}};
  EXPECT_NE(
      inference_summary(partly<InferenceResult>(record))
          .find(
              "server: 50.00 queries/s offered, 49.90 answered; in the queue 5.000 ms, in service "
              "15.00 ms (means)\n"
              "bound: quantile 0.99 of the latency is 40.00 ms, within the bound of 50.00 ms\n"
              "largest rate that holds the bound: 50.00 queries/s, after 2 trials (latency "
              "bound)\n"),
      std::string::npos)
      << inference_summary(partly<InferenceResult>(record));
  record["server"].update({{"ended_by", "overload"},
                           {"holds", false},
                           {"latency_at_quantile_seconds", nullptr},
                           {"search", nullptr}});
  record["unavailable"]["server.latency_at_quantile_seconds"] = "the server was overloaded";
  EXPECT_NE(inference_summary(partly<InferenceResult>(record))
                .find("(means); the server was overloaded\n"
                      "bound: quantile 0.99 of the latency is unknown ms, not within the bound of"),
            std::string::npos)
      << inference_summary(partly<InferenceResult>(record));
}

}  // namespace
}  // namespace scalemark::run_summary_test

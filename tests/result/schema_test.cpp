// Real records of every status against docs/schema, by the validator that the other tests use too;
// and the document that names every key of the schemas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <set>

#include "analysis/preflight/rules.hpp"
#include "result/inference_record.hpp"
#include "result/preflight_support.hpp"
#include "result/support.hpp"

namespace scalemark::schema_test {
namespace {
namespace fs = std::filesystem;
using test::make_facts;
using test::make_report;
using test::Tree;

const fs::path kSource = SCALEMARK_SOURCE_DIR;
#ifdef SCALEMARK_PYTHON
const fs::path kPython = SCALEMARK_PYTHON;
#else
const fs::path kPython = kSource / ".venv/bin/python";
#endif

struct Verdict {
  int exit;
  std::string output;
};

/// Runs the validator on a file or folder.
Verdict validate(const fs::path& path) {
  int ends[2];
  if (pipe(ends) != 0) return {-1, "pipe failed"};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    const fs::path script = kSource / "tests/result/validate_records.py";
    execl(kPython.c_str(), kPython.c_str(), script.c_str(), path.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  Verdict verdict{0, {}};
  char block[4096];
  for (ssize_t got; (got = read(ends[0], block, sizeof block)) > 0;)
    verdict.output.append(block, static_cast<std::size_t>(got));
  close(ends[0]);
  waitpid(child, &verdict.exit, 0);
  verdict.exit = WIFEXITED(verdict.exit) ? WEXITSTATUS(verdict.exit) : -1;
  return verdict;
}

Json good_record() {
  std::vector<double> steps;
  for (int i = 0; i < 200; ++i) steps.push_back(1.0 + 0.01 * ((i * 7919) % 101));
  const std::vector<double> waits(200, 0.1);
  auto a = make_report(0, steps, waits), b = make_report(1, steps, waits);
  a.gpu = 0;
  a.gpu_uuid = "GPU-0";
  a.peak_gpu_bytes = 1;
  RunFacts facts = make_facts(2);
  facts.embedding = EmbeddingFacts{"sparse", "sparse", {{"embedding", 100, 8, true}}, 0, 0};
  a.samples.embedding = b.samples.embedding = {{200. * 120}, 1e6, 5e5, 5e5, 400, 0.1, 0.1};
  return test::make_run_record({{}, system_info(), recorded_environment(process_environment())},
                               facts, {a, b});
}

std::map<std::string, Json> samples_of_every_status() {
  const SystemInfo system = system_info();
  RecordContext context{{}, system, {}};
  std::map<std::string, Json> records{{"ok", good_record()}};
  RunFacts facts = make_facts(1);
  facts.transport = facts.algorithm = facts.allocator = facts.started_at = "";
  facts.gemm_flops = std::nullopt;
  facts.flops_per_sample = 0;
  facts.embedding = EmbeddingFacts{"dense", "dense", {{"embedding", 100, 8, true}}, 3200, 0};
  auto report = make_report(0, {1, 2}, {0, 0});
  report.samples.embedding.rows = {0};
  report.affinity = {};
  report.affinity_requested = {};
  report.noise = {};
  records["ok-unknown"] = test::make_run_record(context, facts, {report});
  report.samples.loss.assign(50, 1.0);
  report.samples.loss.resize(100, 9.0);
  records["ok-diverged"] = test::make_run_record(context, facts, {report});
  LoadedConfig aimed;
  for (const double target : {9.5, 0.5}) {
    aimed.config.target_loss = target;
    records[target > 1 ? "ok-target" : "ok-target-missed"] =
        test::make_run_record({aimed, system, {}}, facts, {report});
  }
  context.preflight = record::PreflightReference{"0", Status::ok, std::string("warn"), "t", {"n0"}};
  records["ok-preflight-warn"] = test::make_run_record(context, facts, {report});
  context.preflight->verdict = {};
  records["ok-preflight-unfinished"] = test::make_run_record(context, facts, {report});
  context.preflight.reset();
  report.samples.checkpoints = {1, 1000, {0.25, 0.5}};
  report.samples.input = {InputPlace::host, 64, 0.5, 0.25};
  facts.batch_search = {2, {{1, true, 0.5, 100}, {2, true, 0.5, 200}}, std::nullopt, "step time"};
  records["ok-around"] = test::make_run_record(context, facts, {report});
  report.samples.checkpoints = {10, 0, {}};
  facts.batch_search->limit_bytes = 1000;
  records["ok-no-checkpoint"] = test::make_run_record(context, facts, {report});
  report.samples.loss = {1.0, std::nan("")};
  records["invalid"] = test::make_run_record(context, facts, {report});
  report.samples.stop_reason = StopReason::signal;
  report.samples.loss = {1.0, 2.0};
  records["interrupted"] = test::make_run_record(context, facts, {report});
  auto unmeasured = make_report(0, {}, {});
  unmeasured.samples.stop_reason = StopReason::signal;
  records["interrupted-early"] = test::make_run_record(context, facts, {unmeasured});
  records["timeout"] = make_failed_record(context, 2, {Status::timeout, "rank 1 hangs"});
  LoadedConfig config;
  config.config.scaling = Scaling::strong;
  config.config.global_batch_size = 7;
  records["failed"] = make_failed_record({config, system, {}}, 2, {Status::failed});
  LoadedConfig largest;
  largest.config.largest_batch = true;
  records["failed-search"] = make_failed_record({largest, system, {}}, 2, {Status::timeout});
  return records;
}

std::map<std::string, Json> inference_samples() {
  RecordContext context{{}, system_info(), {}};
  context.config.command = Command::infer;
  InferenceFacts facts;
  static_cast<RunFacts&>(facts) = make_facts(2);
  facts.fused = "folded";
  auto a = make_report(0, std::vector<double>(1000, 0.5), std::vector<double>(1000, 0.));
  const auto b = make_report(1, {1, 2}, {0, 0});
  std::map<std::string, Json> records;
  records["ok"] = measured_json(make_inference(context, facts, {a, a}));
  facts.flops_per_sample = 0;
  facts.gemm_flops = std::nullopt;
  records["ok-short"] = measured_json(make_inference(context, facts, {b, b}));
  a.samples.stop_reason = StopReason::signal;
  records["interrupted"] =
      measured_json(make_inference(context, facts, {a, make_report(1, {}, {})}));
  records["timeout"] = make_failed_inference_record(context, 2, {Status::timeout, "rank 1 hangs"});
  records["failed"] = make_failed_inference_record(context, 2, {Status::failed});
  context.config.config.largest_batch = true;
  records["failed-search"] = make_failed_inference_record(context, 2, {Status::timeout});
  return records;
}

std::map<std::string, Json> preflight_samples() {
  RecordContext context = test::preflight_context();
  const auto rules = parse_preflight_rules(default_preflight_rules(), "default");
  PreflightFacts facts = test::preflight_facts(2);
  const auto judged = [&](const std::vector<PreflightRank>& ranks) {
    PreflightResult result = make_preflight_record(context, facts, ranks);
    apply_preflight_rules(result, ranks, rules);
    return judged_json(result);
  };
  const auto ranks = test::preflight_ranks(2);
  std::map<std::string, Json> records;
  records["ok"] = judged(ranks);
  facts.device = "cuda";
  auto gpus = test::gpu_ranks(2);
  records["gpu"] = judged(gpus);
  gpus[1].entry.gpu_health = gpu_health({});  // nothing is known
  gpus[1].settings = {{"NCCL_ALGO", "Tree"}};
  records["gpu-unknown"] = judged(gpus);
  facts.device = "cpu";
  facts.collectives->rows[0].wrong_elements = 1;
  facts.collectives->rows[0].first_wrong = std::string("rank 1: element 0 is 1, not 2");
  facts.collectives->transport = {};
  facts.pairs = test::preflight_pairs(2);
  records["wrong"] = judged(ranks);
  facts.collectives = Unknown{"--pinning measures nothing"};
  facts.pairs.reset();
  context.config.config.pinning = true;
  records["pinning"] = judged(test::pinned_ranks(2));
  records["timeout"] = make_failed_preflight_record(context, 2, {Status::timeout, "rank 1 hangs"});
  return records;
}

TEST(Schema, RecordsOfEveryStatusAreValid) {
  if (!fs::exists(kPython)) GTEST_SKIP() << kPython << " is missing: scripts/setup makes it";
  Tree tree;
  for (const auto& [name, record] : samples_of_every_status())
    tree.file(name + ".json", record_text(record));
  for (const auto& [name, record] : inference_samples())
    tree.file("inference-" + name + ".json", record_text(record));
  for (const auto& [name, record] : preflight_samples())
    tree.file("preflight-" + name + ".json", record_text(record));
  const Verdict verdict = validate(tree.root());
  EXPECT_EQ(verdict.exit, 0) << verdict.output;
  EXPECT_THAT(verdict.output, testing::HasSubstr("27 records are valid"));
}

TEST(Schema, BrokenRecordsAreRefused) {
  if (!fs::exists(kPython)) GTEST_SKIP() << kPython << " is missing: scripts/setup makes it";
  std::map<std::string, Json> broken;
  for (const char* name : {"extra", "missing", "published", "no-reason", "wrong-type", "kind"})
    broken[name] = good_record();
  broken["extra"]["surprise"] = 1;
  broken["missing"].erase("noise");
  broken["published"]["status"] = "failed";
  broken["published"]["reason"] = "x";
  broken["no-reason"]["unavailable"].erase("energy.source");
  broken["wrong-type"]["world_size"] = "2";
  broken["kind"]["kind"] = "recipe";
  Tree tree;
  for (const auto& [name, record] : broken) tree.file(name + ".json", record.dump());
  const Verdict verdict = validate(tree.root());
  EXPECT_EQ(verdict.exit, 1);
  for (const auto& [name, record] : broken)
    EXPECT_THAT(verdict.output, testing::HasSubstr(name + ".json")) << verdict.output;
}

void collect_keys(const Json& schema, std::set<std::string>& keys) {
  if (schema.is_array())
    for (const Json& part : schema) collect_keys(part, keys);
  if (!schema.is_object()) return;
  if (schema.contains("properties"))
    for (const auto& [key, value] : schema["properties"].items()) keys.insert(key);
  for (const auto& [key, value] : schema.items()) collect_keys(value, keys);
}

/// "`key`", or as part of a path: "`ranks[].binding.as_asked`".
bool names(const std::string& document, const std::string& key) {
  for (std::size_t at = document.find(key); at != document.npos; at = document.find(key, at + 1)) {
    const std::size_t end = at + key.size();
    if (at > 0 && end < document.size() && (document[at - 1] == '`' || document[at - 1] == '.') &&
        std::string_view("`.[").find(document[end]) != std::string_view::npos)
      return true;
  }
  return false;
}

TEST(Schema, TheDocumentNamesEveryKey) {
  const std::string records = test::contents(kSource / "docs/records.md");
  for (const std::string name : {"run", "scaling", "inference", "instances", "preflight",
                                 "comparison", "verdict", "baseline", "history", "projection"}) {
    const std::string document =
        name == "preflight" ? records + test::contents(kSource / "docs/preflight.md") : records;
    std::set<std::string> keys;
    collect_keys(Json::parse(test::contents(kSource / "docs/schema" / (name + ".schema.json"))),
                 keys);
    EXPECT_GT(keys.size(), 20U);
    for (const std::string& key : keys)
      EXPECT_TRUE(names(document, key))
          << "docs/records.md (or docs/preflight.md) does not explain `" << key << "` of " << name;
  }
}

}  // namespace
}  // namespace scalemark::schema_test

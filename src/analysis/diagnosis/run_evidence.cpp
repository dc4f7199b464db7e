// What the rules need of a run record; of an inference, whose ranks look alike, its name and ranks.
#include <fmt/format.h>

#include "analysis/diagnosis/record_evidence.hpp"
#include "analysis/diagnosis/record_view.hpp"

namespace scalemark::diagnosis {
namespace {

RankEvidence rank_evidence(const RecordView& rank) {
  return {rank.number("rank"), rank.number("step_seconds_mean"), rank.number("wait_seconds_mean"),
          rank.text("host", 60), rank.is_true("straggler")};
}

DriftEvidence drift_evidence(const RecordView& run) {
  return {run.words("windows/drift/verdict"), run.number("windows/drift/change"),
          run.number("windows/drift/p"), run.bounds("windows/drift/ci95")};
}

/// Settings of a sweep that the name of a run says anyway.
bool is_in_name(const std::string& key) {
  return key == "model" || key == "precision" || key == "ranks" || key == "batch_size";
}

}  // namespace

std::string run_name(const Json& record, const Settings& settings) {
  constexpr int kMostSettings = 4;
  const RecordView run(record);
  std::string name = run.words("model", 60);
  const auto add = [&](const std::string& words, const char* between) {
    if (!words.empty()) name += (name.empty() ? "" : between) + words;
  };
  add(run.words("precision"), " ");
  if (const Number ranks = run.number("world_size")) {
    const Number batch = run.number("batch_size_per_rank");
    add(fmt::format("{:.0f} rank{}", *ranks, *ranks > 1 ? "s" : "") +
            (batch ? fmt::format(" x {:.0f}", *batch) : ""),
        " ");
  }
  int told = 0;
  for (const auto& [key, value] : settings)
    if (!is_in_name(key) && told++ < kMostSettings) add(key + "=" + value, ", ");
  return name;
}

RunEvidence run_evidence(const Json& record, const Settings& settings) {
  const RecordView run(record);
  RunEvidence evidence{.id = run.id(),
                       .name = run_name(record, settings),
                       .ok = run.words("status") == "ok",
                       .world_size = run.number("world_size"),
                       .batch_size_per_rank = run.number("batch_size_per_rank"),
                       .throughput = run.number("throughput/mean"),
                       .step_seconds = run.number("step_seconds/mean"),
                       .communication_seconds = run.number("communication/total_seconds"),
                       .exposed_seconds = run.number("communication/exposed_seconds"),
                       .input_share = run.number("phases/fractions/input"),
                       .checkpoint_share = run.number("phases/fractions/checkpoint"),
                       .first_loss = run.number("loss/first"),
                       .last_loss = run.number("loss/last"),
                       .diverged = run.is_true("loss/diverged"),
                       .drift = drift_evidence(run),
                       .ranks = {}};
  for (const RecordView& rank : run.list("ranks")) evidence.ranks.push_back(rank_evidence(rank));
  return evidence;
}

}  // namespace scalemark::diagnosis

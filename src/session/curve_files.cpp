// Names, finds, writes and removes the files of a scaling curve.
#include "session/curve_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "record/read.hpp"
#include "record/write.hpp"
#include "result/outcome.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kIdLetters = 8;

/// Returns the name of a run's record up to the letters of its id. Rounds count from 1.
std::string name_begin(const CurveSegment& segment, std::int64_t ranks) {
  const std::string left_out = segment.baseline ? "-none"
                               : segment.leave_out != LeaveOut::none
                                   ? "-without_" + to_string(segment.leave_out)
                                   : "";
  return fmt::format("ranks{}-round{}{}-", ranks, segment.round + 1, left_out);
}

}  // namespace

std::vector<KeptRun> CurveFiles::unfinished(
    const std::vector<CurveSegment>& plan, const std::vector<std::int64_t>& ranks,
    const std::function<bool(const RunResult&, const CurveSegment&)>& same) {
  const std::set<std::string> names = runs_.unnamed();
  const auto newest = [&](const CurveSegment& segment) {
    const std::string begin = name_begin(segment, ranks[segment.point]);
    const std::size_t length = begin.size() + kIdLetters + std::string_view(".json").size();
    std::optional<KeptRun> found;
    for (auto name = names.lower_bound(begin); name != names.end() && name->starts_with(begin);
         ++name) {
      if (name->size() != length) continue;
      auto record = result_at<RunResult>(runs_.path() / *name);
      if (!record || record->status != Status::ok || !same(*record, segment)) continue;
      if (!found || found->record.created_at < record->created_at)
        found = KeptRun{segment, runs_.name_of(*name), *std::move(record)};
    }
    return found;
  };
  std::vector<KeptRun> kept, round;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    auto run = newest(plan[i]);
    if (!run) break;
    round.push_back(std::move(*run));
    if (i + 1 < plan.size() && plan[i + 1].round == plan[i].round) continue;
    std::ranges::move(round, std::back_inserter(kept));
    round.clear();
  }
  for (const KeptRun& run : kept) runs_.keep(run.path);
  if (!kept.empty()) curve_.continue_older();
  runs_.replace_strays();
  return kept;
}

std::string CurveFiles::write_run(const RunResult& record, const CurveSegment& segment,
                                  std::int64_t ranks) {
  const std::string id = record.id.substr(0, kIdLetters);
  ResultFile file(runs_.path() / (name_begin(segment, ranks) + id + ".json"),
                  /*reserved_bytes=*/0);
  file.write(measured_json(record));
  return runs_.name_of(file.path());
}

void CurveFiles::write_curve(const Json& record) {
  curve_.write(record);
  runs_.remove_older(curve_.kept());
}

}  // namespace scalemark

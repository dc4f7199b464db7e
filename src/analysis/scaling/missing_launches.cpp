// Which launches a sweep has not got, of which curve.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/scaling/swept_curves.hpp"
#include "config/sweep_settings.hpp"
#include "config/text.hpp"

namespace scalemark {
namespace {

/// What should be there of one build.
struct Expected {
  std::string revision;
  std::int64_t repeats = 0;
  std::vector<PlannedLaunches::Point> points;
};

std::vector<Expected> expected_launches(const std::vector<JournalEntry>& last,
                                        const std::optional<PlannedLaunches>& planned) {
  if (planned) return {{planned->revision, planned->repeats, planned->points}};
  std::vector<Expected> all;
  for (const JournalEntry& entry : last) {
    auto of_build = std::ranges::find(all, entry.revision, &Expected::revision);
    if (of_build == all.end()) of_build = all.insert(all.end(), {entry.revision, 0, {}});
    of_build->repeats = std::max(of_build->repeats, entry.repeat);
    if (std::ranges::find(of_build->points, entry.point, &PlannedLaunches::Point::id) ==
        of_build->points.end())
      of_build->points.push_back({entry.point, entry.settings});
  }
  return all;
}

std::string repeats_text(const std::vector<std::int64_t>& repeats) {
  return fmt::format("repeat{} {}", repeats.size() == 1 ? "" : "s", fmt::join(repeats, ", "));
}

}  // namespace

std::vector<MissingLaunches> missing_launches(const std::vector<JournalEntry>& last,
                                              const std::optional<PlannedLaunches>& planned) {
  std::map<std::tuple<std::string, std::string, std::int64_t>, const JournalEntry*> ended;
  for (const JournalEntry& entry : last)
    ended[{entry.point, entry.revision, entry.repeat}] = &entry;
  std::vector<MissingLaunches> all;
  for (const Expected& build : expected_launches(last, planned))
    for (const auto& point : build.points) {
      std::vector<std::string> words;
      std::vector<std::int64_t> open;
      int failed = 0;
      for (std::int64_t repeat = 1; repeat <= build.repeats; ++repeat) {
        const auto found = ended.find({point.id, build.revision, repeat});
        if (found == ended.end() || found->second->status == "interrupted")
          open.push_back(repeat);
        else if (found->second->status != "ok") {
          words.push_back(fmt::format("repeat {} {} ({})", repeat, found->second->status,
                                      found->second->reason));
          ++failed;
        }
      }
      if (!open.empty()) words.push_back(repeats_text(open) + " not measured yet");
      if (!words.empty())
        all.push_back({point.settings, build.revision,
                       fmt::format("{}: {}", settings_title(point.settings), join(words, ", ")),
                       failed});
    }
  return all;
}

bool belongs_to(const MissingLaunches& missing, const SweptCurve& curve) {
  // A launch without communication is missed as a baseline.
  if (missing.revision != curve.runs.front()->entry.revision) return false;
  for (const auto& [name, value] : curve.settings.items())
    if (name != "communicator" && missing.settings.value(name, Json()) != value) return false;
  return true;
}

}  // namespace scalemark

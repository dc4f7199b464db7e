#include "session/curve_files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "error.hpp"
#include "platform/posix_file.hpp"
#include "result/envelope.hpp"
#include "result/support.hpp"

namespace scalemark::curve_files_test {
namespace {

namespace fs = std::filesystem;

std::vector<CurveSegment> plan_of(int rounds, bool baseline,
                                  const std::vector<std::int64_t>& ranks) {
  ResolvedConfig config;
  config.repeats = rounds;
  config.baseline = baseline;
  return curve_segments(config, ranks);
}

class CurveFilesTest : public testing::Test {
 protected:
  RunResult run(const std::string& begin) {
    RunResult record = make_run(test::make_context(), test::make_facts(1),
                                {test::make_report(0, {0.5, 0.5}, {0, 0})});
    record.id = begin + record.id.substr(begin.size());
    return record;
  }
  Json curve(const std::string& path) {
    Json record = envelope("scaling", Status::ok);
    record["points"] = Json::array({{{"repeats", Json::array({{{"path", path}}})}}});
    return record;
  }
  std::size_t runs() const {
    return std::distance(fs::directory_iterator(folder_ / "s.runs"), fs::directory_iterator());
  }

  TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(CurveFilesTest, NamesRunsByRanksRoundAndKind) {
  CurveFiles files(folder_ / "s.json");
  EXPECT_EQ(files.write_run(run("12345678-9abc"), {1, 0, false}, 2),
            "s.runs/ranks2-round1-12345678.json");
  EXPECT_EQ(files.write_run(run("22345678-9abc"), {1, 0, true}, 2),
            "s.runs/ranks2-round1-none-22345678.json");
  EXPECT_EQ(files.write_run(run("32345678-9abc"), {1, 0, false, LeaveOut::allgather}, 2),
            "s.runs/ranks2-round1-without_allgather-32345678.json");
}

TEST_F(CurveFilesTest, AReplacedCurveTakesItsRunsAlongButNothingElse) {
  {
    CurveFiles files(folder_ / "s.json");
    files.write_curve(curve(files.write_run(run("11111111-"), {0, 0, false}, 1)));
  }
  const fs::path foreign = folder_ / "s.runs" / "notes.txt";
  fs::copy_file(folder_ / "s.json", foreign);
  CurveFiles files(folder_ / "s.json");
  const std::string path = files.write_run(run("22222222-"), {0, 0, false}, 1);
  EXPECT_EQ(runs(), 3u) << "the older run must stay until the new curve is written";
  files.write_curve(curve(path));
  EXPECT_TRUE(fs::exists(folder_ / path));
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_EQ(runs(), 2u);
  EXPECT_TRUE(fs::exists(folder_ / "s.runs.~1~" / "ranks1-round1-11111111.json"));
  CurveFiles overwriting(folder_ / "s.json", Older::replaced);
  overwriting.write_curve(curve(overwriting.write_run(run("33333333-"), {0, 0, false}, 1)));
  EXPECT_EQ(runs(), 2u);
  EXPECT_FALSE(fs::exists(folder_ / "s.runs.~2~"));
}

TEST_F(CurveFilesTest, WholeRoundsOfAnUnfinishedCurveAreKept) {
  const std::vector<std::int64_t> ranks{1, 2};
  const std::vector<CurveSegment> plan = plan_of(3, true, ranks);
  const auto all = [](const RunResult&, const CurveSegment&) { return true; };
  std::set<std::string> written;
  {
    CurveFiles files(folder_ / "s.json");
    for (std::size_t i = 0; i < 5; ++i) {  // of nine: a round has one run of 1 and two of 2 ranks
      const CurveSegment& s = plan[i];
      RunResult record = run(fmt::format("{}2345678-", i + 1));
      if (i == 4) record = make_failed_run(test::make_context(), 2, {Status::failed, "a test"});
      written.insert(files.write_run(record, s, ranks[s.point]));
    }
    EXPECT_TRUE(CurveFiles(folder_ / "other.json").unfinished(plan, ranks, all).empty());
  }
  CurveFiles files(folder_ / "s.json");
  EXPECT_TRUE(
      files.unfinished(plan, ranks, [](const RunResult&, const CurveSegment&) { return false; })
          .empty());
  const auto kept = files.unfinished(plan, ranks, all);
  ASSERT_EQ(kept.size(), 3u) << "the second round is not whole";
  Json points = Json::array();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(kept[i].segment, plan[i]);
    EXPECT_TRUE(written.contains(kept[i].path));
    points.push_back({{"path", kept[i].path}});
  }
  Json finished = envelope("scaling", Status::ok);
  finished["points"] = points;
  files.write_curve(finished);
  EXPECT_TRUE(fs::exists(folder_ / kept[0].path));
  EXPECT_TRUE(CurveFiles(folder_ / "s.json").unfinished(plan, ranks, all).empty())
      << "a finished curve is measured once more";
}

TEST_F(CurveFilesTest, WhatAnUnfinishedCurveNamesStaysWhereItIsKept) {
  const std::vector<std::int64_t> ranks{1};
  const std::vector<CurveSegment> plan = plan_of(2, false, ranks);
  {
    CurveFiles files(folder_ / "s.json");
    Json unfinished = curve(files.write_run(run("11111111-"), {0, 0, false}, 1));
    unfinished["status"] = "interrupted";
    unfinished["reason"] = "stopped";
    files.write_curve(unfinished);
  }
  CurveFiles files(folder_ / "s.json");
  const auto kept =
      files.unfinished(plan, ranks, [](const RunResult&, const CurveSegment&) { return true; });
  ASSERT_EQ(kept.size(), 1u);
  files.write_curve(curve(kept[0].path));
  EXPECT_TRUE(fs::exists(folder_ / kept[0].path));
}

TEST_F(CurveFilesTest, LeavesNoEmptyFolderOfACurveThatNeverRan) {
  { CurveFiles files(folder_ / "s.json"); }
  EXPECT_FALSE(fs::exists(folder_ / "s.runs"));
  { CurveFiles(folder_ / "s.json").write_run(run("12345678-"), {0, 0, false}, 1); }
  EXPECT_TRUE(fs::exists(folder_ / "s.runs"));
}

TEST_F(CurveFilesTest, RefusesAFileInPlaceOfTheRunsFolder) {
  fs::create_directories(folder_);
  { CurveFiles made(folder_ / "t.json"); }
  fs::remove_all(folder_ / "s.runs");
  fs::copy_file("/proc/self/comm", folder_ / "s.runs");
  EXPECT_THROW(CurveFiles(folder_ / "s.json"), ResultError);
}

}  // namespace
}  // namespace scalemark::curve_files_test

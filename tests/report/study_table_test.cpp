// What a study prints: figures in their units, and what a reader must know beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/study/study_record.hpp"
#include "record/read.hpp"
#include "report/tables.hpp"

namespace scalemark::study_table_test {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

StudyProfile profile_of(std::vector<Figure> figures) {
  StudyProfile profile{"laptop", "stand_in", "What it shows.", "everything", 2};
  profile.figures = std::move(figures);
  return profile;
}

/// `published`: beside the unit.
Figure figure(const std::string& name, const std::string& unit, Json published,
              const std::optional<Reading>& reading = {}) {
  published["unit"] = unit;
  return {name, unit, written_from<PublishedFigure>(published), reading};
}

StudyResult record_of(const StudyProfile& profile, const RowsOfSteps& rows,
                      const std::string& site = "here") {
  StepState state{"s", "a step", {"scalemark", "run"}, "s.json", StepStatus::ok, 0, "", 12.};
  return make_study_record({"name", "A title", "Who.", "a cluster", {"the weather"}, {}}, profile,
                           site, {state}, rows);
}

StepRow row(std::int64_t repeat, double throughput) {
  return {.columns = {{"throughput", throughput}, {"row", "launch"}, {"warnings", ""}},
          .repeat = repeat};
}

TEST(StudyTable, EachFigureInItsUnit) {
  const Reading all{"s", "throughput"};
  Reading percent{"s", "throughput", {}, Where(), "base", "throughput"};
  percent.expect = Expectation{.above = 0};
  const RowsOfSteps rows{{"s", {row(1, 120), row(2, 121)}}, {"base", {row(1, 100), row(2, 100)}}};
  const std::string text = study_table(record_of(
      profile_of({figure("rate", "images/sec", {{"value", 2757.21}}, all),
                  figure("gain", "percent", {{"value", 18.7}}, percent),
                  figure("bound", "share", {{"low", 0.9}}),
                  figure("range", "percent", {{"low", 63}, {"high", 83}, {"about", true}}),
                  figure("same", "same", Json::object()),
                  figure("lost", "ratio", {{"text", "announced"}}, Reading{"s", "speedup"})}),
      rows));
  EXPECT_THAT(
      text, AllOf(HasSubstr("2757 images/sec"), HasSubstr("120.5 images/sec"), HasSubstr("+18.7 %"),
                  HasSubstr("+20.5 % ["), HasSubstr("+1.8 points"), HasSubstr("shown (above 0)")));
  EXPECT_THAT(text, AllOf(HasSubstr("over 90.0 %"), HasSubstr("range: about +63.0 % to +83.0 %"),
                          HasSubstr("same: no\n  difference"), HasSubstr("announced"),
                          HasSubstr("not measured: lost: no speedup")));
  EXPECT_THAT(text, AllOf(HasSubstr("A stand-in: What it shows."), HasSubstr("everything"),
                          HasSubstr("the weather")));
}

TEST(StudyTable, NotesFitTheScreenAndMoveNoCursor) {
  StudyProfile profile = profile_of({figure("f\x1b[2J", "ratio", Json::object())});
  profile.shows = std::string(300, 'x') + " " + std::string(40, 'y') + " " + std::string(60, 'z');
  const std::string text = study_table(record_of(profile, {}));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("\n  " + std::string(60, 'z')));
}

TEST(StudyTable, TwoSites) {
  const Reading all{"s", "throughput"};
  const StudyProfile profile = profile_of({figure("rate", "images/sec", {{"value", 10}}, all)});
  const std::string text = sites_table(record_of(profile, {{"s", {row(1, 100)}}}, "vm"),
                                       record_of(profile, {{"s", {row(1, 102)}}}, "bm"));
  EXPECT_THAT(text, AllOf(HasSubstr("vm"), HasSubstr("bm"), HasSubstr("+2.0 %")));
}

}  // namespace
}  // namespace scalemark::study_table_test

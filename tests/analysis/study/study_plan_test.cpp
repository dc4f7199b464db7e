// Study files: what they say, what is refused with its place, and every file that is shipped.
#include "analysis/study/study_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "error.hpp"
#include "record/committed.hpp"
#include "record/schema.hpp"

namespace scalemark::study_plan_test {
namespace {
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Json study_file() {
  return Json::parse(R"({
    "$schema": "study_plan.schema.json", "title": "T", "publication": "P", "published_on": "a cluster", "not_stated": [],
    "profiles": {
      "laptop": {"evidence": "effect", "shows": "it", "differs": "all", "ranks": 2},
      "full": {"evidence": "effect", "shows": "it", "differs": "little", "ranks": 16}
    },
    "steps": [
      {"name": "links", "about": "two rates", "plan": {"settings": {"model": "trivial", "ranks": 2}, "repeats": 5},
       "laptop": {"run": "sweep", "minutes": 2, "netlab": {"hosts": 2, "rate": "1gbit"}},
       "full": {"run": "sweep", "minutes": 30, "needs": ["gpu"], "plan": {"settings": {"ranks": 16, "model": null}}}},
      {"name": "more", "about": "projection", "laptop": {"run": "project {links}  --ranks 8", "minutes": 0.5, "accept": [4]}}
    ],
    "figures": [
      {"name": "gain", "published": {"value": 6, "unit": "percent"},
       "laptop": {"step": "links", "of": "throughput", "where": {"ranks": 2}, "over": {"ranks": 1}},
       "full": {"step": "links", "of": "throughput"}}
    ]
  })");
}

Study parse(const Json& json) { return parse_study(json.dump(), "name", "file.json"); }

/// The message of what is refused.
std::string refusal(const Json& json) {
  try {
    parse(json);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(StudyPlan, HasTheStepsOfEachProfile) {
  const Study study = parse(study_file());
  const StudyProfile& laptop = study.profile("laptop");
  ASSERT_EQ(laptop.steps.size(), 2U);
  EXPECT_THAT(laptop.steps[1].words, ElementsAre("project", "{links}", "--ranks", "8"));
  EXPECT_THAT(laptop.steps[1].accepted, ElementsAre(4));
  EXPECT_DOUBLE_EQ(laptop.minutes(), 2.5);
  EXPECT_TRUE(laptop.needs_root());  // virtual hosts
  EXPECT_FALSE(laptop.needs_gpu());
  const StudyProfile& full = study.profile("full");
  ASSERT_EQ(full.steps.size(), 1U);
  EXPECT_TRUE(full.needs_gpu());
  EXPECT_FALSE(full.needs_root());
  EXPECT_FALSE(full.figures[0].reading->over);
  EXPECT_EQ(laptop.figures[0].reading->over_step, "links");
  EXPECT_EQ(laptop.figures[0].reading->over_of, "throughput");
}

TEST(StudyPlan, APlanIsMergedIntoTheSteps) {
  const Study study = parse(study_file());
  EXPECT_EQ(study.profile("laptop").steps[0].plan["settings"],
            Json({{"model", "trivial"}, {"ranks", 2}}));
  EXPECT_EQ(study.profile("full").steps[0].plan,
            Json({{"settings", {{"ranks", 16}}}, {"repeats", 5}}));  // null takes away
}

TEST(StudyPlan, RefusesWithThePlace) {
  EXPECT_THAT(refusal(nullptr), HasSubstr("file.json"));
  Json json = study_file();
  json["steps"][0]["laptop"]["minuets"] = 1;
  EXPECT_THAT(refusal(json),
              AllOf(HasSubstr("file.json: /steps/0/laptop/minuets"), HasSubstr("minutes")));
  json = study_file();
  json["figures"][0]["full"]["step"] = "more";
  EXPECT_THAT(refusal(json),
              AllOf(HasSubstr("/figures/0/full/step"), HasSubstr("more"), HasSubstr("links")));
  json = study_file();
  json["figures"][0].erase("published");
  EXPECT_THAT(refusal(json), HasSubstr("/figures/0/published is missing"));
  json = study_file();
  json["figures"][0]["full"]["expect"] = Json::object();
  EXPECT_THAT(refusal(json), HasSubstr("/figures/0/full/expect"));
  json["figures"][0]["full"]["expect"] = {{"equals", Json::array()}};
  EXPECT_THAT(refusal(json), HasSubstr("/figures/0/full/expect/equals"));
  json = study_file();
  json["figures"][0]["full"]["where"] = {{"ranks", {1, 2}}};
  EXPECT_THAT(refusal(json), HasSubstr("/figures/0/full/where/ranks"));
  json = study_file();
  json["steps"][0].erase("plan");
  json["steps"][0].erase("full");
  EXPECT_THAT(refusal(json), HasSubstr("a sweep has a \"plan\""));
  json = study_file();
  json["steps"][1]["plan"] = Json::object();
  EXPECT_THAT(refusal(json), HasSubstr("only a sweep"));
  json = study_file();
  json["steps"][1]["name"] = "links";
  EXPECT_THAT(refusal(json), AllOf(HasSubstr("/steps/1/name"), HasSubstr("twice")));
  json = study_file();
  json["steps"][1]["laptop"]["run"] = "project {lnks}";
  EXPECT_THAT(refusal(json), AllOf(HasSubstr("/steps/1/laptop/run"), HasSubstr("{lnks}")));
  json = study_file();
  json["steps"][0]["laptop"]["run"] = "  ";
  EXPECT_THAT(refusal(json), HasSubstr("/steps/0/laptop/run"));
}

TEST(StudyPlan, TheSchemaIsCommittedAsGenerated) {
  test::expect_committed(
      "study_plan",
      format_schema("A published experiment: the steps that repeat it, its figures, and how both "
                    "are put side by side (docs/studies.md)",
                    study_file_fields()));
}

TEST(StudyPlan, AProfileThatIsNoneIsRefused) {
  try {
    parse(study_file()).profile("labtop");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean laptop?"));
  }
}

TEST(StudyPlan, WordsLeadToTheFolderOfTheFile) {
  const auto path =
      std::filesystem::path(SCALEMARK_SOURCE_DIR) / "configs/studies/node_qualification.json";
  bool found = false;
  const Study study = read_study(path);
  for (const StudyStep& step : study.profile("full").steps)
    for (const std::string& word : step.words)
      if (word.ends_with("rules/node_qualification.json")) found = std::filesystem::exists(word);
  EXPECT_TRUE(found);
}

TEST(StudyPlan, EveryShippedFileIsRead) {
  int studies = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(SCALEMARK_SOURCE_DIR) / "configs/studies")) {
    const Study study = read_study(entry.path());
    ++studies;
    EXPECT_LE(study.profile("laptop").minutes(), 5) << study.name;
    EXPECT_LE(study.profile("laptop").ranks, 4) << study.name;
    bool tells = false;
    for (const Figure& figure : study.profile("laptop").figures) tells = tells || figure.reading;
    EXPECT_TRUE(tells) << study.name;
  }
  EXPECT_EQ(studies, 16);
}

}  // namespace
}  // namespace scalemark::study_plan_test

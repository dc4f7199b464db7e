// Published curves: what is read, and what is wrong with those that are refused.
#include "result/published_curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "platform/tree.hpp"
#include "result/records.hpp"

namespace scalemark::published_curve_test {
namespace {
using test::Tree;
using testing::HasSubstr;

Json good() {
  return {{"kind", "published_curve"},
          {"description", "a curve"},
          {"source", "a paper"},
          {"model", "resnet50"},
          {"unit", "images/sec"},
          {"scaling", "weak"},
          {"parameters", 25'557'032},
          {"ranks_per_node", 8},
          {"link_gbit", 100},
          {"points",
           {{{"ranks", 1}, {"batch_size_per_rank", 64}, {"throughput", 100}},
            {{"ranks", 8}, {"batch_size_per_rank", 64}, {"throughput", 780.5}}}}};
}

std::string refusal(const Json& file) {
  Tree tree;
  tree.file("c.json", file.dump());
  try {
    read_published_curve(tree.root() / "c.json");
  } catch (const ResultError& error) {
    return error.what();
  }
  return "";
}

TEST(PublishedCurve, IsRead) {
  Tree tree;
  tree.file("c.json", good().dump());
  EXPECT_TRUE(is_published_curve(tree.root() / "c.json"));
  const PublishedCurve curve = read_published_curve(tree.root() / "c.json");
  EXPECT_EQ(curve.source, "a paper");
  EXPECT_EQ(curve.ranks_per_node, 8);
  EXPECT_EQ(curve.link_gbit, 100);
  EXPECT_EQ(curve.overlap, "backward");
  EXPECT_EQ(curve.bucket_mb, 25);
  ASSERT_EQ(curve.points.size(), 2u);
  EXPECT_EQ(curve.points[1].throughput, 780.5);
}

TEST(PublishedCurve, OtherFilesAreNone) {
  Tree tree;
  tree.file("r.json", R"({"kind": "run", "schema_version": 1})");
  tree.file("broken.json", "{");
  for (const char* name : {"r.json", "broken.json", "absent.json", "."})
    EXPECT_FALSE(is_published_curve(tree.root() / name)) << name;
}

TEST(PublishedCurve, WhatIsWrongIsNamed) {
  for (const char* key : {"source", "model", "unit", "scaling", "parameters", "points"}) {
    Json file = good();
    file.erase(key);
    EXPECT_THAT(refusal(file), HasSubstr(std::string("/") + key + " is missing"));
  }
  Json file = good();
  file["scaling"] = "weekly";
  EXPECT_THAT(refusal(file), HasSubstr("/scaling is \"weekly\", not one of [\"weak\",\"strong\"]"));
  file = good();
  file["points"][1]["throughput"] = -1;
  EXPECT_THAT(refusal(file), HasSubstr("/points/1/throughput is -1, not at least 1e-12"));
  file = good();
  file["points"][1]["ranks"] = 1;
  EXPECT_THAT(refusal(file), HasSubstr("/points/1/ranks is not above the one before"));
  file = good();
  file["points"][0]["ranks"] = 1.5;
  EXPECT_THAT(refusal(file), HasSubstr("/points/0/ranks is 1.5, not of type integer"));
  file = good();
  file["points"] = 3;
  EXPECT_THAT(refusal(file), HasSubstr("/points is 3, not of type array"));
  file = good();
  file["overlap"] = "all";
  EXPECT_THAT(refusal(file), HasSubstr("/overlap is \"all\", not one of"));
  file = good();
  file["ranks_per_node"] = nullptr;
  EXPECT_THAT(refusal(file), HasSubstr("/ranks_per_node is null, not of type integer"));
}

}  // namespace
}  // namespace scalemark::published_curve_test

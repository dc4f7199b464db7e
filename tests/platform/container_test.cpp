// What a record says of a container: told from outside, seen from inside, or none.
#include "platform/container.hpp"

#include <gtest/gtest.h>

namespace scalemark::container_test {
namespace {

SystemInfo info_of(const std::map<std::string, std::string>& environment,
                   const std::optional<std::string>& virtualisation) {
  SystemInfo info;
  info.json = Json::object();
  add_container(info, environment, virtualisation);
  return info;
}

TEST(Container, AsItWasToldFromOutside) {
  const ContainerFacts facts{"a b.sif", "apptainer", "0123", "", "outside"};
  const SystemInfo info = info_of({{kContainerVariable, facts.text()}}, "bare metal");
  EXPECT_EQ(
      info.json["container"],
      (Json{
          {"image", "a b.sif"}, {"runtime", "apptainer"}, {"digest", "0123"}, {"mpi", "outside"}}));
  EXPECT_TRUE(info.unavailable.empty());
}

TEST(Container, WithoutADigestSaysWhy) {
  const ContainerFacts facts{"root", "chroot {image}", "", "the image is a folder", "outside"};
  SystemInfo info = info_of({{kContainerVariable, facts.text()}}, "container");
  EXPECT_TRUE(info.json["container"]["digest"].is_null());
  EXPECT_EQ(info.unavailable["system.container.digest"], "the image is a folder");
}

TEST(Container, AsItIsSeenFromInside) {
  SystemInfo info = info_of({{"APPTAINER_CONTAINER", "/x.sif"}}, "container");
  EXPECT_EQ(info.json["container"]["image"], "/x.sif");
  EXPECT_EQ(info.json["container"]["runtime"], "apptainer");
  EXPECT_TRUE(info.json["container"]["mpi"].is_null()) << "whoever started it does not tell";
  info = info_of({{"SMK_INTERNAL_BINDING", "core:1"}}, "container");
  EXPECT_EQ(info.json["container"]["mpi"], "inside");
  EXPECT_TRUE(info.json["container"]["image"].is_null());
}

TEST(Container, None) {
  for (const char* kind : {"virtual", "bare metal"}) {
    SystemInfo info = info_of({}, kind);
    EXPECT_TRUE(info.json["container"].is_null());
    EXPECT_EQ(info.unavailable.size(), 1u);
  }
  EXPECT_TRUE(info_of({{kContainerVariable, "["}}, {}).json["container"]["image"].is_null());
}

}  // namespace
}  // namespace scalemark::container_test

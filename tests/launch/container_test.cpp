// The words of every runtime between the launcher's and the program, and what is refused.
#include "platform/container.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "json.hpp"
#include "launch/launch_builder.hpp"
#include "support/test_folder.hpp"

namespace scalemark::launch_container_test {
namespace {

using Words = std::vector<std::string>;
using ::testing::HasSubstr;

class Containers : public testing::Test {
 protected:
  ~Containers() override { unsetenv(kContainerVariable); }

  Words words(Launcher launcher, const std::string& image,
              const std::optional<std::string>& runtime = {}, bool gpus = false,
              bool own_program = true) {
    LaunchRequest request;
    request.launcher = launcher;
    request.program = {"/host/bin/scalemark", "run"};
    ContainerSettings settings;
    settings.container = image;
    settings.container_runtime = runtime;
    put_in_container(request, settings, {"/results", gpus, own_program});
    Words all = request.container;
    all.insert(all.end(), request.program.begin(), request.program.end());
    return all;
  }

  std::string refusal(Launcher launcher, const std::string& runtime) {
    try {
      words(launcher, "a.sif", runtime);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }

  static Json told() { return Json::parse(std::getenv(kContainerVariable)); }

  std::string cwd_ = std::filesystem::current_path().string();
  TestFolder folder_;
};

TEST_F(Containers, OfApptainer) {
  EXPECT_EQ(words(Launcher::mpirun, "docker://a"),
            (Words{"apptainer", "exec", "--bind", "/results," + cwd_, "--pwd", cwd_, "docker://a",
                   "scalemark", "run"}));
  EXPECT_EQ(words(Launcher::srun, "a.sif", "singularity", true).at(2), "--nv");
}

TEST_F(Containers, OfPyxisAreFlagsOfSrun) {
  EXPECT_EQ(words(Launcher::srun, "team/a b:1"),
            (Words{"--container-image=team/a b:1",
                   "--container-mounts=/results:/results," + cwd_ + ":" + cwd_,
                   "--container-workdir=" + cwd_, "scalemark", "run"}));
  EXPECT_THAT(refusal(Launcher::mpirun, "pyxis"), HasSubstr("a part of srun"));
}

TEST_F(Containers, OfTheUserAreNotPartedByWhatIsPutIn) {
  EXPECT_EQ(
      words(Launcher::mpirun, "a b;{cwd}", "run -v {results}:{results}  {image} ; $(id)"),
      (Words{"run", "-v", "/results:/results", "a b;{cwd}", ";", "$(id)", "scalemark", "run"}));
  EXPECT_THAT(refusal(Launcher::mpirun, "podman run"), HasSubstr("{image}"));
}

TEST_F(Containers, ABuildOfTheHostStaysWhereItIs) {
  EXPECT_EQ(words(Launcher::mpirun, "a", {}, false, false),
            (Words{"apptainer", "exec", "--bind", "/results," + cwd_ + ",/host", "--pwd", cwd_, "a",
                   "/host/bin/scalemark", "run"}));
}

TEST_F(Containers, StandBetweenTheLauncherAndTheProgram) {
  LaunchRequest request;
  request.launcher = Launcher::mpirun;
  request.program = {"scalemark", "run"};
  request.container = {"chroot", "/a b"};
  const Words all = launch_command(request, false);
  EXPECT_EQ(all.front(), "mpirun");
  EXPECT_EQ(Words(all.end() - 4, all.end()), (Words{"chroot", "/a b", "scalemark", "run"}));
  EXPECT_THAT(command_line(request), HasSubstr("chroot '/a b' scalemark run"));
  request.direct = true;
  EXPECT_EQ(launch_command(request, false), (Words{"chroot", "/a b", "scalemark", "run"}));
}

TEST_F(Containers, TheDigestIsTheFilesOrTheNames) {
  const std::string file = (folder_.path() / "a.sif").string();
  std::ofstream(file) << "abc";
  words(Launcher::mpirun, file);
  EXPECT_EQ(told()["digest"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string digest(64, 'a');
  words(Launcher::mpirun, "name@sha256:" + digest);
  EXPECT_EQ(told()["digest"], digest);
  words(Launcher::mpirun, "name@sha256:short");
  EXPECT_EQ(told()["digest"], "");
  words(Launcher::mpirun, folder_.path().string());
  EXPECT_EQ(told()["no_digest"], "the image is a folder");
}

TEST_F(Containers, RanksOutsideAreRefused) {
  ContainerSettings settings;
  EXPECT_NO_THROW(refuse_outside_container(settings, true));
  settings.container = "a.sif";
  EXPECT_THROW(refuse_outside_container(settings, true), ConfigError);
  EXPECT_THROW(refuse_outside_container(settings, false), ConfigError);
  words(Launcher::mpirun, "a.sif");  // as in a rank that was put into it
  EXPECT_NO_THROW(refuse_outside_container(settings, true));
}

}  // namespace
}  // namespace scalemark::launch_container_test

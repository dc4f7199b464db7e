// Command lines of the launchers and what their exits mean.
#include <array>
#include <cstdio>

#include "launch/launch.hpp"
#include "launch_support.hpp"

namespace scalemark::command_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LaunchRequest request(Launcher launcher, int ranks, int cpus) {
  LaunchRequest made;
  made.launcher = launcher;
  made.ranks = ranks;
  made.cpus_per_rank = cpus;
  made.program = {"prog", "--label", "two words"};
  return made;
}

TEST(LaunchCommand, MpirunBindsExplicitly) {
  EXPECT_THAT(launch_command(request(Launcher::mpirun, 4, 2), false),
              ElementsAre("mpirun", "-n", "4", "--map-by", "slot:PE=2", "--bind-to", "core", "prog",
                          "--label", "two words"));
}

TEST(LaunchCommand, MpirunAsRootOnOtherHosts) {
  LaunchRequest remote = request(Launcher::mpirun, 2, 1);
  remote.hostfile = "my hosts";
  remote.forward = {"SCALEMARK_SEED"};
  EXPECT_THAT(launch_command(remote, true),
              ElementsAre("mpirun", "--allow-run-as-root", "-n", "2", "--hostfile", "my hosts",
                          "--map-by", "slot:PE=1", "--bind-to", "core", "-x", "SCALEMARK_SEED",
                          "prog", "--label", "two words"));
}

TEST(LaunchCommand, MoreRanksThanCoresAreNotBound) {
  LaunchRequest crowded = request(Launcher::mpirun, 3, 1);
  crowded.oversubscribe = true;
  EXPECT_THAT(launch_command(crowded, false),
              ElementsAre("mpirun", "-n", "3", "--map-by", "slot:OVERSUBSCRIBE", "--bind-to",
                          "none", "prog", "--label", "two words"));
}

TEST(LaunchCommand, BindingIsAskedForWhateverItIs) {
  const auto words = [](Launcher launcher, Binding binding, bool hydra = false) {
    LaunchRequest made = request(launcher, 2, 4);
    made.binding = binding;
    made.hydra = hydra;
    return shell_quoted(launch_command(made, false));
  };
  EXPECT_THAT(words(Launcher::mpirun, Binding::socket),
              HasSubstr("--map-by socket --bind-to socket"));
  EXPECT_THAT(words(Launcher::mpirun, Binding::numa), HasSubstr("--map-by numa --bind-to numa"));
  EXPECT_THAT(words(Launcher::mpirun, Binding::none), HasSubstr("--map-by slot --bind-to none"));
  EXPECT_THAT(words(Launcher::srun, Binding::socket),
              HasSubstr("--cpus-per-task=4 --cpu-bind=sockets"));
  EXPECT_THAT(words(Launcher::srun, Binding::numa), HasSubstr("--cpu-bind=ldoms"));
  EXPECT_THAT(words(Launcher::srun, Binding::none), HasSubstr("--cpu-bind=none"));
  EXPECT_THAT(words(Launcher::mpirun, Binding::numa, true), HasSubstr("-bind-to numa prog"));
  EXPECT_THAT(words(Launcher::mpirun, Binding::none, true), HasSubstr("-bind-to none"));
  LaunchRequest by_node = request(Launcher::mpirun, 4, 1);
  by_node.binding = Binding::numa;
  by_node.ranks_per_node = 2;
  EXPECT_THAT(shell_quoted(launch_command(by_node, false)),
              HasSubstr("--map-by ppr:2:node --bind-to numa"));
}

TEST(LaunchCommand, HydraStartsTheRanksOfMpich) {
  LaunchRequest mpich = request(Launcher::mpirun, 4, 2);
  mpich.hydra = true;
  mpich.hostfile = "hosts";
  mpich.ranks_per_node = 2;
  EXPECT_THAT(launch_command(mpich, true),
              ElementsAre("mpiexec.hydra", "-n", "4", "-f", "hosts", "-ppn", "2", "-bind-to",
                          "core:2", "prog", "--label", "two words"));
  mpich = request(Launcher::mpirun, 3, 1);
  mpich.hydra = mpich.oversubscribe = true;
  EXPECT_THAT(launch_command(mpich, false), ElementsAre("mpiexec.hydra", "-n", "3", "-bind-to",
                                                        "none", "prog", "--label", "two words"));
}

TEST(LaunchCommand, Srun) {
  EXPECT_THAT(launch_command(request(Launcher::srun, 4, 2), true),
              ElementsAre("srun", "--mpi=pmix", "--kill-on-bad-exit=1", "-n", "4",
                          "--cpus-per-task=2", "--cpu-bind=cores", "prog", "--label", "two words"));
  LaunchRequest by_node = request(Launcher::srun, 5, 1);
  by_node.ranks_per_node = 2;
  EXPECT_THAT(launch_command(by_node, true),
              ElementsAre("srun", "--mpi=pmix", "--kill-on-bad-exit=1", "-n", "5", "-N", "3",
                          "--ntasks-per-node=2", "--distribution=plane=2", "--cpus-per-task=1",
                          "--cpu-bind=cores", "prog", "--label", "two words"));
  LaunchRequest with_hosts = request(Launcher::srun, 4, 2);
  with_hosts.hostfile = "hosts";
  EXPECT_THROW(launch_command(with_hosts, false), ConfigError);
}

TEST(LaunchCommand, MpirunIsTheLauncherOutsideSlurm) {
  EXPECT_EQ(detect_launcher({}), Launcher::mpirun);
}

TEST(ShellQuoted, AShellReadsBackTheSameWords) {
  const std::vector<std::string> words{"plain", "two words", "$(touch x)", "it's", "",
                                       "a\nb",  "--x=1",     "`id`",       "\\"};
  const std::string command = "printf '%s\\0' " + shell_quoted(words);
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 4096> chunk;
  for (std::size_t n; (n = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
    text.append(chunk.data(), n);
  pclose(pipe);
  std::string expected;
  for (const std::string& word : words) expected += word + '\0';
  EXPECT_EQ(text, expected);
  EXPECT_EQ(shell_quoted({"mpirun", "-n", "2"}), "mpirun -n 2");
}

TEST(MapLauncherExit, TheAgreedCodeStands) {
  EXPECT_EQ(map_launcher_exit({137, false}, 5), ExitCode::timeout);
  EXPECT_EQ(map_launcher_exit({1, false}, 6), ExitCode::result);
  EXPECT_EQ(map_launcher_exit({0, false}, 0), ExitCode::ok);
  EXPECT_EQ(map_launcher_exit({137, false}, 99), ExitCode::failed);  // no code of ours
}

TEST(EndWords, AStatusThatIsNoSignalIsNotCalledOne) {
  EXPECT_EQ(end_words(137), "killed by signal 9 (KILL)");
  EXPECT_EQ(end_words(213), "ended with status 213");  // mpirun has some of its own
  EXPECT_EQ(end_words(1), "ended with status 1");
  EXPECT_EQ(map_launcher_exit({213, false}, std::nullopt), ExitCode::environment);
  EXPECT_EQ(map_launcher_exit({14, false}, std::nullopt), ExitCode::environment);
  EXPECT_EQ(map_launcher_exit({14, false}, std::nullopt, /*begun=*/true), ExitCode::failed);
  EXPECT_EQ(map_launcher_exit({7, false}, std::nullopt, true), ExitCode::environment);  // of ranks
}

TEST(MapLauncherExit, OtherwiseTheStatusIsRead) {
  const auto code = [](int status) { return map_launcher_exit({status, false}, std::nullopt); };
  EXPECT_EQ(code(0), ExitCode::ok);
  EXPECT_EQ(code(1), ExitCode::environment);  // mpirun: root refused, too few slots
  EXPECT_EQ(code(2), ExitCode::environment);  // mpirun: a host that cannot be reached
  for (const int own : {4, 5, 6, 7}) EXPECT_EQ(static_cast<int>(code(own)), own);
  for (const int killed : {134, 137, 139, 143}) EXPECT_EQ(code(killed), ExitCode::failed);
  const int next = std::ssize(kExitCodes);  // 8 as yet
  for (const int other : {3, next, 126, 127, 213, 255})
    EXPECT_EQ(code(other), ExitCode::environment);
}

}  // namespace
}  // namespace scalemark::command_test

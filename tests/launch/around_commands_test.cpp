// Commands around a launch, with real processes.
#include "launch/point_launcher.hpp"
#include "launch_support.hpp"
#include "platform/platform.hpp"

namespace scalemark::around_commands_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CommandWords shell(const std::string& script) { return {"sh", "-c", script}; }

/// Prints how it ended into `file`; in a process of its own, which may be sent signals.
int run(const std::vector<CommandWords>& commands, Moment moment, double limit_seconds,
        const std::string& log, const std::string& file,
        const std::function<void(pid_t)>& meanwhile = {}) {
  return in_child(
      [&] {
        std::vector<AroundCommand> around;
        for (const CommandWords& words : commands) around.push_back({words});
        const CommandsEnd end = run_commands(around, moment, limit_seconds, log);
        std::ofstream(file) << end.reason;
        return static_cast<int>(end.code) + (end.stopped ? 100 : 0);
      },
      meanwhile);
}

TEST(AroundCommands, WhatTheyPrintIsKept) {
  const TestFolder folder;
  const std::string log = folder / "x.log";
  EXPECT_EQ(run({{"echo", "a b", "$HOME;"}, shell("echo err >&2; cat")}, Moment::before, 30, log,
                folder / "end"),
            0);
  EXPECT_EQ(read_text(log),
            "$ echo 'a b' '$HOME;'\na b $HOME;\n$ sh -c 'echo err >&2; cat'\nerr\n");
  EXPECT_EQ(run({{"true"}}, Moment::before, 30, log, folder / "end"), 0);
  EXPECT_EQ(read_text(log), "$ true\n");
  EXPECT_EQ(run({}, Moment::before, 30, log, folder / "end"), 0);
  EXPECT_EQ(read_text(log), "");
}

TEST(AroundCommands, AFailureNamesTheCommand) {
  const TestFolder folder;
  const std::string log = folder / "x.log", end = folder / "end";
  EXPECT_EQ(run({{"true"}, shell("exit 3"), shell("echo on > " + (folder / "on"))}, Moment::before,
                30, log, end),
            7);
  EXPECT_THAT(read_text(end),
              AllOf(HasSubstr("before: sh -c 'exit 3' ended with status 3"), HasSubstr("x.log")));
  EXPECT_EQ(read_text(folder / "on"), "");
  EXPECT_EQ(run({{"no-such-program"}}, Moment::before, 30, log, end), 7);
  EXPECT_THAT(read_text(end), HasSubstr("no-such-program cannot be started"));
  EXPECT_THAT(read_text(log), HasSubstr("No such file"));
  EXPECT_EQ(run({shell("kill -KILL $$")}, Moment::before, 30, log, end), 7);
  EXPECT_THAT(read_text(end), HasSubstr("killed by signal 9"));
  EXPECT_EQ(run({{"true"}}, Moment::before, 30, folder / "no/such/folder.log", end), 7);
}

TEST(AroundCommands, OfThoseAfterEachRuns) {
  const TestFolder folder;
  EXPECT_EQ(run({shell("exit 3"), shell("echo on > " + (folder / "on"))}, Moment::after, 30,
                folder / "x.log", folder / "end"),
            7);
  EXPECT_EQ(read_text(folder / "on"), "on\n");
  EXPECT_THAT(read_text(folder / "end"), HasSubstr("after: sh -c 'exit 3'"));
}

/// The launch of a command on this host alone, without a launcher.
AroundCommand on_hosts(const CommandWords& words, Moment moment) {
  LaunchRequest launch;
  launch.direct = true;
  launch.environment = {{"GIVEN", "a b"}, {"HOME", std::nullopt}};
  return {words, on_each_host(launch, words, moment)};
}

TEST(AroundCommands, OnHostsTheFirstRankRunsThemAndSaysHowTheyEnded) {
  const TestFolder folder;
  const std::string log = folder / "x.log", end = folder / "end", host = host_name();
  const auto run_there = [&](const CommandWords& words, Moment moment = Moment::before,
                             const std::function<void(pid_t)>& meanwhile = {}) {
    return in_child(
        [&] {
          const CommandsEnd ended = run_commands({on_hosts(words, moment)}, moment, 30, log);
          std::ofstream(end) << ended.reason;
          return static_cast<int>(ended.code) + (ended.stopped ? 100 : 0);
        },
        meanwhile);
  };
  EXPECT_EQ(run_there(shell("echo \"$GIVEN;${HOME-unset}\"; printf end")), 0);
  EXPECT_THAT(read_text(log), HasSubstr("\na b;unset\nendscalemark: on " + host + ": status 0\n"));
  EXPECT_EQ(run_there({"echo", "$x; `y` 'z' \"q\""}), 0);
  EXPECT_THAT(read_text(log), HasSubstr("\n$x; `y` 'z' \"q\"\n"));
  EXPECT_EQ(run_there(shell("exit 3")), 7);
  EXPECT_THAT(read_text(end),
              HasSubstr("before: sh -c 'exit 3' on " + host + " ended with status 3; see " + log));
  EXPECT_EQ(run_there({"exit", "0"}), 7);  // what the shell has by itself is no program
  EXPECT_THAT(read_text(end), HasSubstr("on " + host + " cannot be started"));
  EXPECT_EQ(run_there(shell("kill -KILL $$")), 7);
  EXPECT_THAT(read_text(end), HasSubstr("on " + host + " was killed by signal 9"));
  EXPECT_EQ(run_there(shell("kill -KILL $PPID")), 7);  // of which no host tells
  EXPECT_THAT(read_text(end), HasSubstr("on each host was killed by signal 9"));

  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
  EXPECT_EQ(run_there({"no-such-program"}), built_for_hydra() ? 7 : 0);
  unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");

  const std::string file = folder / "file";
  EXPECT_EQ(run_there(shell("echo up > " + file + "; sleep 1; echo done >> " + file), Moment::after,
                      [&](pid_t pid) {
                        EXPECT_TRUE(appears(file));
                        kill(pid, SIGINT);
                      }),
            100);
  EXPECT_EQ(read_text(file), "up\ndone\n");
}

TEST(AroundCommands, HaveALimitAndLeaveNothingBehind) {
  const TestFolder folder;
  const std::string script = "sleep 1000 & echo $! > " + (folder / "pid") + "; wait";
  EXPECT_EQ(run({shell(script)}, Moment::before, 1, folder / "x.log", folder / "end"), 5);
  EXPECT_THAT(read_text(folder / "end"), HasSubstr("took longer than 1 s (command_timeout)"));
  const std::string pid = read_text(folder / "pid");
  EXPECT_FALSE(alive(pid.substr(0, pid.find('\n'))));
}

TEST(AroundCommands, AStopEndsThoseBeforeAndWaitsForThoseAfter) {
  const TestFolder folder;
  const std::string file = folder / "file", up = "echo up > " + file;
  const auto stop = [&](pid_t pid) {
    EXPECT_TRUE(appears(file));
    kill(pid, SIGINT);
  };
  EXPECT_EQ(run({shell(up + "; sleep 60"), shell("echo on >> " + file)}, Moment::before, 90,
                folder / "x.log", folder / "end", stop),
            107);
  EXPECT_EQ(read_text(file), "up\n");
  std::remove(file.c_str());
  EXPECT_EQ(run({shell(up + "; sleep 1; echo done >> " + file), shell("echo on >> " + file)},
                Moment::after, 90, folder / "x.log", folder / "end", stop),
            100);
  EXPECT_EQ(read_text(file), "up\ndone\non\n");
}

}  // namespace
}  // namespace scalemark::around_commands_test

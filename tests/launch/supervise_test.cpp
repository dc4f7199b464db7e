// The supervisor with real processes: exit codes, signals, and that nothing stays behind.
#include <poll.h>
#include <sys/resource.h>

#include "launch/launch.hpp"
#include "launch_support.hpp"

namespace scalemark::supervise_test {
namespace {

std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }

/// Exit code of a supervisor over a script, +100 where it had to stop it.
int supervised(const std::string& script, double grace_seconds = 30,
               const std::function<void(pid_t)>& meanwhile = {}) {
  return in_child(
      [&] {
        const SupervisedExit exit = supervise(shell(script), {.grace_seconds = grace_seconds});
        return exit.raw_status + (exit.stopped_by_us ? 100 : 0);
      },
      meanwhile);
}

TEST(Supervise, PassesTheExitStatus) {
  EXPECT_EQ(supervised("exit 0"), 0);
  EXPECT_EQ(supervised("exit 5"), 5);
  EXPECT_EQ(supervised("kill -KILL $$"), 137);
  EXPECT_EQ(in_child([] { return supervise({"/no/such/program"}, {}).raw_status; }), 127);
}

TEST(Supervise, AFileSizeLimitIsAnErrorOfTheWrite) {
  const TestFolder folder;
  EXPECT_EQ(in_child([&] {
              ChildProcess process{shell("trap 'exit 9' XFSZ; printf %2000s x; exit 3")};
              process.output = folder / "log";
              const rlimit limit{1000, 1000};
              process.before_exec = [&] { setrlimit(RLIMIT_FSIZE, &limit); };
              return supervise_all({process}, {}).raw_status.front();
            }),
            3);
  EXPECT_EQ(std::filesystem::file_size(folder / "log"), 1000);
}

TEST(Supervise, ForwardsASignalAsAStopRequest) {
  const TestFolder folder;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    const std::string ready = folder / ("ready" + std::to_string(signal));
    const std::string script =
        "trap 'exit 6' USR1; echo up > " + ready + "; while :; do sleep 0.05; done";
    EXPECT_EQ(supervised(script, 30,
                         [&](pid_t pid) {
                           EXPECT_TRUE(appears(ready));
                           kill(pid, signal);
                         }),
              106)
        << signal;
  }
}

TEST(Supervise, TellsAJobThatDoesNotStopInTime) {
  const TestFolder folder;
  const std::string script = "trap '' USR1; trap 'exit 9' TERM; echo up > " + (folder / "ready") +
                             "; while :; do sleep 0.05; done";
  EXPECT_EQ(supervised(script, 0.2,
                       [&](pid_t pid) {
                         EXPECT_TRUE(appears(folder / "ready"));
                         kill(pid, SIGTERM);
                       }),
            109);
}

TEST(Supervise, ASecondSignalInsists) {
  const TestFolder folder;
  const std::string script = "trap 'echo asked > " + (folder / "asked") +
                             "' USR1; trap 'exit 9' TERM; echo up > " + (folder / "ready") +
                             "; while :; do sleep 0.05; done";
  EXPECT_EQ(supervised(script, 3600,
                       [&](pid_t pid) {
                         EXPECT_TRUE(appears(folder / "ready"));
                         kill(pid, SIGINT);
                         EXPECT_TRUE(appears(folder / "asked"));
                         kill(pid, SIGINT);
                       }),
            109);
}

TEST(Supervise, AsksNobodyWhoDoesNotListenYet) {
  const TestFolder folder;
  const std::string up = folder / "up", ready = folder / "ready";
  const std::string script = "echo up > " + up + "; sleep 1.5; trap 'exit 6' USR1; echo > " +
                             ready + "; while :; do sleep 0.05; done";
  const Supervision how{.listens = [&] { return std::filesystem::exists(ready); },
                        .has_heard = [] { return false; }};
  EXPECT_EQ(in_child([&] { return supervise(shell(script), how).raw_status; },
                     [&](pid_t pid) {
                       EXPECT_TRUE(appears(up));
                       kill(pid, SIGTERM);
                     }),
            6);
}

TEST(Supervise, AStopThatEndsTheLauncherFirstIsAStop) {
  EXPECT_EQ(supervised("(sleep 0.2; kill -TERM $PPID) & kill -TERM $$"), 243);
}

TEST(Supervise, EndsALauncherWhoseJobIsOver) {
  const TestFolder folder;
  const std::string over = folder / "over";
  EXPECT_EQ(in_child([&] {
              const auto is_over = [&] { return std::filesystem::exists(over); };
              return supervise(shell("sleep 0.1; touch " + over + "; sleep 600"),
                               {.grace_seconds = 30, .has_ended = is_over, .end_seconds = 0.1})
                  .raw_status;
            }),
            128 + SIGTERM);
}

TEST(Supervise, LeavesNoProcessBehind) {
  const TestFolder folder;
  // One that left the process group and its parent, one that ignores everything that can be
  // ignored.
  const std::string script =
      "setsid sh -c 'echo $$ > " + (folder / "far") + "; sleep 600 & wait' & " +
      "(trap '' TERM USR1 HUP INT; sh -c 'echo $PPID > " + (folder / "deaf") +
      "'; while :; do sleep 1; done) & " + "while [ ! -s " + (folder / "far") + " ] || [ ! -s " +
      (folder / "deaf") + " ]; do sleep 0.02; done; exit 4";
  EXPECT_EQ(supervised(script), 4);
  for (const char* name : {"far", "deaf"}) {
    const std::string text = read_text(folder / name);
    const std::string pid = text.substr(0, text.find('\n'));
    ASSERT_FALSE(pid.empty());
    EXPECT_FALSE(alive(pid)) << name << " " << pid;
  }
}

TEST(Supervise, TheJobDoesNotOutliveAKilledSupervisor) {
  const TestFolder folder;
  EXPECT_EQ(supervised("trap 'echo told > " + (folder / "told") + "; exit' TERM; echo up > " +
                           (folder / "ready") + "; while :; do sleep 0.05; done",
                       30,
                       [&](pid_t pid) {
                         EXPECT_TRUE(appears(folder / "ready"));
                         kill(pid, SIGKILL);
                       }),
            137);
  EXPECT_TRUE(appears(folder / "told"));
}

std::vector<ChildProcess> side_by_side(const std::vector<std::string>& scripts) {
  std::vector<ChildProcess> processes;
  for (const std::string& script : scripts) processes.push_back({shell(script)});
  return processes;
}

TEST(SuperviseAll, PassesEveryExitStatus) {
  EXPECT_EQ(in_child([] {
              const auto exits = supervise_all(side_by_side({"exit 0", "sleep 0.3", "exit 0"}), {});
              return exits.first_failed || exits.stopped_by_us ? 1 : exits.raw_status[1];
            }),
            0);
}

TEST(SuperviseAll, WhereOneFailsTheOthersAreStopped) {
  const TestFolder folder;
  const std::string deaf = "trap 'echo told > " + (folder / "told") + "; exit 6' TERM; echo up > " +
                           (folder / "up") + "; while :; do sleep 0.05; done";
  const std::string fails =
      "while [ ! -s " + (folder / "up") + " ]; do sleep 0.02; done; kill -9 $$";
  EXPECT_EQ(in_child([&] {
              const auto exits = supervise_all(side_by_side({deaf, fails}), {.end_seconds = 0});
              const bool right = exits.first_failed == 1u && !exits.stopped_by_us &&
                                 !exits.overdue && exits.raw_status[1] == 137;
              return right ? exits.raw_status[0] : 1;
            }),
            6);
  EXPECT_TRUE(appears(folder / "told"));
}

TEST(SuperviseAll, AStopReachesAllThatStillRun) {
  const TestFolder folder;
  const auto waits = [&](const std::string& name) {
    return "trap 'exit 4' USR1; echo up > " + (folder / name) + "; while :; do sleep 0.05; done";
  };
  EXPECT_EQ(
      in_child(
          [&] {
            const auto exits = supervise_all(side_by_side({waits("a"), "exit 0", waits("b")}), {});
            return exits.stopped_by_us && !exits.first_failed
                       ? exits.raw_status[0] + 10 * exits.raw_status[2]
                       : 1;
          },
          [&](pid_t pid) {
            EXPECT_TRUE(appears(folder / "a"));
            EXPECT_TRUE(appears(folder / "b"));
            kill(pid, SIGINT);
          }),
      44);
}

TEST(SuperviseAll, SaysWhoWasNotOverInTime) {
  EXPECT_EQ(in_child([] {
              const auto exits =
                  supervise_all(side_by_side({"exit 0", "sleep 600"}), {.limit_seconds = 0.5});
              return exits.overdue && !exits.ran_out[0] && exits.ran_out[1] &&
                             !exits.first_failed && !exits.stopped_by_us
                         ? exits.raw_status[1]
                         : 1;
            }),
            128 + SIGTERM);
}

TEST(SuperviseAll, InputWakesTheSupervisor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(in_child([&] {
              int heard = 0;
              Supervision how;
              how.inputs = [&] { return heard ? std::vector<int>() : std::vector<int>{ends[0]}; };
              how.on_wake = [&] {
                pollfd watched{ends[0], POLLIN, 0};
                char byte = 0;
                if (!heard && poll(&watched, 1, 0) == 1 && read(ends[0], &byte, 1) == 1)
                  heard = byte;
              };
              const std::string script = "printf 7 >&" + std::to_string(ends[1]) + "; sleep 0.2";
              supervise_all(side_by_side({script}), how);
              return heard - '0';
            }),
            7);
  for (const int end : ends) close(end);
}

TEST(SuperviseAll, AChildThatCannotSettleSaysWhy) {
  const TestFolder folder;
  EXPECT_EQ(in_child([&] {
              std::vector<ChildProcess> processes = side_by_side({"exit 0"});
              processes[0].output = folder / "log";
              processes[0].before_exec = [] { throw EnvironmentError("no such CPU"); };
              return supervise_all(processes, {}).raw_status[0];
            }),
            7);
  EXPECT_EQ(read_text(folder / "log"), "scalemark: no such CPU\n");
}

TEST(Supervise, GivesSignalsBack) {
  EXPECT_EQ(in_child([] {
              supervise(shell("exit 0"), {});
              sigset_t mask;
              pthread_sigmask(SIG_BLOCK, nullptr, &mask);
              return sigismember(&mask, SIGTERM) + sigismember(&mask, SIGCHLD);
            }),
            0);
}

}  // namespace
}  // namespace scalemark::supervise_test

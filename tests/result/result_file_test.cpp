// The exclusive atomic writer: faults 9 (refused places), 10 (killed at any point) and 18 (two
// writers).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <set>

#include "error.hpp"
#include "result/envelope.hpp"
#include "result/support.hpp"
#include "support/in_child.hpp"

namespace scalemark::result_file_test {
namespace {
namespace fs = std::filesystem;
using test::contents;
using test::Tree;
using testing::HasSubstr;

Json record_of(const std::string& reason) { return envelope("run", Status::failed, reason); }

/// Files of a folder, hidden ones too.
std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

/// What ResultFile(path) says when it refuses.
std::string refusal(const fs::path& path) {
  try {
    ResultFile file(path);
  } catch (const ResultError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path.string()));
    return error.what();
  }
  ADD_FAILURE() << path << " was not refused";
  return "";
}

/// A file system of its own in a folder; skips the test where mounting is not allowed.
struct Mount {
  fs::path folder;
  bool mounted;
  Mount(const fs::path& at, const char* options)
      : folder(at), mounted(mount("tmpfs", at.c_str(), "tmpfs", 0, options) == 0) {}
  ~Mount() {
    if (mounted) umount2(folder.c_str(), MNT_DETACH);
  }
};

TEST(ResultFile, MakesFoldersAndLeavesOnlyTheRecord) {
  Tree tree;
  const fs::path path = tree.root() / "a" / "b" / "run.json";
  const Json record = record_of("x");
  {
    ResultFile file(path);
    EXPECT_EQ(file.path(), path);
    EXPECT_FALSE(fs::exists(path));  // a probe leaves no result
    file.write(record);
    file.write(record);
  }
  EXPECT_EQ(read_record(path), record);
  EXPECT_EQ(files_in(path.parent_path()), std::vector<std::string>{"run.json"});
}

TEST(ResultFile, ReplacesAnOlderFileOnlyByWriting) {
  Tree tree;
  const fs::path path = tree.root() / "run.json";
  tree.file("run.json", "older");
  { ResultFile unused(path); }
  EXPECT_EQ(contents(path), "older");
  ResultFile(path).write(record_of("newer"));
  EXPECT_EQ(read_record(path)["reason"], "newer");
}

/// A run with a throughput.
Json measured(const std::string& name) {
  Json record = envelope("run", Status::ok, "");
  record["id"] = name;
  record["throughput"] = {{"mean", 1.0}};
  return record;
}

std::string id_at(const fs::path& path) { return Json::parse(contents(path))["id"]; }

TEST(ResultFile, AMeasurementIsKeptUnderTheNextNumber) {
  Tree tree;
  const fs::path path = tree.root() / "run.json";
  for (const char* name : {"first", "second", "third"}) {
    ResultFile file(path);
    file.write(measured(name));
    EXPECT_EQ(file.kept().empty(), name == std::string("first"));
    file.write(measured(name));  // its own is no older one
  }
  EXPECT_EQ(id_at(path), "third");
  EXPECT_EQ(id_at(path.string() + ".~1~"), "first");
  EXPECT_EQ(id_at(path.string() + ".~2~"), "second");
  ResultFile(path, 0, "--output", Older::replaced).write(measured("fourth"));
  tree.file("run.json.~17~", "");
  tree.file("run.json.~99999999999999999999~", "none of ours");
  tree.file("run.json.~x~", "none of ours");
  ResultFile(path).write(measured("fifth"));
  EXPECT_EQ(id_at(path.string() + ".~18~"), "fourth");
}

TEST(ResultFile, WhatIsNoFinishedMeasurementIsReplaced) {
  Json partial = measured("x"), computed = measured("x"), swept = measured("x");
  partial["status"] = "interrupted";
  partial["throughput"] = nullptr;
  computed["kind"] = "comparison";
  swept["kind"] = "scaling";
  swept["repeat_unit"] = "launch";
  for (const std::string& text :
       {partial.dump(), computed.dump(), swept.dump(), std::string("notes"), std::string("[]"),
        std::string("{\"kind\": 3}"), measured("x").dump().substr(0, 40)}) {
    Tree tree;
    tree.file("run.json", text);
    ResultFile(tree.root() / "run.json").write(measured("y"));
    EXPECT_EQ(files_in(tree.root()), std::vector<std::string>{"run.json"}) << text;
  }
}

TEST(ResultFile, AnUnfinishedMeasurementWithFiguresIsKeptUnlessItGoesOn) {
  Json curve = measured("older");
  curve["status"] = "interrupted";
  curve["throughput"] = nullptr;
  curve["points"] = {{{"throughput", nullptr}}, {{"throughput", 2.0}}};
  for (const bool goes_on : {false, true}) {
    Tree tree;
    tree.file("s.json", curve.dump());
    {
      ResultFile file(tree.root() / "s.json");
      if (goes_on) file.continue_older();
      file.write(measured("newer"));
    }
    EXPECT_EQ(fs::exists(tree.root() / "s.json.~1~"), !goes_on);
  }
  Tree tree;
  tree.file("s.json", measured("older").dump());
  ResultFile file(tree.root() / "s.json");
  file.continue_older();  // of a later command that was ended: this one is finished
  file.write(measured("newer"));
  EXPECT_EQ(id_at(tree.root() / "s.json.~1~"), "older");
}

TEST(ResultFile, TheSameRecordWrittenAgainIsNotKept) {
  Tree tree;
  tree.file("run.json", measured("x").dump());
  ResultFile(tree.root() / "run.json").write(measured("x"));
  EXPECT_EQ(files_in(tree.root()), std::vector<std::string>{"run.json"});
}

TEST(ResultFile, WhoWritesNothingLeavesNoSecondName) {
  Tree tree;
  tree.file("run.json", measured("x").dump());
  {
    ResultFile unused(tree.root() / "run.json");
    EXPECT_EQ(unused.kept(), "");
  }
  EXPECT_EQ(files_in(tree.root()), std::vector<std::string>{"run.json"});
  {
    ResultFile moved(tree.root() / "run.json");
    fs::remove(tree.root() / "run.json");  // what is nowhere else stays
  }
  EXPECT_EQ(files_in(tree.root()), std::vector<std::string>{"run.json.~1~"});
}

TEST(ResultFile, AKeptMeasurementLiesBesideWhatALinkLeadsTo) {
  Tree tree;
  tree.file("far/run.json", measured("older").dump());
  fs::create_symlink("far/run.json", tree.root() / "link.json");
  ResultFile(tree.root() / "link.json").write(measured("newer"));
  EXPECT_EQ(id_at(tree.root() / "far/run.json.~1~"), "older");
  EXPECT_EQ(id_at(tree.root() / "link.json"), "newer");
}

TEST(ResultFile, ASymbolicLinkStaysAndWhatItLeadsToIsWritten) {
  Tree tree;
  tree.file("far/run.json", "older");
  fs::create_symlink("far/run.json", tree.root() / "link.json");
  fs::create_symlink(tree.root() / "link.json", tree.root() / "second.json");
  fs::create_symlink("new/folder/none.json", tree.root() / "dangling.json");
  ResultFile(tree.root() / "second.json").write(record_of("newer"));
  EXPECT_EQ(read_record(tree.root() / "far/run.json")["reason"], "newer");
  EXPECT_TRUE(fs::is_symlink(tree.root() / "link.json"));
  EXPECT_TRUE(fs::is_symlink(tree.root() / "second.json"));
  EXPECT_EQ(files_in(tree.root() / "far"), std::vector<std::string>{"run.json"});
  ResultFile(tree.root() / "dangling.json").write(record_of("made"));
  EXPECT_EQ(read_record(tree.root() / "new/folder/none.json")["reason"], "made");
  // The same file by two names: one of the writers gets another.
  ResultFile first(tree.root() / "far/run.json"), other(tree.root() / "link.json");
  EXPECT_EQ(other.path().filename(), "run.2.json");
  fs::create_symlink("circle.json", tree.root() / "circle.json");
  EXPECT_THROW(ResultFile(tree.root() / "circle.json"), ResultError);
}

TEST(ResultFile, ARelativeNameIsInTheWorkingFolder) {
  Tree tree;
  EXPECT_EQ(in_child([&] {
              if (chdir(tree.root().c_str()) != 0) return 1;
              ResultFile("run.json").write(record_of("x"));
              return 0;
            }),
            0);
  EXPECT_EQ(files_in(tree.root()), std::vector<std::string>{"run.json"});
}

TEST(ResultFile, RefusesWhatCannotBeAResult) {
  Tree tree;
  tree.file("file", "text");
  fs::create_directory(tree.root() / "folder");
  EXPECT_THAT(refusal(tree.root() / "folder"), HasSubstr("folder"));
  EXPECT_THAT(refusal(tree.root() / "file" / "run.json"), HasSubstr("Not a directory"));
  EXPECT_THAT(refusal("/dev/null"), HasSubstr("not a regular file"));
  EXPECT_THAT(refusal(tree.root() / (std::string(300, 'x') + ".json")), HasSubstr("too long"));
  EXPECT_THROW(ResultFile(""), ResultError);
  EXPECT_THROW(ResultFile(tree.root() / ""), ResultError);
  EXPECT_EQ(contents(tree.root() / "file"), "text");
}

TEST(ResultFile, RefusesWithoutPermission) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  Tree tree;
  tree.file("closed/run.json", "older").file("open/run.json", "of another user");
  fs::permissions(tree.root(), fs::perms(0755));
  fs::permissions(tree.root() / "open", fs::perms(0777));
  const auto as_nobody = [&](const fs::path& path) {
    return in_child([&] {
      constexpr uid_t kNobody = 65534;
      if (setgid(kNobody) != 0 || setuid(kNobody) != 0) return 1;
      const std::string message = refusal(path);
      return message.find("Permission denied") != std::string::npos &&
                     message.find("--output") != std::string::npos
                 ? 0
                 : 2;
    });
  };
  EXPECT_EQ(as_nobody(tree.root() / "closed/run.json"), 0);
  EXPECT_EQ(as_nobody(tree.root() / "closed/new/run.json"), 0);
  EXPECT_EQ(as_nobody(tree.root() / "open/run.json"),
            0);  // would be replaced by rename, but is not ours
  EXPECT_EQ(contents(tree.root() / "closed/run.json"), "older");
  EXPECT_EQ(contents(tree.root() / "open/run.json"), "of another user");
}

TEST(ResultFile, RefusesAFullDiskAtTheStart) {
  Tree tree;
  Mount disk(tree.root(), "size=64k");
  if (!disk.mounted) GTEST_SKIP() << "needs the right to mount a file system";
  tree.file("run.json", "older");
  EXPECT_THAT(refusal(tree.root() / "run.json"), HasSubstr("No space left"));
  EXPECT_EQ(files_in(tree.root()), std::vector<std::string>{"run.json"});
  EXPECT_EQ(contents(tree.root() / "run.json"), "older");
}

/// A file system of 3 MB.
void fill(const fs::path& folder) { std::ofstream(folder / "filler") << std::string(4 << 20, 'x'); }

TEST(ResultFile, ADiskThatFillsUpDuringTheRunCostsNoMeasurement) {
  Tree tree;
  Mount disk(tree.root(), "size=3m");
  if (!disk.mounted) GTEST_SKIP() << "needs the right to mount a file system";
  const fs::path path = tree.root() / "run.json";
  ResultFile(path).write(record_of("older"));
  {
    ResultFile file(path);
    fill(tree.root());
    file.write(record_of(std::string(900'000, 'y')));
  }
  EXPECT_EQ(read_record(path)["reason"], std::string(900'000, 'y'));
  EXPECT_EQ(files_in(tree.root()), (std::vector<std::string>{"filler", "run.json"}));
}

TEST(ResultFile, WhereEvenThatIsNotEnoughTheOlderFileStays) {
  Tree tree;
  Mount disk(tree.root(), "size=3m");
  if (!disk.mounted) GTEST_SKIP() << "needs the right to mount a file system";
  const fs::path path = tree.root() / "run.json";
  ResultFile(path).write(record_of("older"));
  const std::string older = contents(path);
  {
    ResultFile file(path);
    fill(tree.root());
    try {
      file.write(record_of(std::string(2'000'000, 'y')));
      FAIL() << "written to a full disk";
    } catch (const ResultError& error) {
      EXPECT_THAT(error.what(), HasSubstr("No space left"));
      EXPECT_THAT(error.what(), HasSubstr("free some space"));
    }
  }
  EXPECT_EQ(contents(path), older);
  EXPECT_EQ(files_in(tree.root()), (std::vector<std::string>{"filler", "run.json"}));
}

TEST(ResultFile, RefusesAReadOnlyFileSystem) {
  Tree tree;
  Mount disk(tree.root(), "size=2m,mode=755");
  if (!disk.mounted) GTEST_SKIP() << "needs the right to mount a file system";
  tree.file("run.json", "older");
  ASSERT_EQ(mount(nullptr, tree.root().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  EXPECT_THAT(refusal(tree.root() / "run.json"), HasSubstr("Read-only"));
  EXPECT_THAT(refusal(tree.root() / "new/run.json"), HasSubstr("read-only: choose another"));
  EXPECT_EQ(contents(tree.root() / "run.json"), "older");
}

TEST(ResultFile, ConcurrentWritersAllSurvive) {
  Tree tree;
  const fs::path path = tree.root() / "run.json";
  ResultFile first(path);
  ResultFile second(path);
  ResultFile third(path);
  EXPECT_EQ(second.path(), tree.root() / "run.2.json");
  EXPECT_EQ(third.path(), tree.root() / "run.3.json");
  second.write(record_of("second"));
  first.write(record_of("first"));
  third.write(record_of("third"));
  EXPECT_EQ(read_record(path)["reason"], "first");
  EXPECT_EQ(read_record(second.path())["reason"], "second");
  EXPECT_EQ(read_record(third.path())["reason"], "third");
}

TEST(ResultFile, ANumberedResultIsNeverReplaced) {
  Tree tree;
  const fs::path path = tree.root() / "run.json";
  tree.file("run.2.json", "of an earlier pair");
  ResultFile first(path);
  ResultFile second(path);
  EXPECT_EQ(second.path(), tree.root() / "run.3.json");
  EXPECT_EQ(contents(tree.root() / "run.2.json"), "of an earlier pair");
}

TEST(ResultFile, ManyProcessesAtOnce) {
  constexpr int kWriters = 8;
  Tree tree;
  const fs::path path = tree.root() / "run.json";
  int start[2], done[2];  // pipes: all hold their files before any lets go
  ASSERT_EQ(pipe(start), 0);
  ASSERT_EQ(pipe(done), 0);
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = fork();
    if (child == 0) {
      close(done[0]);
      close(start[1]);
      ResultFile file(path);
      file.write(record_of(std::to_string(writer)));
      char byte = 0;
      const bool told = ::write(done[1], &byte, 1) == 1 && read(start[0], &byte, 1) == 0;
      _exit(told ? 0 : 1);  // no destructors: as a killed writer would
    }
    children.push_back(child);
  }
  close(done[1]);
  close(start[0]);
  char byte = 0;
  int ready = 0;
  while (ready < kWriters && read(done[0], &byte, 1) == 1) ++ready;
  EXPECT_EQ(ready, kWriters);
  close(start[1]);
  close(done[0]);
  for (pid_t child : children) waitpid(child, nullptr, 0);
  std::set<std::string> reasons;
  for (const auto& entry : fs::directory_iterator(tree.root()))
    if (entry.path().extension() == ".json")
      reasons.insert(read_record(entry.path())["reason"].get<std::string>());
  EXPECT_EQ(reasons.size(), static_cast<std::size_t>(kWriters));
}

TEST(ResultFile, ALockThatAKilledWriterLeftDoesNotStand) {
  Tree tree;
  const fs::path path = tree.root() / "run.json";
  EXPECT_EQ(in_child([&] {
              ResultFile file(path);
              kill(getpid(), SIGKILL);
              return 0;
            }),
            128 + SIGKILL);
  EXPECT_NE(files_in(tree.root()), std::vector<std::string>{});  // the lock file lies there
  {
    ResultFile file(path);
    EXPECT_EQ(file.path(), path);
    file.write(record_of("x"));
  }
  EXPECT_EQ(files_in(tree.root()), std::vector<std::string>{"run.json"});
}

/// A reason of one repeated digit: a file made of two writes shows.
std::string digits(int i) { return std::string(60'000, static_cast<char>('0' + i % 10)); }

void expect_whole(const fs::path& path) {
  const std::string reason = read_record(path)["reason"];
  EXPECT_EQ(reason.size(), digits(0).size());
  EXPECT_EQ(reason.find_first_not_of(reason[0]), std::string::npos);
}

TEST(ResultFile, KilledAtAnyByteOfAWriteReadersSeeTheOlderFile) {
  Tree tree;
  const fs::path path = tree.root() / "run.json";
  ResultFile(path).write(record_of(digits(0)));
  const std::string older = contents(path);
  for (rlim_t byte = 0; byte < older.size(); byte += older.size() / 20) {
    // The kernel writes up to the limit and then kills the writer.
    const int status = in_child([&] {
      ResultFile file(path);
      const rlimit limit{byte, byte}, no_core{0, 0};
      if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || setrlimit(RLIMIT_CORE, &no_core) != 0) return 1;
      file.write(record_of(digits(1)));
      return 0;
    });
    ASSERT_EQ(status, 128 + SIGXFSZ);
    ASSERT_EQ(contents(path), older) << "killed at byte " << byte;
  }
  { ResultFile last(path); }  // tidies what the killed ones left
  EXPECT_EQ(files_in(tree.root()), std::vector<std::string>{"run.json"});
}

TEST(ResultFile, KilledAtAnyMomentReadersSeeAWholeFile) {
  Tree tree;
  const fs::path path = tree.root() / "run.json";
  ResultFile(path).write(record_of(digits(0)));
  std::mt19937 random(7);
  std::uniform_int_distribution<int> microseconds(0, 5000);
  for (int round = 0; round < 50; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 1;; ++i) ResultFile(path).write(record_of(digits(i)));
    }
    usleep(static_cast<useconds_t>(microseconds(random)));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    expect_whole(path);
  }
  { ResultFile last(path); }
  EXPECT_EQ(files_in(tree.root()), std::vector<std::string>{"run.json"});
}

}  // namespace
}  // namespace scalemark::result_file_test

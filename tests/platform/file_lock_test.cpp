// One holder at a time, with flock and without it, whoever was killed.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "platform/posix_file.hpp"
#include "support/in_child.hpp"
#include "support/test_folder.hpp"

namespace scalemark::file_lock_test {
namespace {

/// From now on the kernel refuses flock to this process, as on a file system that has none.
void take_flock_away() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the system call
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(77);
}

enum { kTaken = 10, kHeld, kFailed };

int take(const std::string& file) {
  try {
    return FileLock::try_take(file) ? kTaken : kHeld;
  } catch (const std::system_error&) {
    return kFailed;
  }
}

TEST(FileLock, HasOneHolderAndGoesWithIt) {
  const TestFolder folder;
  const std::string file = folder / ".lock";
  {
    const auto lock = FileLock::try_take(file);
    ASSERT_TRUE(lock);
    EXPECT_EQ(in_child([&] { return take(file); }), kHeld);
  }
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(take(file), kTaken);
  EXPECT_EQ(take(folder / "no/such/.lock"), kFailed);
  EXPECT_EQ(take("/proc/.lock"), kFailed);  // ENOENT although the folder is there
}

TEST(FileLock, OfAKilledHolderDoesNotStand) {
  const TestFolder folder;
  const std::string file = folder / ".lock";
  EXPECT_EQ(in_child([&] {
              const auto lock = FileLock::try_take(file);
              raise(SIGKILL);
              return 0;
            }),
            128 + SIGKILL);
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(take(file), kTaken);
}

TEST(FileLock, WithoutFlockTheOneWhoMadeTheFileHasIt) {
  const TestFolder folder;
  const std::string file = folder / ".lock";
  const int end = in_child([&] {
    take_flock_away();
    const auto lock = FileLock::try_take(file);
    return lock && take(file) == kHeld ? kTaken : kFailed;
  });
  if (end == 77) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(end, kTaken);
  EXPECT_FALSE(std::filesystem::exists(file));
  const auto left = [&] {
    take_flock_away();
    const auto lock = FileLock::try_take(file);
    raise(SIGKILL);
    return 0;
  };
  EXPECT_EQ(in_child(left), 128 + SIGKILL);
  // Nobody can tell that its holder is gone: refused, not shared.
  EXPECT_EQ(in_child([&] {
              take_flock_away();
              return take(file);
            }),
            kHeld);
}

}  // namespace
}  // namespace scalemark::file_lock_test

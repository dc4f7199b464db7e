// Preloaded into a program, stands for a system that does not do what is asked of it:
//   SMK_TEST_SLOW_FSYNC=NAME:SKIP:SECONDS: fsync of a file whose path has NAME takes so long, but
//   for the first SKIP of them.
//   SMK_TEST_THREADS=N: the process gets no more than N threads.
//   SMK_TEST_SLOW_OPENMP=MICROSECONDS: each time that OpenMP is asked for its threads takes so
//   long.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace {

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void stall(int file) {
  static std::atomic<int> met = 0;
  const char* asked = std::getenv("SMK_TEST_SLOW_FSYNC");
  if (!asked) return;
  const std::string words = asked, name = words.substr(0, words.find(':'));
  int skip = 0, seconds = 0;
  if (std::sscanf(words.c_str() + name.size(), ":%d:%d", &skip, &seconds) != 2) return;
  char path[PATH_MAX] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  if (readlink(link.c_str(), path, sizeof path - 1) < 0 || !std::strstr(path, name.c_str())) return;
  if (met++ < skip) return;
  timespec left{seconds, 0};
  while (nanosleep(&left, &left) != 0) {
  }
}

}  // namespace

extern "C" int fsync(int file) {
  stall(file);
  return next<int(int)>("fsync")(file);
}

extern "C" int omp_get_max_threads() {
  const char* slow = std::getenv("SMK_TEST_SLOW_OPENMP");
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::microseconds(slow ? std::atol(slow) : 0);
  while (std::chrono::steady_clock::now() < end) {
  }
  return next<int()>("omp_get_max_threads")();
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) noexcept {
  static std::atomic<int> made = 0;
  const char* most = std::getenv("SMK_TEST_THREADS");
  if (most && made++ >= std::atoi(most)) return EAGAIN;
  return next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create")(
      thread, attributes, start, argument);
}

// One rank of the fault tests: trains nothing, but passes the phases of a run and fails as it is
// told.
//   fault_rank KIND TIMEOUT_SECONDS [TAG...]   KIND of rank 1: none, stop, kill, exit_before_init,
//   compute, throw, stop_gather, stop_scatter: stop where ranks gather or scatter in place of
//   summing
// With SCALEMARK_TEST_ABORT=hang, MPI_Abort never returns.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "comm/abort.hpp"
#include "comm/communicator.hpp"
#include "comm/mpi.hpp"

// MPI's profiling interface lets a program stand in for a call of the library.
extern "C" int MPI_Abort(MPI_Comm communicator, int code) {
  const char* how = std::getenv("SCALEMARK_TEST_ABORT");
  while (how && std::string(how) == "hang") pause();
  return PMPI_Abort(communicator, code);
}

namespace {

void fail(const std::string& kind, long step) {
  if (step != 12) return;
  if (kind.starts_with("stop")) raise(SIGSTOP);
  if (kind == "kill") raise(SIGKILL);
  if (kind == "compute") std::this_thread::sleep_for(std::chrono::hours(1));
  if (kind == "throw") scalemark::abort_job(4, "the loss is not finite");
}

int run(const std::string& kind, double timeout_seconds) {
  const char* launched_rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (kind == "exit_before_init" && launched_rank && std::string(launched_rank) == "1") return 0;
  scalemark::Watchdog watchdog(timeout_seconds);
  const scalemark::AbortHandler words(
      [](int, const std::string&) { std::fputs("last words\n", stderr); });
  auto world = scalemark::RankGroup::world(watchdog);
  const auto communicator =
      scalemark::make_communicator(scalemark::CommunicatorKind::mpi, world, -1);
  std::vector<float> gradients(100'000, 1.0f);
  const auto size = static_cast<std::size_t>(world.size());
  std::vector<float> all(kind.starts_with("stop_") ? size * gradients.size() : 0);
  for (long step = 0; step < 20; ++step) {
    watchdog.enter("forward", step);
    if (world.rank() == 1) fail(kind, step);
    const scalemark::Buffer own{gradients.data(), gradients.size(), scalemark::DataType::f32};
    const scalemark::Buffer blocks{all.data(), all.size(), own.type};
    if (all.empty())
      communicator->allreduce(own);
    else if (kind == "stop_scatter")
      asynchronous(*communicator).start_reduce_scatter(blocks, own, nullptr)->wait();
    else
      asynchronous(*communicator)
          .start_allgather(own, blocks, std::vector(size, own.count), nullptr)
          ->wait();
  }
  scalemark::RankGroup::finalize(world);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: fault_rank KIND TIMEOUT_SECONDS [TAG...]\n", stderr);
    return 2;
  }
  try {
    return run(argv[1], std::atof(argv[2]));
  } catch (const std::exception& error) {
    scalemark::abort_job(4, error.what());
  }
}

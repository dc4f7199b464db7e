// fault_rank (../fault_rank.cpp) with buffers on a GPU: one rank of the fault tests, which meets
// errors as the engine does (session/engine.cpp).
//   gpu_fault_rank COMMUNICATOR KIND TIMEOUT_SECONDS [TAG...]   COMMUNICATOR: nccl or mpi (staged);
//   KIND of rank 1 at step 12: none, stop, kill, skip (it takes no part in a sum), throw, memory
//   (it asks for more than the GPU has); or agreed (all ranks leave together)
#include <fmt/format.h>
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
#include "streams.hpp"
#include "tests/comm/cuda/gpu_support.hpp"

namespace {

using namespace scalemark;

constexpr long kSteps = 20, kFault = 12;

void fail(const std::string& kind) {
  if (kind == "stop") raise(SIGSTOP);
  if (kind == "kill") raise(SIGKILL);
  if (kind == "skip") std::this_thread::sleep_for(std::chrono::hours(1));
  if (kind == "throw") throw RunError("the loss is not finite");
  if (kind == "memory") testing::OnGpu<char>(std::size_t{1} << 50);
}

/// The host runs ahead of the GPU, as it does in training, and looks at the values at the end.
void train(RankGroup& world, Communicator& communicator, const std::string& kind) {
  const testing::GpuStream stream;
  const testing::OnGpu<double> gradients(100'000);
  std::vector<double> values(gradients.count(), 1);
  gradients.put(values, stream);
  stream.synchronize();
  std::vector<std::unique_ptr<Pending>> sums;
  double expected = 1;
  for (long step = 0; step < kSteps; ++step) {
    world.watchdog().enter("forward", step);
    if (step == kFault && world.rank() == 1) fail(kind);
    if (step == kFault && kind == "agreed")
      world.agree_on([&] {
        if (world.rank() == 1) throw RunError("the loss is not finite");
      });
    asynchronous(communicator).begin_step(static_cast<cudaStream_t>(stream));
    sums.push_back(communicator.start_allreduce(
        {gradients.data(), gradients.count(), DataType::f64}, static_cast<cudaStream_t>(stream)));
    sums.back()->wait();
    expected *= world.size();
  }
  gradients.get(values, stream);
  stream.synchronize();
  for (const double value : values)
    if (value != expected) throw CommError(fmt::format("{} instead of {}", value, expected));
}

int run(const std::string& communicator, const std::string& kind, double timeout_seconds) {
  Watchdog watchdog(timeout_seconds);
  const AbortHandler words([](int, const std::string&) { std::fputs("last words\n", stderr); });
  auto world = RankGroup::world(watchdog);
  ExitCode code = ExitCode::ok;
  try {
    std::unique_ptr<Communicator> made;
    world.agree_on([&] {
      made =
          make_communicator(communicator == "nccl" ? CommunicatorKind::nccl : CommunicatorKind::mpi,
                            world, testing::gpu_of(world));
    });
    train(world, *made, kind);
  } catch (const AgreedError& error) {
    if (world.rank() == 0) say_error(error.what());
    code = error.code();
  } catch (const std::exception& error) {
    if (world.size() > 1)
      abort_job(static_cast<int>(exit_code_of(error)),
                fmt::format("rank {}: {}", world.rank(), error.what()));
    say_error(error.what());
    code = exit_code_of(error);
  }
  watchdog.enter("finalize");
  RankGroup::finalize(world);
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: gpu_fault_rank COMMUNICATOR KIND TIMEOUT_SECONDS [TAG...]\n", stderr);
    return 2;
  }
  try {
    return run(argv[1], argv[2], std::atof(argv[3]));
  } catch (const std::exception& error) {
    abort_job(static_cast<int>(exit_code_of(error)), error.what());
  }
}

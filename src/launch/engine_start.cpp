// See engine_start.hpp.
#include "launch/engine_start.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "error.hpp"
#include "platform/announced_rank.hpp"
#include "platform/binding.hpp"
#include "platform/platform.hpp"
#include "platform/stop_signals.hpp"

namespace scalemark {

std::vector<std::pair<std::string, std::string>> engine_variables(
    const ResolvedConfig& config, int usable_cpus,
    const std::map<std::string, std::string>& environment) {
  std::vector<std::pair<std::string, std::string>> variables;
  const std::string threads = std::to_string(config.num_intra_threads.value_or(usable_cpus));
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"})
    if (config.num_intra_threads || !environment.contains(name))
      variables.emplace_back(name, threads);
  const auto unless_set = [&](const char* name, const char* value) {
    if (!environment.contains(name)) variables.emplace_back(name, value);
  };
  // So that the driver's numbers, by which ranks find the CPUs near their GPU, are CUDA's.
  unless_set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  // A training step frees and takes the same large blocks again and again: giving them back to the
  // kernel costs page faults in every step.
  unless_set("TCMALLOC_RELEASE_RATE", "0");
  unless_set("TCMALLOC_AGGRESSIVE_DECOMMIT", "0");
  // Large blocks are normal here: no report of each on stderr.
  unless_set("TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD", "0");
  return variables;
}

std::filesystem::path own_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    throw EnvironmentError(
        fmt::format("cannot find this program: /proc/self/exe: {}", error.message()));
  return path;
}

void become_engine(const ResolvedConfig& config, char** argv) {
  if (config.device != Device::cpu && config.gpu_binding == GpuBinding::near)
    if (const auto cpus = move_near_gpu(announced_local_rank()); !cpus.empty())
      setenv("SMK_INTERNAL_BINDING", ("near GPU: " + format_cpu_list(cpus)).c_str(), 1);
  const auto variables =
      engine_variables(config, achieved_affinity().usable, process_environment());
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  // One that comes before the engine can take it waits (train/signals.hpp).
  const sigset_t held = stop_signal_set();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &held, &before);
  const auto engine = own_path().parent_path().parent_path() / "libexec" / "scalemark-engine";
  execv(engine.c_str(), argv);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  throw EnvironmentError(fmt::format("cannot start the engine {}: {}; build it with scripts/setup",
                                     engine.string(), std::strerror(error)));
}

}  // namespace scalemark

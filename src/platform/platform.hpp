// Describes what a rank runs on. LibTorch-, MPI- and CUDA-free. Whatever cannot be determined is
// empty with a reason.
#pragma once

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace scalemark {

/// The logical CPUs on which the kernel lets this process run (sched_getaffinity; `usable` is also
/// limited by a cgroup's CPU quota), and the NUMA nodes to which they belong.
struct Affinity {
  std::vector<int> cpus;          ///< ascending logical CPU numbers
  std::vector<int> numa;          ///< NUMA nodes of those CPUs; empty where unknown
  std::vector<int> partial_numa;  ///< nodes that have other CPUs, too
  int cores = 0;                  ///< physical cores with one of those CPUs; 0 where unknown
  int usable = 1;                 ///< threads worth starting: min(cpus, ceil(cgroup quota))
};
Affinity achieved_affinity();

/// Returns the CPUs on which any thread of this process may run, where they are others than
/// `known`: OpenMP binds each of its threads, the first one too, where OMP_PROC_BIND or
/// GOMP_CPU_AFFINITY says so. `tasks`: the folder in /proc.
Affinity affinity_of_threads(Affinity known,
                             const std::filesystem::path& tasks = "/proc/self/task");

/// Formats CPUs in the list format of the kernel, "0-3,8".
std::string format_cpu_list(const std::vector<int>& cpus);

/// Returns the logical CPUs of every physical core within this process's mask. Neighbouring cores
/// are adjacent in the list.
std::vector<std::vector<int>> allowed_cores();
/// Returns the number of cores of this machine that a launch may use: those of allowed_cores(),
/// limited by a CPU quota.
int physical_cores();

/// Binds this process to these logical CPUs, of which there must be at least one. Throws
/// EnvironmentError.
void pin_to(const std::vector<int>& cpus);

/// Reads how many tasks a launcher (Open MPI, MPICH/Hydra, PMIx, PMI, Slurm) announces through the
/// variables of a task. The hint is nullopt outside a launcher. `get` looks a variable up and
/// returns nullptr when it is unset, so tests can pass a map.
struct LauncherHint {
  std::string name;        ///< "mpirun", "srun", "hydra"
  std::int64_t tasks = 1;  ///< world size that the launcher announces
};
std::optional<LauncherHint> launcher_hint(const std::map<std::string, std::string>& environment);
/// Returns whether this is a task of srun that MPI cannot connect to others, since srun offers it
/// neither PMIx nor PMI (`--mpi=none`).
bool is_srun_without_pmi(const std::map<std::string, std::string>& environment);
/// Returns the variables by which a shell of `srun --pty`, or a task that srun started alone,
/// passes for a rank of a launch; empty in every other process. Without them it may start ranks
/// itself.
std::vector<std::string> variables_of_lone_task(
    const std::map<std::string, std::string>& environment);
/// Returns the environment of the process as a map.
std::map<std::string, std::string> process_environment();

/// Returns the variables on the allow-list, sorted by name. No other variable is ever written into
/// a record.
std::map<std::string, std::string> recorded_environment(
    const std::map<std::string, std::string>& environment);
/// Returns those that a later job of the same user can have too. The others are Slurm's: it numbers
/// jobs and steps, and hands out GPUs.
std::map<std::string, std::string> without_variables_of_job(
    std::map<std::string, std::string> recorded);

/// The `system` object of a record: host name, kernel, distribution, virtualisation (virtual, bare
/// metal or container), CPU model, sockets, cores, threads, NUMA nodes, memory bytes, BIOS,
/// governor, SMT, GPU driver, NICs with speed, driver and firmware. Unknown values are null, with a
/// reason in `unavailable`.
struct SystemInfo {
  nlohmann::ordered_json json;
  std::map<std::string, std::string> unavailable;  ///< "system.bios" -> "not readable: ..."
};
SystemInfo system_info();
/// Sets a key that only the engine knows ("cuda", "cudnn", "nccl", "mpi": versions that ran;
/// "openmp"). An empty value changes nothing.
void set_system(SystemInfo& info, const std::string& key, const std::string& value);
std::string host_name();

/// Returns true where the CPU has native instructions for the precision ("fp32", "bf16":
/// AVX512_BF16 or AMX or ARM bf16).
bool cpu_has_native(const std::string& precision);

/// Counters of disturbance at one moment, for this process and host.
struct NoiseSnapshot {
  std::optional<double> steal_seconds;       ///< /proc/stat, all CPUs
  std::optional<double> total_cpu_seconds;   ///< /proc/stat, all CPUs, all states
  std::optional<double> busy_cpu_seconds;    ///< /proc/stat, all CPUs, of all processes
  std::optional<double> family_cpu_seconds;  ///< see processes.hpp
  double own_cpu_seconds = 0;                ///< getrusage
  double taken_at = 0;                       ///< steady_seconds()
  std::optional<double> throttled_seconds;   ///< cgroup cpu.stat (v1 and v2)
  std::optional<double> load1;               ///< /proc/loadavg
  std::int64_t voluntary_switches = 0;       ///< getrusage
  std::int64_t involuntary_switches = 0;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>>
      nic_bytes;                                    ///< name -> (rx, tx), loopback excluded
  std::map<std::string, std::uint64_t> port_bytes;  ///< sent by InfiniBand and RoCE ports
  std::map<std::string, std::uint64_t> nic_errors;  ///< name -> rx+tx errors and drops; ports too
};
/// Reads the counters. Interfaces and ports are read below `root`. `family` is the process whose
/// descendants, including this one, are measured together.
NoiseSnapshot noise_snapshot(std::optional<int> family = {},
                             const std::filesystem::path& root = "/");

/// Differences of two snapshots, which can be summed over ranks of different hosts. `steal` is a
/// fraction of all CPU time.
struct NoiseEvidence {
  std::optional<double> steal;
  std::optional<double> busy_cpu_seconds;    ///< all processes of the host
  std::optional<double> family_cpu_seconds;  ///< processes that are measured together
  double own_cpu_seconds = 0;                ///< this process
  double seconds = 0;
  std::optional<double> throttled_seconds;
  std::optional<double> load1;
  std::int64_t context_switches = 0;  ///< involuntary, of this process
  std::optional<std::uint64_t>
      nic_bytes;  ///< transmitted by all interfaces and ports of this host, loopback excluded
  std::map<std::string, std::uint64_t> link_bytes;  ///< bytes by interface and port
  std::map<std::string, std::uint64_t> error_counters;
};
NoiseEvidence noise_between(const NoiseSnapshot& before, const NoiseSnapshot& after);

/// Returns the peak resident set of this process in bytes (VmHWM; getrusage where /proc has none).
/// `reset` starts a new peak (clear_refs).
std::int64_t peak_rss_bytes();
void reset_peak_rss();

/// A slice of a GPU in MIG mode, which is a device of its own for CUDA.
struct MigSlice {
  std::string uuid, name;
  std::int64_t memory_bytes = 0;
};

/// Returns whether a UUID is that of a slice.
inline bool is_slice(std::string_view uuid) { return uuid.starts_with("MIG-"); }

/// Visible NVIDIA GPUs, read through NVML. The list is empty with a reason where there is no
/// driver.
struct GpuInfo {
  int index = 0;
  std::string name, uuid, pci_bus_id;
  std::int64_t memory_bytes = 0;
  std::vector<int> near_cpus;  ///< hwloc locality of the PCI bus id; empty where unknown
  bool mig = false;            ///< MIG mode is on: CUDA sees the slices, not the GPU
  std::vector<MigSlice> slices;
  std::string reason;  ///< why the driver tells nothing of it (lost, forbidden); empty: it does
};
struct GpuList {
  std::vector<GpuInfo> gpus;  ///< in CUDA_VISIBLE_DEVICES order, without those that have a reason
  std::vector<GpuInfo>
      of_machine;  ///< all GPUs in the driver's order, which is that of the PCI bus
  std::string driver_version;
  std::string reason;  ///< why the list is empty
};
GpuList visible_gpus();

/// Returns the GPU with this UUID or with this slice, or null where `gpus` has none.
const GpuInfo* gpu_of(const std::vector<GpuInfo>& gpus, std::string_view uuid);

/// Returns the driver's name, "GPU-..." or "MIG-...", of the device whose 16 UUID bytes CUDA
/// reports (cudaDeviceProp::uuid). In MIG mode these are the bytes of a slice or, with an older
/// CUDA, of its GPU: then the only visible slice is meant, and with several the device cannot be
/// determined.
std::string uuid_of_cuda(std::span<const char, 16> bytes, const GpuList& list);

// Reads this task's rank from the variables of its launcher, for messages and decisions before MPI
// is initialised.

/// Returns the text of the first rank variable that is set (Open MPI, PMIx, PMI, Slurm), or null
/// outside a launcher.
inline const char* announced_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return rank;
  return nullptr;
}

/// Returns the rank that the launcher announces, or 0 outside a launcher.
inline int rank_before_mpi() {
  const char* rank = announced_rank();
  return rank ? std::atoi(rank) : 0;
}

/// Returns whether the launcher says that there are no other ranks, or there is no launcher.
inline bool is_announced_alone() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* size = std::getenv(name)) return std::atoi(size) == 1;
  return !announced_rank();
}

/// Returns the rank among the tasks of this host, or 0 outside a launcher.
inline int announced_local_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (const char* rank = std::getenv(name)) return std::atoi(rank);
  return 0;
}

/// scripts/gpu_check sets this variable to let ranks share a GPU, which is an error otherwise.
inline constexpr const char* kSharedGpuVariable = "SMK_INTERNAL_SHARED_GPU";

// Lists the prefixes of the variables by which users tune communication and threading libraries.
// Records, comparisons and the launch on other hosts all use this list.

inline constexpr auto kCommunicationVariables = std::to_array<std::string_view>(
    {"NCCL_", "GLOO_", "OMPI_MCA_", "UCX_", "HCOLL_", "SHARP_", "FI_", "PSM2_"});
inline constexpr auto kThreadVariables =
    std::to_array<std::string_view>({"OMP_", "KMP_", "GOMP_", "MKL_"});
/// What scalemark sets of them for a step that frees and takes the same large blocks again and
/// again, where the user has not: giving them back to the kernel costs page faults in every step.
/// LibTorch asks for huge pages for blocks of 2 MiB and more, since weights and gradients are read
/// once a step. Large blocks are normal here, so none of them is reported on stderr.
inline constexpr auto kAllocatorDefaults =
    std::to_array<std::pair<std::string_view, std::string_view>>(
        {{"TCMALLOC_RELEASE_RATE", "0"},
         {"TCMALLOC_AGGRESSIVE_DECOMMIT", "0"},
         {"THP_MEM_ALLOC_ENABLE", "1"},
         {"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD", "0"}});
/// Variables that change what computes, how, or where its memory comes from.
inline constexpr auto kArithmeticVariables = std::to_array<std::string_view>(
    {"ONEDNN_", "DNNL_", "ATEN_", "TORCH_", "PYTORCH_", "LD_PRELOAD", "MALLOC_", "TCMALLOC_",
     "THP_", "GLIBC_TUNABLES", "HWLOC_"});

inline bool begins_with_one_of(std::string_view name, const auto& prefixes) {
  return std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

inline bool is_communication_variable(std::string_view name) {
  return begins_with_one_of(name, kCommunicationVariables);
}

inline bool is_library_variable(std::string_view name) {
  return is_communication_variable(name) || begins_with_one_of(name, kThreadVariables) ||
         begins_with_one_of(name, kArithmeticVariables);
}

// Lists the signals that ask a scalemark program to stop, for ranks and supervisors alike.

/// SIGHUP is sent when the terminal is gone. SIGUSR1 is what launchers and Slurm pass on to ranks.
inline constexpr std::array kStopSignals{SIGTERM, SIGINT, SIGHUP, SIGUSR1};

/// Tells the engine the numbers of those that it ignores, "1 2": UCX takes SIGHUP as soon as it is
/// loaded, and makes it stop the other threads by SIGUSR1.
inline constexpr const char* kIgnoredSignalsVariable = "SMK_INTERNAL_IGNORED_SIGNALS";

/// Returns whether the parent process made this one ignore the signal, as nohup does, and as a
/// shell does for background jobs.
inline bool is_ignored(int signal) {
  if (const char* told = std::getenv(kIgnoredSignalsVariable))
    return (" " + std::string(told) + " ").find(" " + std::to_string(signal) + " ") !=
           std::string::npos;
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

inline sigset_t stop_signal_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kStopSignals) sigaddset(&set, signal);
  return set;
}

}  // namespace scalemark

// What a rank runs on. LibTorch-, MPI- and CUDA-free; whatever cannot be found out is empty with a
// reason.
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

/// Logical CPUs that the kernel lets this process run on (sched_getaffinity, cut down by a cgroup
/// CPU quota for `usable`), and the NUMA nodes they belong to.
struct Affinity {
  std::vector<int> cpus;          ///< ascending logical CPU numbers
  std::vector<int> numa;          ///< NUMA nodes of those CPUs; empty where unknown
  std::vector<int> partial_numa;  ///< those of them that have other CPUs, too
  int cores = 0;                  ///< physical cores with one of those CPUs; 0 where unknown
  int usable = 1;                 ///< threads worth starting: min(cpus, ceil(cgroup quota))
};
Affinity achieved_affinity();

/// "0-3,8": the kernel's list format.
std::string format_cpu_list(const std::vector<int>& cpus);

/// Logical CPUs of every physical core within this process's mask; neighbours side by side.
std::vector<std::vector<int>> allowed_cores();
/// Their number, cut down by a CPU quota: cores of this machine that a launch may use.
int physical_cores();

/// Binds this process to these logical CPUs, at least one. Throws EnvironmentError.
void pin_to(const std::vector<int>& cpus);

/// Variables that a launcher (Open MPI, MPICH/Hydra, PMIx, PMI, Slurm) sets for a task: how many
/// tasks it says there are; nullopt outside a launcher. `get` looks a variable up (nullptr when
/// unset), so tests can pass a map.
struct LauncherHint {
  std::string name;        ///< "mpirun", "srun", "hydra"
  std::int64_t tasks = 1;  ///< world size that the launcher announces
};
std::optional<LauncherHint> launcher_hint(const std::map<std::string, std::string>& environment);
/// A task of srun that MPI cannot join to others: srun offers it neither PMIx nor PMI
/// (`--mpi=none`).
bool is_srun_without_pmi(const std::map<std::string, std::string>& environment);
/// The process's environment as a map.
std::map<std::string, std::string> process_environment();

/// The allow-list of design.md section 3, sorted by name; nothing else ever leaves the process.
std::map<std::string, std::string> recorded_environment(
    const std::map<std::string, std::string>& environment);

/// The `system` object of a record: host name, kernel, distribution, virtualisation (virtual, bare
/// metal or container), CPU model, sockets, cores, threads, NUMA nodes, memory bytes, BIOS,
/// governor, SMT, GPU driver, NICs with speed, driver and firmware. Unknown values are null, with a
/// reason in `unavailable`.
struct SystemInfo {
  nlohmann::ordered_json json;
  std::map<std::string, std::string> unavailable;  ///< "system.bios" -> "not readable: ..."
};
SystemInfo system_info();
/// Fills a key that only the engine knows ("cuda", "cudnn", "nccl", "mpi": versions that ran;
/// "openmp"). An empty value changes nothing.
void set_system(SystemInfo& info, const std::string& key, const std::string& value);
std::string host_name();

/// True where the CPU has native instructions for the precision ("fp32", "bf16": AVX512_BF16 or AMX
/// or ARM bf16).
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
/// `root`: of interfaces and ports. `family`: the process whose descendants, this one among them,
/// are measured beside one another.
NoiseSnapshot noise_snapshot(std::optional<int> family = {},
                             const std::filesystem::path& root = "/");

/// Differences of two snapshots, summable over ranks of different hosts. steal: fraction of all CPU
/// time.
struct NoiseEvidence {
  std::optional<double> steal;
  std::optional<double> busy_cpu_seconds;    ///< of all processes of the host
  std::optional<double> family_cpu_seconds;  ///< of those that are measured beside one another
  double own_cpu_seconds = 0;                ///< of this process
  double seconds = 0;
  std::optional<double> throttled_seconds;
  std::optional<double> load1;
  std::int64_t context_switches = 0;  ///< involuntary, of this process
  std::optional<std::uint64_t>
      nic_bytes;  ///< transmitted by all interfaces and ports of this host, loopback excluded
  std::map<std::string, std::uint64_t> link_bytes;  ///< the same by interface and port
  std::map<std::string, std::uint64_t> error_counters;
};
NoiseEvidence noise_between(const NoiseSnapshot& before, const NoiseSnapshot& after);

/// Peak resident set of this process in bytes (VmHWM; getrusage where /proc has none). `reset`
/// starts anew (clear_refs).
std::int64_t peak_rss_bytes();
void reset_peak_rss();

/// A slice of a GPU in MIG mode: for CUDA a device of its own.
struct MigSlice {
  std::string uuid, name;
  std::int64_t memory_bytes = 0;
};

/// Whether a UUID is that of a slice.
inline bool is_slice(std::string_view uuid) { return uuid.starts_with("MIG-"); }

/// Visible NVIDIA GPUs, by NVML loaded at run time; empty with a reason where there is no driver.
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
  std::vector<GpuInfo> gpus;        ///< in CUDA_VISIBLE_DEVICES order, without those with a reason
  std::vector<GpuInfo> of_machine;  ///< in the driver's order, which is that of the PCI bus
  std::string driver_version;
  std::string reason;  ///< why the list is empty
};
GpuList visible_gpus();

/// The GPU of this UUID, or of this slice; null where `gpus` has none.
const GpuInfo* gpu_of(const std::vector<GpuInfo>& gpus, std::string_view uuid);

/// The driver's name, "GPU-..." or "MIG-...", of the device whose 16 bytes CUDA gives
/// (cudaDeviceProp::uuid). In MIG mode they are a slice's, or, of an older CUDA, its GPU's: then
/// the one visible slice is meant, and of several none can be told.
std::string uuid_of_cuda(std::span<const char, 16> bytes, const GpuList& list);

// This task's rank as its launcher announces it, for what must be said before MPI is up.

/// The text of the first rank variable that is set (Open MPI, PMIx, PMI, Slurm); null outside a
/// launcher.
inline const char* announced_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return rank;
  return nullptr;
}

/// The same as a number; 0 outside a launcher.
inline int rank_before_mpi() {
  const char* rank = announced_rank();
  return rank ? std::atoi(rank) : 0;
}

/// Whether a launcher says that there are no other ranks, or that there is no launcher.
inline bool is_announced_alone() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* size = std::getenv(name)) return std::atoi(size) == 1;
  return !announced_rank();
}

/// Its rank among the tasks of its host; 0 outside a launcher.
inline int announced_local_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (const char* rank = std::getenv(name)) return std::atoi(rank);
  return 0;
}

/// Set by scripts/gpu_check: ranks may share a GPU, which is an error otherwise.
inline constexpr const char* kSharedGpuVariable = "SMK_INTERNAL_SHARED_GPU";

// Variables by which users tune the libraries of communication and of threads, by the first letters
// of their names: the one list for what records show, what is compared, and what reaches ranks on
// other hosts.

inline constexpr auto kCommunicationVariables = std::to_array<std::string_view>(
    {"NCCL_", "GLOO_", "OMPI_MCA_", "UCX_", "HCOLL_", "SHARP_", "FI_", "PSM2_"});
inline constexpr auto kThreadVariables =
    std::to_array<std::string_view>({"OMP_", "KMP_", "GOMP_", "MKL_"});

inline bool begins_with_one_of(std::string_view name, const auto& prefixes) {
  return std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

inline bool is_communication_variable(std::string_view name) {
  return begins_with_one_of(name, kCommunicationVariables);
}

inline bool is_library_variable(std::string_view name) {
  return is_communication_variable(name) || begins_with_one_of(name, kThreadVariables);
}

// The signals that ask a program of ours to stop, one list for ranks and supervisors.

/// SIGHUP: the terminal is gone. SIGUSR1: what launchers and Slurm pass on to ranks.
inline constexpr std::array kStopSignals{SIGTERM, SIGINT, SIGHUP, SIGUSR1};

/// Our parent had us ignore it, as nohup does, and a shell for what it starts in the background.
inline bool is_ignored(int signal) {
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

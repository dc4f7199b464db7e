// Measures the ranks of a preflight: matrix products, memory, noise, scratch files, GPUs,
// collectives and the links between every two hosts.
#include "session/preflight_measure.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "analysis/settings.hpp"
#include "comm/communication_probe.hpp"
#include "error.hpp"
#include "platform/gpu_health.hpp"
#include "platform/memory_limit.hpp"
#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "probe/gemm.hpp"
#include "probe/gpu_transfers.hpp"
#include "probe/memory_bandwidth.hpp"
#include "record/preflight.hpp"
#include "record/wire.hpp"
#include "result/preflight_record.hpp"
#include "session/measured_run.hpp"
#include "session/session.hpp"
#include "train/step_loop.hpp"

namespace scalemark {
namespace {

/// Returns the largest number of ranks on any host.
int most_local_ranks(RankGroup& world) {
  int most = 0;
  for (const auto& size : world.all_gather(std::to_string(world.local_size())))
    most = std::max(most, std::stoi(size));
  return most;
}

std::optional<int> numa_node_of(const Session& session) {
  const GpuList list = visible_gpus();
  const GpuInfo* gpu = gpu_of(list.gpus, session.device->uuid());
  return gpu != nullptr ? numa_node_of_pci(gpu->pci_bus_id) : std::nullopt;
}

/// Watches this rank's GPU from its construction on. All ranks make it together.
class GpuChecks {
 public:
  explicit GpuChecks(Session& session);

  /// Begins the load of matrix products, during which the clocks count.
  void begin_load();
  void end_load();
  /// Measures copies to and from the GPUs, one of a host at a time because they may share links,
  /// then copies from GPU to GPU by the first rank of each host. All ranks call it. Returns nothing
  /// on a rank without a GPU. Throws AgreedError.
  std::optional<record::GpuHealth> measure();
  /// Returns what measure() has measured of the links between GPUs, or nothing where this rank
  /// measured none.
  const std::optional<std::vector<PeerLink>>& peers() const { return peers_; }

 private:
  Session& session_;
  std::optional<GpuWatch> watch_;
  std::optional<std::vector<PeerLink>> peers_;
};

GpuChecks::GpuChecks(Session& session) : session_(session) {
  if (session.device->device().is_cuda()) watch_.emplace(session.device->uuid());
}

void GpuChecks::begin_load() {
  if (watch_) watch_->begin_load();
}

void GpuChecks::end_load() {
  if (watch_) watch_->end_load();
}

std::optional<record::GpuHealth> GpuChecks::measure() {
  RankGroup& world = session_.world;
  if (world.all_sum({watch_ ? 1. : 0.}).front() == 0) return std::nullopt;
  const double seconds = session_.config().seconds / 20;
  GpuFindings findings;
  const int ranks_here = most_local_ranks(world);
  for (int local_rank = 0; local_rank < ranks_here; ++local_rank) {
    world.watchdog().enter("GPU copies");
    leave_if_stopped(session_);
    world.agree_on([&] {
      if (watch_ && world.local_rank() == local_rank)
        findings.copies = measure_gpu_copies(session_.device->device().index(), seconds);
    });
  }
  world.watchdog().enter("GPU peers");
  leave_if_stopped(session_);
  world.agree_on([&] {
    if (watch_ && world.local_rank() == 0) peers_ = measure_peer_links(seconds);
  });
  if (!watch_) return std::nullopt;
  findings.health = watch_->health();
  findings.traits = gpu_traits(session_.device->device().index());
  findings.peermem = has_peermem();
  findings.numa = numa_node_of(session_);
  return gpu_health(findings);
}

constexpr double kQuantum = 1e-3;                 // seconds
constexpr std::int64_t kTriadElements = 8 << 20;  // 64 MiB for each array
const std::vector<std::int64_t> kSizes{8, 1024, 65536, 1 << 20, 16 << 20, 64 << 20};
const std::vector<std::int64_t> kGpuSizes{8, 1024, 65536, 1 << 20, 16 << 20, 256 << 20, 1LL << 30};

/// Determines how much work a quantum is, at rank 0 for all. A slow rank that chose its own quantum
/// would seem as fast as the others.
class Quanta {
 public:
  explicit Quanta(Session& session) : session_(session) {
    session.world.watchdog().enter("noise quantum");
    const std::int64_t own = session.is_root() ? calibrate_quantum(kQuantum) : 0;
    steps_ = std::stoll(session.world.broadcast(std::to_string(own)));
  }

  void measure_block(double seconds) {
    session_.world.watchdog().enter("noise quantum");
    leave_if_stopped(session_);
    blocks_.push_back(repeat_quantum(steps_, seconds));
  }

  record::NoiseQuantum statistics() const {
    const QuantumStatistics statistics = quantum_statistics(blocks_);
    return {steps_,
            static_cast<std::int64_t>(statistics.samples),
            statistics.mean,
            statistics.median,
            statistics.best_mean,
            statistics.p99,
            statistics.max_over_min};
  }

 private:
  Session& session_;
  std::int64_t steps_ = 0;
  std::vector<std::vector<double>> blocks_;
};

/// Measures the rates of matrix products. A block of noise quanta precedes each precision, so that
/// what disturbs a node for a moment spoils one block and not all.
void measure_compute(Session& session, record::CheckedRank& entry) {
  const bool cuda = session.device->device().is_cuda();
  const double seconds = session.config().seconds / 4;
  Quanta quanta(session);
  record::GemmRates rates;
  for (const auto& [of_type, type] : {std::pair{&record::GemmRates::fp64, at::kDouble},
                                      {&record::GemmRates::fp32, at::kFloat},
                                      {&record::GemmRates::bf16, at::kBFloat16},
                                      {&record::GemmRates::fp16, at::kHalf}}) {
    quanta.measure_block(seconds);
    session.world.watchdog().enter("GEMM");
    leave_if_stopped(session);  // all ranks multiply at once, as they compute at once
    const GemmRates rate = measure_gemm(*session.device, type, cuda ? 8192 : 512, seconds);
    rates.*of_type = {rate.mean, rate.median};
  }
  entry.gemm = rates;
  entry.noise_quantum = quanta.statistics();
}

/// Measures memory bandwidth with arrays that take at most a quarter of this rank's share of
/// memory.
record::MemoryBandwidth measure_memory(Session& session) {
  session.world.watchdog().enter("memory bandwidth");
  const std::int64_t room =
      memory_left(session.world.local_size()).value_or(std::int64_t{1} << 40) / 4;
  const std::int64_t elements =
      std::clamp<std::int64_t>(room / triad_bytes(1), 1 << 16, kTriadElements);
  MemoryBandwidth rate;
  leave_if_stopped(session);
  session.world.agree_on([&] {
    rate = measure_memory_bandwidth(at::get_num_threads(), elements, session.config().seconds);
  });
  return {rate.bytes_per_second, rate.best_bytes_per_second, rate.array_bytes, rate.passes};
}

record::Scratch measure_scratch(Session& session) {
  session.world.watchdog().enter("scratch file");
  const auto& asked = session.config().scratch;
  std::filesystem::path folder;
  ScratchRates rates;
  leave_if_stopped(session);
  session.world.agree_on([&] {
    std::error_code error;
    folder = asked ? std::filesystem::path(*asked) : std::filesystem::temp_directory_path(error);
    if (error) throw EnvironmentError("TMPDIR is not a folder: choose one with --scratch DIR");
    if (session.world.local_rank() == 0)
      rates = measure_scratch_file(
          folder, static_cast<std::int64_t>(session.config().scratch_mb * 1024 * 1024));
  });
  return {rates, folder.string()};
}

/// Returns the variables, and the parameters that Open MPI took from them, from files and from
/// mpirun's command line.
Settings settings_in_effect(Session& session) {
  Settings settings = communication_settings(recorded_environment(session.environment));
  settings.merge(mca_parameters(
      session.world, {"pml", "btl", "mtl", "coll", "coll_hcoll_enable", "btl_tcp_if_include",
                      "btl_openib_allow_ib", "pml_ucx_tls", "pml_ucx_devices"}));
  return settings;
}

record::CollectiveRow row_of(Collective collective, Carrier carrier, const CollectiveTiming& timing,
                             int ranks) {
  const double rate = algorithm_bandwidth(timing.bytes, timing.seconds);
  return {std::string(to_string(collective)),
          std::string(to_string(carrier)),
          timing.bytes,
          timing.seconds,
          rate,
          rate * bus_factor(collective, ranks),
          timing.repetitions,
          timing.wrong_elements,
          known_text(timing.first_wrong)};
}

}  // namespace

void leave_if_stopped(Session& session) {
  session.world.agree_on([] {
    if (stop_requested()) throw RunError("stopped by a signal before all checks were made");
  });
}

PreflightRank measure_rank(Session& session) {
  PreflightRank rank;
  const bool first_of_host = session.world.local_rank() == 0;
  std::optional<record::Scratch> scratch;
  std::optional<std::vector<PeerLink>> peers;
  if (!session.config().pinning) {
    GpuChecks gpu(session);
    gpu.begin_load();
    measure_compute(session, rank.entry);
    gpu.end_load();
    rank.entry.memory_bandwidth = measure_memory(session);
    scratch = measure_scratch(session);
    rank.entry.gpu_health = gpu.measure();
    peers = gpu.peers();
  }
  rank.report = rank_report(session, session.world.rank(), {}, {});
  rank.settings = settings_in_effect(session);
  if (!first_of_host) return rank;
  rank.host = checked_host(session.system);
  rank.host->scratch = scratch;
  rank.host->gpu_peers = peers;
  return rank;
}

record::Collectives measure_collectives(Session& session) {
  RankGroup& world = session.world;
  const ResolvedConfig& config = session.config();
  const at::Device device = session.device->device();
  world.watchdog().enter("collectives");
  const auto& sizes = config.sizes.empty() ? (device.is_cuda() ? kGpuSizes : kSizes) : config.sizes;
  const bool corrupt =
      config.inject && (config.inject->rank < 0 || config.inject->rank == world.rank());
  const std::int64_t host_limit = device.is_cuda() ? kSizes.back() : std::int64_t{1} << 30;
  if (!device.is_cuda() && sizes.back() > host_limit)
    throw ConfigError("--sizes: collectives of more than 1 GiB need --device cuda");
  std::map<Carrier, std::unique_ptr<CollectiveCarrier>> carriers;
  for (const Carrier carrier : kHostCarriers)
    carriers[carrier] = make_carrier(carrier, world, std::min(sizes.back(), host_limit));
  if (device.is_cuda())
    for (const Carrier carrier : kDeviceCarriers)
      carriers[carrier] = make_carrier(carrier, world, sizes.back(), device.index());
  record::Collectives measured;
  for (const Collective collective : kCollectives)
    for (const std::int64_t bytes : sizes) {
      std::map<Carrier, CollectiveTiming> timings;
      for (const auto& [kind, carrier] : carriers) {
        const bool on_host = kind == Carrier::mpi || kind == Carrier::scalemark;
        if (!carrier->carries(collective) || (on_host && bytes > host_limit)) continue;
        leave_if_stopped(session);
        timings[kind] = CollectiveProbe(world, *carrier)
                            .measure(collective, bytes, config.seconds / 10, corrupt);
        measured.rows.push_back(row_of(collective, kind, timings[kind], world.size()));
      }
      if (const auto own = timings.find(Carrier::scalemark); own != timings.end())
        measured.allreduce_ratio.push_back(
            {own->second.bytes, own->second.seconds / timings.at(Carrier::mpi).seconds});
    }
  const auto communicator = make_communicator(CommunicatorKind::mpi, world, -1);
  measured.transport = known_text(communicator->transport());
  measured.algorithm = known_text(communicator->algorithm());
  return measured;
}

namespace {

constexpr std::int64_t kPairBytes = 4 << 20;  // about what one bucket of gradients sends
constexpr double kSecondsOfPair = 0.05;

struct PairsOfRank {
  std::vector<record::HostPair> pairs;
  static void describe(Fields& fields) { fields.add("pairs", &PairsOfRank::pairs); }
};

}  // namespace

std::optional<std::vector<record::HostPair>> measure_pairs(Session& session) {
  RankGroup& world = session.world;
  std::optional<RankGroup> leaders = world.split(world.local_rank() == 0 ? 0 : -1);
  const auto hosts = static_cast<int>(world.all_sum({leaders ? 1. : 0.}).front());
  world.watchdog().enter("pairs of hosts");
  const std::vector<std::string> names =
      leaders ? leaders->all_gather(host_name()) : std::vector<std::string>();
  PairsOfRank mine;
  for (int round = 0; round < pair_rounds(hosts); ++round) {
    leave_if_stopped(session);  // ranks that do not lead a host wait here in every round
    world.watchdog().enter("pairs of hosts");
    if (!leaders) continue;
    for (const PairTiming& pair : measure_pair_round(*leaders, round, kPairBytes, kSecondsOfPair))
      mine.pairs.push_back({{names.at(static_cast<std::size_t>(pair.first)),
                             names.at(static_cast<std::size_t>(pair.second))},
                            kPairBytes,
                            pair.latency_seconds,
                            pair.bytes_per_second});
  }
  if (!leaders || hosts < 2) return std::nullopt;
  std::vector<record::HostPair> pairs;
  for (const std::string& text : leaders->gather(to_wire(mine))) {
    const auto of_leader = from_wire<PairsOfRank>(text);
    pairs.insert(pairs.end(), of_leader.pairs.begin(), of_leader.pairs.end());
  }
  if (world.rank() != 0) return std::nullopt;
  return pairs;
}

}  // namespace scalemark

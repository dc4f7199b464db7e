// See preflight_measure.hpp.
#include "session/preflight_measure.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "analysis/settings.hpp"
#include "comm/communication_probe.hpp"
#include "error.hpp"
#include "platform/memory_limit.hpp"
#include "platform/posix_file.hpp"
#include "probe/gemm.hpp"
#include "probe/memory_bandwidth.hpp"
#include "result/preflight_parts.hpp"
#include "session/measured_run.hpp"
#include "session/preflight_gpu.hpp"
#include "train/signals.hpp"

namespace scalemark {
namespace {

constexpr double kQuantum = 1e-3;                 // seconds
constexpr std::int64_t kTriadElements = 8 << 20;  // of each array: 64 MiB
const std::vector<std::int64_t> kSizes{8, 1024, 65536, 1 << 20, 16 << 20, 64 << 20};
const std::vector<std::int64_t> kGpuSizes{8, 1024, 65536, 1 << 20, 16 << 20, 256 << 20, 1LL << 30};

/// Rank 0 says how much work a quantum is: a slow rank that chose its own would seem as fast as the
/// others.
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

  Json statistics() const {
    const QuantumStatistics statistics = quantum_statistics(blocks_);
    return {{"steps", steps_},
            {"samples", statistics.samples},
            {"mean_seconds", statistics.mean},
            {"median_seconds", statistics.median},
            {"best_mean_seconds", statistics.best_mean},
            {"p99_seconds", statistics.p99},
            {"max_over_min", statistics.max_over_min}};
  }

 private:
  Session& session_;
  std::int64_t steps_ = 0;
  std::vector<std::vector<double>> blocks_;
};

/// A block of noise quanta comes before each precision, so that what disturbs a node for a moment
/// spoils one block and not all.
void measure_compute(Session& session, Json& measured) {
  const bool cuda = session.device->device().is_cuda();
  const double seconds = session.config().seconds / 4;
  Quanta quanta(session);
  Json rates = Json::object();
  for (const auto& [name, type] : {std::pair{"fp64", at::kDouble},
                                   {"fp32", at::kFloat},
                                   {"bf16", at::kBFloat16},
                                   {"fp16", at::kHalf}}) {
    quanta.measure_block(seconds);
    session.world.watchdog().enter("GEMM");
    leave_if_stopped(session);  // all ranks multiply at once, as they compute at once
    const GemmRates rate = measure_gemm(*session.device, type, cuda ? 8192 : 512, seconds);
    rates[name] = {{"flops", rate.mean}, {"median_flops", rate.median}};
  }
  measured["gemm"] = rates;
  measured["noise_quantum"] = quanta.statistics();
}

/// A quarter of what this rank may take bounds the arrays.
Json measure_memory(Session& session) {
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
  return {{"bytes_per_second", rate.bytes_per_second},
          {"best_bytes_per_second", rate.best_bytes_per_second},
          {"array_bytes", rate.array_bytes},
          {"passes", rate.passes}};
}

Json measure_scratch(Session& session) {
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
  return {{"folder", folder.string()},
          {"bytes", rates.bytes},
          {"write_bytes_per_second", rates.write_bytes_per_second},
          {"read_bytes_per_second", rates.read_bytes_per_second}};
}

/// Variables, and what Open MPI made of them, of files and of mpirun's command line.
Settings settings_in_effect(Session& session) {
  Settings settings = communication_settings(recorded_environment(session.environment));
  settings.merge(mca_parameters(
      session.world, {"pml", "btl", "mtl", "coll", "coll_hcoll_enable", "btl_tcp_if_include",
                      "btl_openib_allow_ib", "pml_ucx_tls", "pml_ucx_devices"}));
  return settings;
}

Json row_of(Collective collective, Carrier carrier, const CollectiveTiming& timing, int ranks) {
  const double rate = algorithm_bandwidth(timing.bytes, timing.seconds);
  const bool right = timing.first_wrong.empty();
  return {{"collective", to_string(collective)},
          {"carrier", to_string(carrier)},
          {"bytes", timing.bytes},
          {"seconds", timing.seconds},
          {"algbw", rate},
          {"busbw", rate * bus_factor(collective, ranks)},
          {"repetitions", timing.repetitions},
          {"wrong_elements", timing.wrong_elements},
          {"first_wrong", right ? Json(nullptr) : Json(timing.first_wrong)}};
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
  Json scratch = nullptr, peers = nullptr;
  if (!session.config().pinning) {
    rank.measured = Json::object();
    GpuChecks gpu(session);
    gpu.begin_load();
    measure_compute(session, rank.measured);
    gpu.end_load();
    rank.measured["memory_bandwidth"] = measure_memory(session);
    scratch = measure_scratch(session);
    rank.measured["gpu_health"] = gpu.measure();
    peers = gpu.peers();
  }
  rank.report = rank_report(session, session.world.rank(), {}, {});
  rank.settings = settings_in_effect(session);
  if (first_of_host) rank.host = host_json(session.system, scratch, peers);
  return rank;
}

Json measure_collectives(Session& session) {
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
  Json rows = Json::array(), ratios = Json::array();
  for (const Collective collective : kCollectives)
    for (const std::int64_t bytes : sizes) {
      std::map<Carrier, CollectiveTiming> timings;
      for (const auto& [kind, carrier] : carriers) {
        const bool on_host = kind == Carrier::mpi || kind == Carrier::scalemark;
        if (!carrier->carries(collective) || (on_host && bytes > host_limit)) continue;
        leave_if_stopped(session);
        timings[kind] = CollectiveProbe(world, *carrier)
                            .measure(collective, bytes, config.seconds / 10, corrupt);
        rows.push_back(row_of(collective, kind, timings[kind], world.size()));
      }
      if (const auto own = timings.find(Carrier::scalemark); own != timings.end())
        ratios.push_back(
            {{"bytes", own->second.bytes},
             {"scalemark_over_mpi", own->second.seconds / timings.at(Carrier::mpi).seconds}});
    }
  const auto communicator = make_communicator(CommunicatorKind::mpi, world, -1);
  return {{"transport", null_if_empty(communicator->transport())},
          {"algorithm", null_if_empty(communicator->algorithm())},
          {"rows", rows},
          {"allreduce_ratio", ratios}};
}

}  // namespace scalemark

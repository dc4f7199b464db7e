// See preflight_measure.hpp.
#include "session/preflight_measure.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "comm/collective_probe.hpp"
#include "platform/memory_limit.hpp"
#include "platform/scratch_file.hpp"
#include "probe/fixed_work.hpp"
#include "probe/gemm.hpp"
#include "probe/memory_bandwidth.hpp"
#include "session/measured_run.hpp"
#include "train/signals.hpp"

namespace scalemark {
namespace {

constexpr double kQuantum = 1e-3;                 // seconds
constexpr std::int64_t kTriadElements = 8 << 20;  // of each array: 64 MiB
const std::vector<std::int64_t> kSizes{8, 1024, 65536, 1 << 20, 16 << 20, 64 << 20};

/// Between two measurements, and their barrier; a signal may reach one rank alone.
void leave_if_stopped(Session& session) {
  session.world.agree_on([] {
    if (stop_requested()) throw RunError("stopped by a signal before all checks were made");
  });
}

Json measure_gemms(Session& session) {
  const bool cuda = session.device->device().is_cuda();
  Json rates = Json::object();
  for (const auto& [name, type] : {std::pair{"fp64", at::kDouble},
                                   {"fp32", at::kFloat},
                                   {"bf16", at::kBFloat16},
                                   {"fp16", at::kHalf}}) {
    session.world.watchdog().enter("GEMM");
    leave_if_stopped(session);  // all ranks multiply at once, as they compute at once
    const GemmRates rate =
        measure_gemm(*session.device, type, cuda ? 8192 : 512, session.config().seconds / 4);
    rates[name] = {{"flops", rate.mean}, {"median_flops", rate.median}};
  }
  return rates;
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

/// Rank 0 says how much work a quantum is: a slow rank that chose its own would seem as fast as the
/// others.
Json measure_quantum(Session& session) {
  session.world.watchdog().enter("noise quantum");
  const std::int64_t own = session.is_root() ? calibrate_quantum(kQuantum) : 0;
  const std::int64_t steps = std::stoll(session.world.broadcast(std::to_string(own)));
  leave_if_stopped(session);
  const auto samples = repeat_quantum(steps, session.config().seconds);
  const QuantumStatistics statistics = quantum_statistics(samples);
  return {{"steps", steps},
          {"samples", samples.size()},
          {"mean_seconds", statistics.mean},
          {"median_seconds", statistics.median},
          {"p99_seconds", statistics.p99},
          {"max_over_min", statistics.max_over_min}};
}

Json measure_scratch(Session& session) {
  session.world.watchdog().enter("scratch file");
  const auto folder = scratch_folder(session.config().scratch.value_or(""));
  ScratchRates rates;
  leave_if_stopped(session);
  session.world.agree_on([&] {
    if (session.world.local_rank() == 0)
      rates = measure_scratch_file(
          folder, static_cast<std::int64_t>(session.config().scratch_mb * 1024 * 1024));
  });
  return {{"folder", folder.string()},
          {"bytes", rates.bytes},
          {"write_bytes_per_second", rates.write_bytes_per_second},
          {"read_bytes_per_second", rates.read_bytes_per_second}};
}

Json host_facts(const Session& session, const Json& scratch) {
  const Json& system = session.system.json;
  Json nics = Json::array();
  for (const Json& nic : system.at("nics"))
    nics.push_back({{"name", nic.at("name")}, {"speed_mbps", nic.at("speed_mbps")}});
  const auto memory = memory_left(1);
  return {{"host", host_name()},
          {"memory_available_bytes", memory ? Json(*memory) : Json(nullptr)},
          {"governor", system.at("governor")},
          {"smt", system.at("smt")},
          {"nics", nics},
          {"scratch", scratch}};
}

Json row_of(Collective collective, Carrier carrier, const CollectiveTiming& timing, int ranks) {
  const double rate = algorithm_bandwidth(timing.bytes, timing.seconds);
  const bool right = timing.first_wrong.empty();
  return {{"collective", to_string(collective)},
          {"carrier", carrier == Carrier::mpi ? "mpi" : "scalemark"},
          {"bytes", timing.bytes},
          {"seconds", timing.seconds},
          {"algbw", rate},
          {"busbw", rate * bus_factor(collective, ranks)},
          {"repetitions", timing.repetitions},
          {"wrong_elements", timing.wrong_elements},
          {"first_wrong", right ? Json(nullptr) : Json(timing.first_wrong)}};
}

}  // namespace

PreflightRank measure_rank(Session& session) {
  PreflightRank rank;
  const bool first_of_host = session.world.local_rank() == 0;
  Json scratch = nullptr;
  if (!session.config().pinning) {
    rank.measured = Json::object();
    rank.measured["gemm"] = measure_gemms(session);
    rank.measured["memory_bandwidth"] = measure_memory(session);
    rank.measured["noise_quantum"] = measure_quantum(session);
    scratch = measure_scratch(session);
  }
  rank.report = rank_report(session, session.world.rank(), {}, {});
  if (first_of_host) rank.host = host_facts(session, scratch);
  return rank;
}

Json measure_collectives(Session& session) {
  RankGroup& world = session.world;
  const RunConfig& config = session.config();
  world.watchdog().enter("collectives");
  const auto& sizes = config.sizes.empty() ? kSizes : config.sizes;
  CollectiveProbe probe(world, sizes.back());
  const bool corrupt =
      config.inject && (config.inject->rank < 0 || config.inject->rank == world.rank());
  Json rows = Json::array(), ratios = Json::array();
  const auto measure = [&](Collective collective, Carrier carrier, std::int64_t bytes) {
    leave_if_stopped(session);
    const auto timing = probe.measure(collective, carrier, bytes, config.seconds / 10, corrupt);
    rows.push_back(row_of(collective, carrier, timing, world.size()));
    return timing;
  };
  for (const Collective collective : kCollectives)
    for (const std::int64_t bytes : sizes) {
      const double mpi = measure(collective, Carrier::mpi, bytes).seconds;
      if (collective != Collective::allreduce) continue;
      const auto own = measure(collective, Carrier::scalemark, bytes);
      ratios.push_back({{"bytes", own.bytes}, {"scalemark_over_mpi", own.seconds / mpi}});
    }
  const auto known = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  return {{"transport", known(probe.communicator().transport())},
          {"algorithm", known(probe.communicator().algorithm())},
          {"rows", rows},
          {"allreduce_ratio", ratios}};
}

}  // namespace scalemark

// Measures the copies and links of GPUs, one GPU of a host at a time.
#include "session/preflight_gpu.hpp"

#include <algorithm>

#include "probe/gpu_transfers.hpp"
#include "result/preflight_parts.hpp"
#include "session/preflight_measure.hpp"

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

}  // namespace

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

}  // namespace scalemark

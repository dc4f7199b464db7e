// Checks GPUs for preflight. It does nothing where no rank uses one.
#pragma once

#include <optional>
#include <vector>

#include "platform/gpu_health.hpp"
#include "record/preflight.hpp"
#include "session/session.hpp"

namespace scalemark {

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

}  // namespace scalemark

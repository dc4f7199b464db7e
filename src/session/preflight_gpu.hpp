// What preflight checks of GPUs; nothing where no rank uses one.
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

  /// Around the products of matrices, whose clocks are the ones that count.
  void begin_load();
  void end_load();
  /// Copies to and from the GPUs, one of a host at a time because they may share links, then from
  /// GPU to GPU by the first rank of each host. Nothing without a GPU. All ranks call it. Throws
  /// AgreedError.
  std::optional<record::GpuHealth> measure();
  /// After measure(); nothing where this rank measured none.
  const std::optional<std::vector<PeerLink>>& peers() const { return peers_; }

 private:
  Session& session_;
  std::optional<GpuWatch> watch_;
  std::optional<std::vector<PeerLink>> peers_;
};

}  // namespace scalemark

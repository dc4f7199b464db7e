// What preflight checks of GPUs; nothing where no rank uses one.
#pragma once

#include <optional>

#include "platform/gpu_health.hpp"
#include "result/records.hpp"
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
  /// GPU to GPU by the first rank of each host. An entry `ranks[].gpu_health`; null without a GPU.
  /// All ranks call it. Throws AgreedError.
  Json measure();
  /// `hosts[].gpu_peers` after measure(); null where this rank measured none.
  const Json& peers() const { return peers_; }

 private:
  Session& session_;
  std::optional<GpuWatch> watch_;
  Json peers_ = nullptr;
};

}  // namespace scalemark

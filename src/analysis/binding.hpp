// Where ranks run against what their launcher was asked for: ranks that share cores, and bindings
// that did not come about.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace scalemark {

/// A rank's place. CPU numbers are those of its host.
struct RankPlace {
  int rank = 0;
  std::string host;
  std::vector<int> cpus;  ///< that the kernel lets it run on; empty: unknown
  std::string requested;  ///< "core", "none", "cores:..."; empty: unknown
  int cpus_of_host = 0;   ///< logical ones that are online; 0: unknown
};

struct BindingVerdict {
  std::vector<int> overlaps_with;  ///< ranks of the same host that may run on one of its CPUs
  /// False: a binding was asked for, but the rank may run on every CPU of a host that it shares
  /// with other ranks. nullopt: it is not known what was asked for, or where the rank runs.
  std::optional<bool> as_asked;
};

/// One verdict a place, in their order.
std::vector<BindingVerdict> judge_binding(const std::vector<RankPlace>& places);

}  // namespace scalemark

// What an allreduce costs by latency, bytes and sums (alpha, beta, gamma), by algorithm, on one
// network or on one within nodes and another between them. Formulas: docs/projection.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace scalemark {

struct LinkCost {
  double latency_seconds = 0;   ///< alpha: of one message
  double seconds_per_byte = 0;  ///< beta: of a node's or a rank's way out, each direction
};

/// Ranks lie node by node; the ranks of a node share its way to the others.
struct Network {
  LinkCost node;                    ///< between ranks of a node
  LinkCost link;                    ///< between nodes
  double sum_seconds_per_byte = 0;  ///< gamma: adding received bytes to one's own
  std::int64_t ranks_per_node = 1;
  double work_seconds_per_byte = 0;  ///< that a rank's own cores spend on moving it, which they
                                     ///< then do not compute in

  std::int64_t nodes(std::int64_t ranks) const {
    return (ranks + ranks_per_node - 1) / ranks_per_node;
  }
};

/// automatic: the cheapest of ring, tree and hierarchical.
enum class Allreduce { automatic, ring, tree, doubling, hierarchical };

std::string to_string(Allreduce algorithm);
/// "auto", "ring", "tree", "doubling", "hierarchical"; nothing for another word.
std::optional<Allreduce> allreduce_from(std::string_view name);

struct AllreduceCost {
  double seconds = 0;
  Allreduce algorithm = Allreduce::ring;  ///< never automatic
};

/// Time until every rank has the sum of `bytes` of all ranks; 0 for one rank or no bytes.
AllreduceCost allreduce_cost(double bytes, std::int64_t ranks, const Network& network,
                             Allreduce algorithm = Allreduce::automatic);

}  // namespace scalemark

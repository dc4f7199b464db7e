// The cost model of one training step: what collectives take, which of them are hidden behind
// computation, and waiting for the slowest rank. Pure functions; docs/projection.md states the
// model and its limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "measure/bus_bandwidth.hpp"

namespace scalemark {

/// What a collective costs by latency, bytes and sums (alpha, beta, gamma); docs/projection.md has
/// the formula of each algorithm.
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

/// The same of an allreduce, or of one of its halves: until every rank has its block of the sum
/// (reduce_scatter), or all blocks (allgather); `bytes` are those of all blocks. Halves are rings:
/// `algorithm` is automatic, ring or hierarchical, which has_half() says.
AllreduceCost collective_cost(Collective collective, double bytes, std::int64_t ranks,
                              const Network& network, Allreduce algorithm = Allreduce::automatic);
bool has_half(Allreduce algorithm);

/// Share of a training step's computation that the backward pass takes: two of three matrix
/// products of each layer.
inline constexpr double kBackwardShare = 2. / 3;

/// step: gradients may travel on into the next forward pass, most urgent first.
enum class Hiding { none, backward, step };
std::string to_string(Hiding hiding);
std::optional<Hiding> hiding_from(std::string_view name);

/// What --shard makes of a rank's communication. Weights of blocks are gathered one block ahead,
/// freed after each use, and gathered again in the backward pass, but for the last block's.
struct ShardPlan {
  bool divides = false;       ///< gradients are reduce-scattered; else nothing below counts
  bool after_passes = false;  ///< after each micro-batch, two sums at most at a time
  double micro_batch = 0;     ///< samples; 0: a step has one micro-batch
  double kept_bytes = 0;      ///< weights that are gathered after an update and stay
  double kept_messages = 1;   ///< in so many messages
  std::int64_t blocks = 0;    ///< that come and go one by one
  double block_bytes = 0;     ///< weights of one, in the type that travels
  double block_share = 0;     ///< of one, of all gradients; its computation has the same share
  double early_share = 0;     ///< of gradients outside of blocks that are ready before theirs
};

/// The gradients of a rank, in the order in which they become ready.
struct BucketPlan {
  double gradient_bytes = 0;  ///< in the type that travels
  double first_bucket_bytes = 0, bucket_bytes = 0;
  Hiding hiding = Hiding::backward;
  ShardPlan shard = {};
};

/// One collective's part of a step.
struct CollectiveSeconds {
  double total = 0;    ///< of its messages, one after the other
  double exposed = 0;  ///< what it adds to the step
};

struct CommunicationCost {
  double total_seconds = 0;               ///< of all buckets, one after the other
  double exposed_seconds = 0;             ///< what they add to the step
  Allreduce algorithm = Allreduce::ring;  ///< of a bucket of full size
  CollectiveSeconds sums = {},
                    gathers = {};  ///< with a ShardPlan: its reduce-scatters, all-gathers
};

/// How much of the gradients' communication a step does not hide: buckets leave one after the other
/// as the backward pass makes them ready. The computation alone takes
/// `compute_seconds`. Gradients become ready evenly over the backward pass, which the work of
/// hidden communication makes longer; a bucket starts when it is ready and the one before is done.
/// With a ShardPlan all collectives take turns in the order of their starts, those of a step being
/// all that follow an update; `passes` are its micro-batches.
CommunicationCost communication_cost(const BucketPlan& plan, double compute_seconds,
                                     std::int64_t ranks, const Network& network,
                                     Allreduce algorithm = Allreduce::automatic,
                                     std::int64_t passes = 1);

/// What a rank has to do in a step, known beforehand.
struct StepWork {
  double batch_per_rank = 1;  ///< samples
  BucketPlan buckets;
};

/// What a curve decides. The computation of `reference_batch` samples takes `compute_seconds`, of
/// others that share of it which grows with the batch.
struct CostParameters {
  double compute_seconds = 1;
  double reference_batch = 1;
  double fixed_share = 0;          ///< of compute_seconds, whatever the batch: 0 to 1
  double straggler_deviation = 0;  ///< of a rank's computation between ranks, relative
  double overlap = 1;              ///< share of the communication that hides where it could
  double once = 0;                 ///< of computation, lost from `once_from` ranks on
  std::int64_t once_from = 0;
  Network network;
};

struct StepCost {
  double compute_seconds = 0;    ///< mean rank
  double straggler_seconds = 0;  ///< slowest rank - mean rank
  double communication_seconds = 0;
  double exposed_seconds = 0;  ///< of these
  double trend_seconds = 0;    ///< what a curve's own trend adds to the model's; may be below 0
  Allreduce algorithm = Allreduce::ring;
  CollectiveSeconds sums = {}, gathers = {};  ///< parts of communication and exposed with --shard

  double seconds() const {
    return compute_seconds + straggler_seconds + exposed_seconds + trend_seconds;
  }
};

/// `lateness`: expected_maximum_of_normals(ranks), which callers keep. `compute_factor`: how much
/// longer ranks that share a machine compute.
StepCost step_cost(const CostParameters& parameters, const StepWork& work, std::int64_t ranks,
                   double lateness, Allreduce algorithm = Allreduce::automatic,
                   double compute_factor = 1);

}  // namespace scalemark

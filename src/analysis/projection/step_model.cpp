// Computes the time of a training step from the parameters of the cost model.
#include "analysis/projection/step_model.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

namespace scalemark {
namespace {

constexpr std::array<std::pair<Allreduce, std::string_view>, 5> kNames{
    {{Allreduce::automatic, "auto"},
     {Allreduce::ring, "ring"},
     {Allreduce::tree, "tree"},
     {Allreduce::doubling, "doubling"},
     {Allreduce::hierarchical, "hierarchical"}}};

double log2_up(std::int64_t n) {
  double rounds = 0;
  for (std::int64_t reached = 1; reached < n; reached *= 2) ++rounds;
  return rounds;
}

/// The slowest hop of a pattern that runs through all ranks: messages between nodes wait for those
/// within.
LinkCost slowest(const Network& network, std::int64_t ranks) {
  if (network.ranks_per_node == 1) return network.link;
  if (ranks <= network.ranks_per_node) return network.node;
  return {std::max(network.node.latency_seconds, network.link.latency_seconds),
          std::max(network.node.seconds_per_byte, network.link.seconds_per_byte)};
}

/// Reduce-scatter and all-gather around the ring (Patarasu and Yuan 2009): 2 (P - 1) messages of
/// 1 / P of the bytes. In node order every node's way out carries the bytes of one rank.
double ring(double bytes, std::int64_t ranks, const LinkCost& hop, double sum) {
  const auto p = static_cast<double>(ranks);
  return 2 * (p - 1) * hop.latency_seconds + (p - 1) / p * bytes * (2 * hop.seconds_per_byte + sum);
}

/// Up and down a pair of binary trees in which an inner rank of one is a leaf of the other
/// (Sanders, Speck and Träff 2009), in blocks of the best size: each way (sqrt(bytes beta) + sqrt(2
/// log2 P alpha))^2.
double tree(double bytes, std::int64_t ranks, const LinkCost& hop, double sum) {
  const double way =
      std::sqrt(bytes * hop.seconds_per_byte) + std::sqrt(2 * log2_up(ranks) * hop.latency_seconds);
  return 2 * way * way + bytes * sum;
}

/// Recursive doubling (Thakur, Rabenseifner and Gropp 2005): all bytes in each of log2 P rounds,
/// two more where P is no power of two. The ranks of a node send at once through one way out in the
/// rounds that leave it.
double doubling(double bytes, std::int64_t ranks, const Network& network) {
  const std::int64_t inside = std::min(ranks, network.ranks_per_node);
  const double rounds = log2_up(ranks) + (std::has_single_bit(static_cast<std::uint64_t>(ranks))
                                              ? 0.
                                              : 1.);  // one of the two is counted by rounding up
  const double within = std::min(rounds, log2_up(inside));
  const auto sharing = static_cast<double>(inside);
  return within * (network.node.latency_seconds + bytes * network.node.seconds_per_byte) +
         (rounds - within) *
             (network.link.latency_seconds + sharing * bytes * network.link.seconds_per_byte) +
         rounds * bytes * network.sum_seconds_per_byte;
}

/// Reduce-scatter within the node, rings between the nodes for each share at once, all-gather.
double hierarchical(double bytes, std::int64_t ranks, const Network& network) {
  const std::int64_t inside = std::min(ranks, network.ranks_per_node);
  const std::int64_t nodes = network.nodes(ranks);
  const double within = ring(bytes, inside, network.node, network.sum_seconds_per_byte);
  const double share = network.sum_seconds_per_byte / static_cast<double>(inside);
  return within + (nodes > 1 ? ring(bytes, nodes, network.link, share) : 0);
}

/// Half of ring(): reduce-scatter with its sums, or all-gather without any.
double half_ring(double bytes, std::int64_t ranks, const LinkCost& hop, double sum) {
  const auto p = static_cast<double>(ranks);
  return (p - 1) * hop.latency_seconds + (p - 1) / p * bytes * (hop.seconds_per_byte + sum);
}

/// Half of hierarchical(), either way round.
double half_hierarchical(double bytes, std::int64_t ranks, const Network& network, double sum) {
  const std::int64_t inside = std::min(ranks, network.ranks_per_node);
  const std::int64_t nodes = network.nodes(ranks);
  const double within = half_ring(bytes, inside, network.node, sum);
  const double share = sum / static_cast<double>(inside);
  return within + (nodes > 1 ? half_ring(bytes, nodes, network.link, share) : 0);
}

double seconds_of(double bytes, std::int64_t ranks, const Network& network, Allreduce algorithm) {
  const LinkCost hop = slowest(network, ranks);
  switch (algorithm) {
    case Allreduce::tree:
      return tree(bytes, ranks, hop, network.sum_seconds_per_byte);
    case Allreduce::doubling:
      return doubling(bytes, ranks, network);
    case Allreduce::hierarchical:
      return hierarchical(bytes, ranks, network);
    default:
      return ring(bytes, ranks, hop, network.sum_seconds_per_byte);
  }
}

}  // namespace

std::string to_string(Allreduce algorithm) {
  for (const auto& [value, name] : kNames)
    if (value == algorithm) return std::string(name);
  return "";
}

std::optional<Allreduce> allreduce_from(std::string_view name) {
  for (const auto& [value, known] : kNames)
    if (known == name) return value;
  return std::nullopt;
}

AllreduceCost allreduce_cost(double bytes, std::int64_t ranks, const Network& network,
                             Allreduce algorithm) {
  if (ranks < 2 || bytes <= 0)
    return {0, algorithm == Allreduce::automatic ? Allreduce::ring : algorithm};
  if (algorithm != Allreduce::automatic)
    return {seconds_of(bytes, ranks, network, algorithm), algorithm};
  AllreduceCost best{seconds_of(bytes, ranks, network, Allreduce::ring), Allreduce::ring};
  for (const Allreduce other : {Allreduce::tree, Allreduce::hierarchical}) {
    const double seconds = seconds_of(bytes, ranks, network, other);
    if (seconds < best.seconds) best = {seconds, other};
  }
  return best;
}

bool has_half(Allreduce algorithm) {
  return algorithm != Allreduce::tree && algorithm != Allreduce::doubling;
}

AllreduceCost collective_cost(Collective collective, double bytes, std::int64_t ranks,
                              const Network& network, Allreduce algorithm) {
  if (collective == Collective::allreduce) return allreduce_cost(bytes, ranks, network, algorithm);
  const Allreduce asked = algorithm == Allreduce::hierarchical ? algorithm : Allreduce::ring;
  if (ranks < 2 || bytes <= 0) return {0, asked};
  const double sum = collective == Collective::reduce_scatter ? network.sum_seconds_per_byte : 0;
  const AllreduceCost flat{half_ring(bytes, ranks, slowest(network, ranks), sum), Allreduce::ring};
  const AllreduceCost nested{half_hierarchical(bytes, ranks, network, sum),
                             Allreduce::hierarchical};
  if (algorithm == Allreduce::automatic) return nested.seconds < flat.seconds ? nested : flat;
  return asked == Allreduce::hierarchical ? nested : flat;
}

namespace {
constexpr double kMostBuckets = 4096;  // finer ones hide no better, but take long to go through

/// What a ring has each rank send, in time of its cores.
double work_seconds(const BucketPlan& plan, std::int64_t ranks, const Network& network) {
  const auto p = static_cast<double>(ranks);
  return 2 * (p - 1) / p * plan.gradient_bytes * network.work_seconds_per_byte;
}

/// The computation of a step and its link, side by side from one update to the next.
class ShardedStep {
 public:
  ShardedStep(const BucketPlan& plan, double compute_seconds, std::int64_t ranks,
              const Network& network, Allreduce algorithm)
      : plan_(plan), ranks_(ranks), network_(network), algorithm_(algorithm) {
    compute_ = compute_seconds;
    block_ = seconds(Collective::allgather, plan.shard.block_bytes);
  }

  CommunicationCost cost(std::int64_t passes) {
    const ShardPlan& shard = plan_.shard;
    std::vector<double> arrivals;  // of the weights that stay, in the order of their uses
    for (double i = 0; i < shard.kept_messages; ++i)
      arrivals.push_back(
          gather(seconds(Collective::allgather, shard.kept_bytes / shard.kept_messages)));
    if (shard.blocks > 0) {
      gather(block_);
      await(link_, made_.gathers);
    }
    if (!shard.after_passes) passes = 1;
    for (std::int64_t i = 0; i < passes; ++i) {
      forward(compute_ / static_cast<double>(passes), std::exchange(arrivals, {}));
      backward(compute_ / static_cast<double>(passes));
      if (plan_.hiding == Hiding::none) link_ = std::max(link_, now_) + std::exchange(after_, 0);
      await(link_, made_.sums);
    }
    made_.total_seconds = made_.sums.total + made_.gathers.total;
    made_.exposed_seconds = made_.sums.exposed + made_.gathers.exposed;
    return made_;
  }

 private:
  double seconds(Collective collective, double bytes) const {
    return collective_cost(collective, bytes, ranks_, network_, algorithm_).seconds;
  }

  /// Returns when it has come.
  double gather(double seconds) {
    made_.gathers.total += seconds;
    return link_ = std::max(link_, now_) + seconds;
  }

  void await(double done, CollectiveSeconds& of) {
    of.exposed += std::max(0., done - now_);
    now_ = std::max(done, now_);
  }

  /// The cores move bytes while they compute.
  void work(double bytes, CollectiveSeconds& of) {
    const auto p = static_cast<double>(ranks_);
    const double seconds = (p - 1) / p * bytes * network_.work_seconds_per_byte;
    of.exposed += seconds;
    now_ += seconds;
  }

  /// Every block but the first comes while the one before it computes, and so does what stays where
  /// there are no blocks.
  void forward(double compute, const std::vector<double>& arrivals) {
    compute *= 1 - kBackwardShare;
    const ShardPlan& shard = plan_.shard;
    if (shard.blocks == 0 && !arrivals.empty()) {
      const auto parts = static_cast<double>(arrivals.size());
      for (const double arrival : arrivals) {
        await(arrival, made_.gathers);
        now_ += compute / parts;
        if (arrival != arrivals.back()) work(shard.kept_bytes / parts, made_.gathers);
      }
      return;
    }
    double arrival = now_;
    for (std::int64_t block = 0; block < shard.blocks; ++block) {
      const double arrived = arrival;
      if (block + 1 < shard.blocks) arrival = gather(block_);
      await(arrived, made_.gathers);
      now_ += compute * shard.block_share;
      if (block + 1 < shard.blocks) work(shard.block_bytes, made_.gathers);
    }
    now_ += compute * outside();
  }

  /// What computation and gradients lie outside of blocks.
  double outside() const {
    return 1 - static_cast<double>(plan_.shard.blocks) * plan_.shard.block_share;
  }

  void backward(double compute) {
    compute *= kBackwardShare;
    const ShardPlan& shard = plan_.shard;
    before_last_ = last_ = 0;
    if (shard.blocks == 0) return scatter_evenly(compute);
    now_ += compute * outside();
    scatter(outside() * shard.early_share * plan_.gradient_bytes);
    double arrival = now_;  // the last block has stayed
    for (std::int64_t block = shard.blocks - 1; block >= 0; --block) {
      const double arrived = arrival;
      if (block > 0) arrival = gather(block_);
      await(arrived, made_.gathers);
      now_ += compute * shard.block_share;
      if (block > 0) work(shard.block_bytes, made_.gathers);
      scatter(shard.block_share * plan_.gradient_bytes);
    }
    scatter(outside() * (1 - shard.early_share) * plan_.gradient_bytes);
  }

  void scatter_evenly(double compute) {
    const double full = std::max(plan_.bucket_bytes, plan_.gradient_bytes / kMostBuckets);
    double bytes = plan_.first_bucket_bytes > 0 ? plan_.first_bucket_bytes : full;
    for (double left = plan_.gradient_bytes; left > 0; left -= bytes, bytes = full) {
      bytes = std::min(left, bytes);
      now_ += compute * bytes / plan_.gradient_bytes;
      scatter(bytes);
    }
  }

  /// Sums gradients that are ready.
  void scatter(double bytes) {
    if (bytes <= 0) return;
    const AllreduceCost cost =
        collective_cost(Collective::reduce_scatter, bytes, ranks_, network_, algorithm_);
    made_.sums.total += cost.seconds;
    made_.algorithm = cost.algorithm;
    if (plan_.hiding == Hiding::none) {
      after_ += cost.seconds;
      return;
    }
    work(bytes, made_.sums);
    link_ = std::max(link_, now_) + cost.seconds;
    if (plan_.shard.after_passes) await(before_last_, made_.sums);
    before_last_ = std::exchange(last_, link_);
  }

  const BucketPlan& plan_;
  const std::int64_t ranks_;
  const Network& network_;
  const Allreduce algorithm_;
  double compute_ = 0, block_ = 0;  ///< seconds of a step's computation, of gathering a block
  double now_ = 0, link_ = 0;       ///< since the update; when the link is free
  double after_ = 0;                ///< seconds of sums that wait for the end of the backward pass
  double before_last_ = 0, last_ = 0;  ///< when these sums are done
  CommunicationCost made_;
};

}  // namespace

std::string to_string(Hiding hiding) {
  switch (hiding) {
    case Hiding::none:
      return "none";
    case Hiding::step:
      return "step";
    case Hiding::backward:
      break;
  }
  return "backward";
}

std::optional<Hiding> hiding_from(std::string_view name) {
  for (const Hiding hiding : {Hiding::none, Hiding::backward, Hiding::step})
    if (to_string(hiding) == name) return hiding;
  return std::nullopt;
}

CommunicationCost communication_cost(const BucketPlan& plan, double compute_seconds,
                                     std::int64_t ranks, const Network& network,
                                     Allreduce algorithm, std::int64_t passes) {
  if (ranks < 2 || plan.gradient_bytes <= 0) return {};
  if (plan.shard.divides)
    return ShardedStep(plan, compute_seconds, ranks, network, algorithm).cost(passes);
  const double first = std::min(plan.first_bucket_bytes, plan.gradient_bytes);
  const double full = std::max(plan.bucket_bytes, plan.gradient_bytes / kMostBuckets);
  const AllreduceCost typical =
      allreduce_cost(std::min(full, plan.gradient_bytes), ranks, network, algorithm);
  CommunicationCost cost{0, 0, typical.algorithm};
  const double work = plan.hiding == Hiding::none ? 0 : work_seconds(plan, ranks, network);
  const double forward = (1 - kBackwardShare) * compute_seconds;
  const double end = compute_seconds + work, backward = end - forward;
  double ready_bytes = 0, done = 0, last = 0;
  while (ready_bytes < plan.gradient_bytes) {
    const double left = plan.gradient_bytes - ready_bytes;
    const double bytes = std::min(left, ready_bytes == 0 && first > 0 ? first : full);
    last =
        bytes == full ? typical.seconds : allreduce_cost(bytes, ranks, network, algorithm).seconds;
    ready_bytes += bytes;
    const double ready = forward + backward * ready_bytes / plan.gradient_bytes;
    done = std::max(done, plan.hiding == Hiding::none ? end : ready) + last;
    cost.total_seconds += last;
  }
  cost.exposed_seconds = std::max(end, done) - compute_seconds;
  // The first layers' gradients are ready last and needed first: their bucket never hides.
  if (plan.hiding == Hiding::step)
    cost.exposed_seconds =
        std::min(cost.exposed_seconds, work + std::max(last, cost.total_seconds - end));
  return cost;
}

namespace {

/// Adds what of the communication that could hide does not.
CollectiveSeconds shown(const CollectiveSeconds& ideal, double overlap) {
  const double hidden = std::max(0., ideal.total - ideal.exposed);
  return {ideal.total, ideal.exposed + (1 - overlap) * hidden};
}

std::int64_t passes_of(const StepWork& work) {
  const double micro = work.buckets.shard.micro_batch;
  return micro > 0 ? std::max<std::int64_t>(1, std::llround(work.batch_per_rank / micro)) : 1;
}

}  // namespace

StepCost step_cost(const CostParameters& parameters, const StepWork& work, std::int64_t ranks,
                   double lateness, Allreduce algorithm, double compute_factor) {
  StepCost cost;
  const double growing = work.batch_per_rank / parameters.reference_batch;
  cost.compute_seconds = compute_factor * parameters.compute_seconds *
                         (parameters.fixed_share + (1 - parameters.fixed_share) * growing);
  if (parameters.once > 0 && ranks >= parameters.once_from)
    cost.compute_seconds *= 1 + parameters.once;
  cost.straggler_seconds = cost.compute_seconds * parameters.straggler_deviation * lateness;
  const CommunicationCost communication = communication_cost(
      work.buckets, cost.compute_seconds, ranks, parameters.network, algorithm, passes_of(work));
  cost.communication_seconds = communication.total_seconds;
  const double hidden = std::max(0., communication.total_seconds - communication.exposed_seconds);
  cost.exposed_seconds = communication.exposed_seconds + (1 - parameters.overlap) * hidden;
  cost.algorithm = communication.algorithm;
  if (work.buckets.shard.divides) {
    cost.sums = shown(communication.sums, parameters.overlap);
    cost.gathers = shown(communication.gathers, parameters.overlap);
    cost.exposed_seconds = cost.sums.exposed + cost.gathers.exposed;
  }
  return cost;
}

}  // namespace scalemark

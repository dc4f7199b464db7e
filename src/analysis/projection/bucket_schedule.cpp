// See bucket_schedule.hpp.
#include "analysis/projection/bucket_schedule.hpp"

#include <algorithm>

namespace scalemark {
namespace {
constexpr double kMostBuckets = 4096;  // finer ones hide no better, but take long to go through

/// What a ring has each rank send, in time of its cores.
double work_seconds(const BucketPlan& plan, std::int64_t ranks, const Network& network) {
  const auto p = static_cast<double>(ranks);
  return 2 * (p - 1) / p * plan.gradient_bytes * network.work_seconds_per_byte;
}

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
                                     Allreduce algorithm) {
  if (ranks < 2 || plan.gradient_bytes <= 0) return {};
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

}  // namespace scalemark

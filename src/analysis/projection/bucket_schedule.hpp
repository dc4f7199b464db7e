// How much of the gradients' communication a step does not hide: buckets leave one after the other
// as the backward pass makes them ready. Pure arithmetic; docs/projection.md draws it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/projection/allreduce_cost.hpp"

namespace scalemark {

/// Share of a training step's computation that the backward pass takes: two of three matrix
/// products of each layer.
inline constexpr double kBackwardShare = 2. / 3;

/// step: gradients may travel on into the next forward pass, most urgent first.
enum class Hiding { none, backward, step };
std::string to_string(Hiding hiding);
std::optional<Hiding> hiding_from(std::string_view name);

/// The gradients of a rank, in the order in which they become ready.
struct BucketPlan {
  double gradient_bytes = 0;  ///< in the type that travels
  double first_bucket_bytes = 0, bucket_bytes = 0;
  Hiding hiding = Hiding::backward;
};

struct CommunicationCost {
  double total_seconds = 0;               ///< of all buckets, one after the other
  double exposed_seconds = 0;             ///< what they add to the step
  Allreduce algorithm = Allreduce::ring;  ///< of a bucket of full size
};

/// Of a step whose computation alone takes `compute_seconds`. Gradients become ready evenly over
/// the backward pass, which the work of hidden communication makes longer; a bucket starts when it
/// is ready and the one before is done.
CommunicationCost communication_cost(const BucketPlan& plan, double compute_seconds,
                                     std::int64_t ranks, const Network& network,
                                     Allreduce algorithm = Allreduce::automatic);

}  // namespace scalemark

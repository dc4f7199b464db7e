// Computes the global norm of gradients and scales them.
#include "train/clipping.hpp"

namespace scalemark {
at::Tensor gradient_norm(const std::vector<Bucket>& buckets, const OperatorSet& operators) {
  std::vector<at::Tensor> norms;
  for (const Bucket& bucket : buckets) norms.push_back(operators.norm(bucket.gradients));
  return at::linalg_vector_norm(at::stack(norms), 2);
}

void clip_gradients(std::vector<Bucket>& buckets, double most, const OperatorSet& operators) {
  const at::NoGradGuard no_grad;
  const at::Tensor factor = (most / (gradient_norm(buckets, operators) + 1e-6)).clamp_max(1.);
  // On CUDA a multiplication by 1 costs less than waiting for the norm.
  if (factor.is_cpu() && factor.item<double>() == 1) return;
  for (Bucket& bucket : buckets) bucket.gradients.mul_(factor);
}

}  // namespace scalemark

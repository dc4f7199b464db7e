// Implements large-batch optimizers that scale the step of every matrix by the norm of its weights.
//
// LAMB (You et al. 2020, algorithm 2, phi = identity): u = Adam's direction with bias correction +
// weight_decay * w; w -= lr * |w| / |u| * u. LARS (You et al. 2017, algorithm 1): v = momentum * v
// + lr * eta * |w| / (|g| + weight_decay * |w|) * (g + weight_decay * w); w -= v.
//
// As in the published training runs, one-dimensional parameters have ratio 1 and no weight decay,
// and a matrix has ratio 1 where a norm is zero. A whole parameter lies in one bucket, so its norms
// need neither other buckets nor other ranks, which already hold the same gradient.
#include <ATen/ops/_fused_adam.h>

#include "train/bucket_parts.hpp"
#include "train/counted_steps.hpp"
#include "train/optimizer.hpp"

namespace scalemark {
namespace {

/// Sums up |x|^2 of tensors that come in parts: fp32 dot products, added in fp64 on their device,
/// since no step waits for a GPU.
class SquareSum {
 public:
  void add(const at::Tensor& x) {
    const at::Tensor squares = at::dot(x, x).to(at::kDouble);
    sum_ = sum_.defined() ? sum_ + squares : squares;
  }
  at::Tensor norm() const { return sum_.sqrt(); }  ///< fp64 scalar

 private:
  at::Tensor sum_;
};

/// Returns `ratio` of two norms, and 1 where either is zero.
at::Tensor where_positive(const at::Tensor& norm, const at::Tensor& other,
                          const at::Tensor& ratio) {
  return at::where((norm > 0).logical_and(other > 0), ratio, at::ones_like(ratio));
}

/// Updates every parameter separately, in parts. The norms are complete before a weight changes.
class LayerwiseRule : public UpdateRule {
 public:
  void update(Bucket& bucket) override {
    const at::NoGradGuard no_grad;
    for (const Slice& slice : bucket.slices)
      update(parts_of(bucket, slice.offset, slice.count,
                      bucket.weights.is_cpu() ? kPartElements : slice.count),
             slice.vector);
  }

 protected:
  /// Updates one parameter. With `vector`, weight decay and ratio are not applied.
  virtual void update(const std::vector<Part>& parts, bool vector) = 0;

  /// Returns an fp32 scalar on the device of the weights.
  at::Tensor rate(const at::Tensor& ratio) const { return (learning_rate_ * ratio).to(at::kFloat); }
  static at::Tensor one(const Part& like) { return at::ones({}, like.weights.options()); }

  /// Returns `value` in a step that changes the weights, and `otherwise` in one that does not.
  at::Tensor unless_skipped(const at::Tensor& value, double otherwise) const {
    return skip() ? at::where((*skip())[0] > 0, at::full_like(value, otherwise), value) : value;
  }
};

class Lamb : public LayerwiseRule {
 public:
  explicit Lamb(const ResolvedConfig& config)
      : beta1_(config.adam_beta1),
        beta2_(*config.adam_beta2),
        epsilon_(*config.adam_epsilon),
        weight_decay_(*config.weight_decay) {}
  int states() const override { return 2; }
  void begin_step(const at::Tensor& skip) override {
    LayerwiseRule::begin_step(skip);
    steps_.begin_step(skip);
  }
  void restart() override { steps_ = {}; }
  std::int64_t steps() const override { return steps_.count(); }

 protected:
  void update(const std::vector<Part>& parts, bool vector) override {
    SquareSum weights, directions;
    for (const Part& part : parts) {
      put_direction(part, vector ? 0 : weight_decay_);
      if (vector) continue;
      weights.add(part.weights);
      directions.add(part.gradients);
    }
    const at::Tensor step =
        unless_skipped(rate(vector ? one(parts[0]) : ratio(weights, directions)), 0);
    for (const Part& part : parts) {
      part.weights.addcmul_(part.gradients, step, -1);
      part.refresh_shadow();
    }
  }

 private:
  /// Writes u into the gradients, which are not needed any more, so that no buffer of their size is
  /// needed.
  void put_direction(const Part& part, double weight_decay) const {
    // A step of rate -1 from zero is Adam's direction. It stays zero where the step is skipped.
    const at::Tensor adam = at::zeros_like(part.weights);
    const at::Tensor step = steps_.on_device(part.weights.options());
    at::_fused_adam_(adam, part.gradients, part.state[0], part.state[1], {}, step, /*lr=*/-1.,
                     beta1_, beta2_, /*weight_decay=*/0., epsilon_, /*amsgrad=*/false,
                     /*maximize=*/false, /*grad_scale=*/{}, skip());
    at::Tensor place = part.gradients;
    at::add_out(place, adam, part.weights, weight_decay);
  }

  static at::Tensor ratio(const SquareSum& weights, const SquareSum& directions) {
    const at::Tensor w = weights.norm(), u = directions.norm();
    return where_positive(w, u, w / u);
  }

  double beta1_, beta2_, epsilon_, weight_decay_;
  CountedSteps steps_;
};

class Lars : public LayerwiseRule {
 public:
  explicit Lars(const ResolvedConfig& config)
      : momentum_(config.momentum),
        weight_decay_(*config.weight_decay),
        trust_(config.lars_trust_coefficient) {}
  int states() const override { return 1; }

 protected:
  void update(const std::vector<Part>& parts, bool vector) override {
    if (skip())  // they are not finite, and a product with them would not be either
      for (const Part& part : parts) at::Tensor(part.gradients).masked_fill_((*skip())[0] > 0, 0);
    const at::Tensor step = unless_skipped(rate(vector ? one(parts[0]) : ratio(parts)), 0),
                     moved = unless_skipped(one(parts[0]), 0),
                     kept = unless_skipped(momentum_ * one(parts[0]), 1);
    for (const Part& part : parts) {
      at::Tensor gradients = part.gradients, velocity = part.state[0];
      if (!vector) gradients.add_(part.weights, weight_decay_);
      velocity.mul_(kept).addcmul_(gradients, step);
      part.weights.addcmul_(velocity, moved, -1);
      part.refresh_shadow();
    }
  }

 private:
  at::Tensor ratio(const std::vector<Part>& parts) const {
    SquareSum weights, gradients;
    for (const Part& part : parts) {
      weights.add(part.weights);
      gradients.add(part.gradients);
    }
    const at::Tensor w = weights.norm(), g = gradients.norm();
    return where_positive(w, g, trust_ * w / (g + weight_decay_ * w));
  }

  double momentum_, weight_decay_, trust_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_lamb(const ResolvedConfig& config) {
  return std::make_unique<Lamb>(config);
}

std::unique_ptr<UpdateRule> make_lars(const ResolvedConfig& config) {
  return std::make_unique<Lars>(config);
}

}  // namespace scalemark

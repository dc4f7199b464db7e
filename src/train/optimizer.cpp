// Implements SGD, Adam and AdamW through LibTorch's fused operators (vectorised and threaded on the
// CPU, one kernel on CUDA); Adam on the CPU by a step of the operators' own where they have one,
// which writes the shadow in the same pass; large-batch optimizers that scale the step of every
// matrix by the norm of its weights; and clipping by the global norm.
//
// LAMB (You et al. 2020, algorithm 2, phi = identity): u = Adam's direction with bias correction +
// weight_decay * w; w -= lr * |w| / |u| * u. LARS (You et al. 2017, algorithm 1): v = momentum * v
// + lr * eta * |w| / (|g| + weight_decay * |w|) * (g + weight_decay * w); w -= v.
//
// As in the published training runs, one-dimensional parameters have ratio 1 and no weight decay,
// and a matrix has ratio 1 where a norm is zero. A whole parameter lies in one bucket, so its norms
// need neither other buckets nor other ranks, which already hold the same gradient.
#include "train/optimizer.hpp"

#include <ATen/ATen.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "train/arithmetic.hpp"
#include "train/flat_parameters.hpp"

namespace scalemark {

namespace {

/// Equally long pieces of a bucket's tensors, small enough for the caches, so that the later passes
/// of an optimizer find them there.
struct Part {
  at::Tensor weights, gradients;
  std::vector<at::Tensor> state;
  at::Tensor shadow;  ///< undefined in fp32

  /// Copies the weights to the shadow. Call it once they are final.
  void refresh_shadow() const {
    if (shadow.defined()) shadow.copy_(weights);
  }
};

/// The number of elements of a part on the CPU.
constexpr std::int64_t kPartElements = 1 << 18;

/// Returns the elements [begin, begin + count) of a bucket, in order, in parts of at most
/// `largest`.
std::vector<Part> parts_of(const Bucket& bucket, std::int64_t begin, std::int64_t count,
                           std::int64_t largest) {
  std::vector<Part> parts;
  for (const std::int64_t end = begin + count; begin < end; begin += largest) {
    const std::int64_t size = std::min(largest, end - begin);
    const auto piece = [&](const at::Tensor& flat) {
      return flat.defined() ? flat.narrow(0, begin, size) : flat;
    };
    Part& part = parts.emplace_back();
    part.weights = piece(bucket.weights);
    part.gradients = piece(bucket.gradients);
    part.shadow = piece(bucket.shadow);
    for (const at::Tensor& flat : bucket.state) part.state.push_back(piece(flat));
  }
  return parts;
}

/// Counts, on a device, the steps that changed the weights.
class CountedSteps {
 public:
  explicit CountedSteps(at::Device device)
      : taken_(at::zeros({}, at::TensorOptions().dtype(at::kFloat).device(device))) {}
  /// Counts a step. `skip` is that of UpdateRule::begin_step().
  void begin_step(const at::Tensor& skip) {
    if (skip.defined())
      taken_.add_(1 - skip[0]);
    else
      taken_.add_(1);
  }
  /// Returns the number of steps including the current one. Waits for the device.
  std::int64_t count() const { return taken_.item<std::int64_t>(); }
  /// Returns count() as an fp32 scalar on the device, which later steps change.
  const at::Tensor& on_device() const { return taken_; }
  void restart() { taken_.zero_(); }

 private:
  at::Tensor taken_;
};

/// A run of elements that are updated alike.
struct Run {
  std::int64_t begin, count;
  double weight_decay;
};

/// Returns runs of parameters, padding included, with weight decay and without it.
std::vector<Run> runs_of(const Bucket& bucket, double weight_decay) {
  std::vector<Run> runs;
  for (const Slice& slice : bucket.slices) {
    const double decay = slice.vector ? 0 : weight_decay;
    if (!runs.empty() && runs.back().weight_decay == decay) continue;
    if (!runs.empty()) runs.back().count = slice.offset - runs.back().begin;
    runs.push_back({slice.offset, bucket.count - slice.offset, decay});
  }
  return runs;
}

/// Updates every element independently, so a bucket is updated in runs as long as possible.
class ElementwiseRule : public UpdateRule {
 public:
  ElementwiseRule(double weight_decay, bool spares_vectors)
      : weight_decay_(weight_decay), spares_vectors_(spares_vectors) {}

  void update(Bucket& bucket) override {
    const at::NoGradGuard no_grad;
    const bool whole = refreshes_shadow(bucket.weights, bucket.shadow);
    const bool chunked = bucket.shadow.defined() && bucket.weights.is_cpu() && !whole;
    const auto runs = spares_vectors_ ? runs_of(bucket, weight_decay_)
                                      : std::vector{Run{0, bucket.count, weight_decay_}};
    for (const Run& run : runs)
      for (const Part& part :
           parts_of(bucket, run.begin, run.count, chunked ? kPartElements : run.count)) {
        update(part, run.weight_decay);
        if (!whole) part.refresh_shadow();
      }
  }

 protected:
  /// Returns whether update() of a part also writes its shadow.
  virtual bool refreshes_shadow(const at::Tensor& /*weights*/, const at::Tensor& /*shadow*/) const {
    return false;
  }
  virtual void update(const Part& part, double weight_decay) = 0;

 private:
  double weight_decay_;
  bool spares_vectors_;
};

class Sgd : public ElementwiseRule {
 public:
  Sgd(const ResolvedConfig& config, double momentum)
      : ElementwiseRule(*config.weight_decay, false), momentum_(momentum) {}
  int states() const override { return momentum_ > 0 ? 1 : 0; }

 protected:
  void update(const Part& part, double weight_decay) override {
    // The momentum starts as zero, so the first step is no special case.
    with_rate([&](const auto& rate) {
      at::_fused_sgd_(part.weights, part.gradients, part.state, weight_decay, momentum_, rate,
                      /*dampening=*/0., /*nesterov=*/false, /*maximize=*/false,
                      /*is_first_step=*/false, /*grad_scale=*/{}, skip());
    });
  }

 private:
  double momentum_;
};

class Adam : public ElementwiseRule {
 public:
  Adam(const ResolvedConfig& config, bool decoupled, at::Device device)
      : ElementwiseRule(*config.weight_decay, decoupled),
        decoupled_(decoupled),
        // Whose shadows are fp16; all buckets are updated alike.
        in_one_pass_(config.precision == Precision::fp16 ? nullptr
                                                         : operators_of(config).adam_step()),
        beta1_(config.adam_beta1),
        beta2_(*config.adam_beta2),
        epsilon_(*config.adam_epsilon),
        steps_(device) {}
  int states() const override { return 2; }
  void begin_step(const at::Tensor& skip) override {
    ElementwiseRule::begin_step(skip);
    steps_.begin_step(skip);
  }
  void restart() override { steps_.restart(); }
  std::int64_t steps() const override { return steps_.count(); }

 protected:
  bool refreshes_shadow(const at::Tensor& weights, const at::Tensor& shadow) const override {
    return in_one_pass_ && !skip() && !keeps_rate_on_device() && weights.is_cpu() &&
           (!shadow.defined() || shadow.scalar_type() == at::kBFloat16);
  }

  void update(const Part& part, double weight_decay) override {
    if (refreshes_shadow(part.weights, part.shadow)) return update_in_one_pass(part, weight_decay);
    const at::Tensor& step = steps_.on_device();
    with_rate([&](const auto& rate) {
      if (decoupled_)
        at::_fused_adamw_(part.weights, part.gradients, part.state[0], part.state[1], {}, step,
                          rate, beta1_, beta2_, weight_decay, epsilon_, /*amsgrad=*/false,
                          /*maximize=*/false, /*grad_scale=*/{}, skip());
      else
        at::_fused_adam_(part.weights, part.gradients, part.state[0], part.state[1], {}, step, rate,
                         beta1_, beta2_, weight_decay, epsilon_, /*amsgrad=*/false,
                         /*maximize=*/false, /*grad_scale=*/{}, skip());
    });
  }

 private:
  void update_in_one_pass(const Part& part, double weight_decay) const {
    const auto steps = static_cast<double>(steps_.count());
    const auto correction = [&](double beta) { return 1 - std::pow(beta, steps); };
    const AdamRates rates{
        .of_mean = static_cast<float>(1 - beta1_),
        .of_square = static_cast<float>(1 - beta2_),
        .decay = static_cast<float>(decoupled_ ? 0 : weight_decay),
        .shrink = static_cast<float>(decoupled_ ? 1 - learning_rate() * weight_decay : 1),
        .rate = static_cast<float>(learning_rate() / correction(beta1_)),
        .correction = static_cast<float>(std::sqrt(correction(beta2_))),
        .epsilon = static_cast<float>(epsilon_)};
    in_one_pass_({part.weights, part.gradients, part.state[0], part.state[1], part.shadow}, rates);
  }

  bool decoupled_;
  AdamStep in_one_pass_;  ///< null: LibTorch's
  double beta1_, beta2_, epsilon_;
  CountedSteps steps_;
};

/// Returns |x|^2 as an fp64 scalar: fp32 dot products of parts, added in fp64 on their device,
/// since no step waits for a GPU.
at::Tensor squares_of(const std::vector<Part>& parts, at::Tensor Part::*x) {
  at::Tensor sum;
  for (const Part& part : parts) {
    const at::Tensor squares = at::dot(part.*x, part.*x).to(at::kDouble);
    sum = sum.defined() ? sum + squares : squares;
  }
  return sum;
}

/// Returns `ratio` of two norms, and 1 where either is zero.
at::Tensor where_positive(const at::Tensor& norm, const at::Tensor& other,
                          const at::Tensor& ratio) {
  return at::where((norm > 0).logical_and(other > 0), ratio, at::ones_like(ratio));
}

/// Updates every parameter separately, in parts. The norms are complete before a weight changes; of
/// parameters that are divided among ranks, they are sums over them.
class LayerwiseRule : public UpdateRule {
 public:
  void update(Bucket& bucket) override {
    const at::NoGradGuard no_grad;
    const auto parts_of_slice = [&](const Slice& slice) {
      return parts_of(bucket, slice.offset, slice.count,
                      bucket.weights.is_cpu() ? kPartElements : slice.count);
    };
    if (!over_shards()) {
      for (const Slice& slice : bucket.slices) {
        const std::vector<Part> parts = parts_of_slice(slice);
        const at::Tensor squares = prepare(parts, slice.vector);
        finish(parts, slice.vector, squares);
      }
      return;
    }
    const auto& whole = bucket.whole.slices;
    const auto row_of = [&](const Slice& slice) {
      return std::ranges::find(whole, slice.parameter, &Slice::parameter) - whole.begin();
    };
    at::Tensor squares =
        at::zeros({std::ssize(whole), 2}, bucket.weights.options().dtype(at::kDouble));
    for (const Slice& slice : bucket.slices)
      if (const at::Tensor own = prepare(parts_of_slice(slice), slice.vector); own.defined())
        squares[row_of(slice)].copy_(own);
    squares = over_shards()(squares);
    for (const Slice& slice : bucket.slices)
      finish(parts_of_slice(slice), slice.vector, squares[row_of(slice)]);
  }

 protected:
  /// Begins the update of one parameter. Returns the sums of squares that its ratio needs, fp64
  /// [2], which is undefined for a `vector`: weight decay and ratio are not applied to it.
  virtual at::Tensor prepare(const std::vector<Part>& parts, bool vector) = 0;
  /// Ends it, with the sums over the whole parameter.
  virtual void finish(const std::vector<Part>& parts, bool vector, const at::Tensor& squares) = 0;

  /// Returns an fp32 scalar on the device of the weights.
  at::Tensor rate(const at::Tensor& ratio) const {
    at::Tensor rate;
    with_rate([&](const auto& learning_rate) { rate = (ratio * learning_rate).to(at::kFloat); });
    return rate;
  }
  static at::Tensor one(const Part& like) { return at::ones({}, like.weights.options()); }

  /// Returns `value` in a step that changes the weights, and `otherwise` in one that does not.
  at::Tensor unless_skipped(const at::Tensor& value, double otherwise) const {
    return skip() ? at::where((*skip())[0] > 0, at::full_like(value, otherwise), value) : value;
  }
};

class Lamb : public LayerwiseRule {
 public:
  Lamb(const ResolvedConfig& config, at::Device device)
      : beta1_(config.adam_beta1),
        beta2_(*config.adam_beta2),
        epsilon_(*config.adam_epsilon),
        weight_decay_(*config.weight_decay),
        steps_(device) {}
  int states() const override { return 2; }
  void begin_step(const at::Tensor& skip) override {
    LayerwiseRule::begin_step(skip);
    steps_.begin_step(skip);
  }
  void restart() override { steps_.restart(); }
  std::int64_t steps() const override { return steps_.count(); }

 protected:
  at::Tensor prepare(const std::vector<Part>& parts, bool vector) override {
    for (const Part& part : parts) put_direction(part, vector ? 0 : weight_decay_);
    if (vector) return {};
    return at::stack({squares_of(parts, &Part::weights), squares_of(parts, &Part::gradients)});
  }
  void finish(const std::vector<Part>& parts, bool vector, const at::Tensor& squares) override {
    const at::Tensor step = unless_skipped(rate(vector ? one(parts[0]) : ratio(squares)), 0);
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
    at::_fused_adam_(adam, part.gradients, part.state[0], part.state[1], {}, steps_.on_device(),
                     /*lr=*/-1., beta1_, beta2_, /*weight_decay=*/0., epsilon_, /*amsgrad=*/false,
                     /*maximize=*/false, /*grad_scale=*/{}, skip());
    at::Tensor place = part.gradients;
    at::add_out(place, adam, part.weights, weight_decay);
  }

  static at::Tensor ratio(const at::Tensor& squares) {
    const at::Tensor w = squares[0].sqrt(), u = squares[1].sqrt();
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
  at::Tensor prepare(const std::vector<Part>& parts, bool vector) override {
    if (skip())  // they are not finite, and a product with them would not be either
      for (const Part& part : parts) at::Tensor(part.gradients).masked_fill_((*skip())[0] > 0, 0);
    if (vector) return {};
    return at::stack({squares_of(parts, &Part::weights), squares_of(parts, &Part::gradients)});
  }
  void finish(const std::vector<Part>& parts, bool vector, const at::Tensor& squares) override {
    const at::Tensor step = unless_skipped(rate(vector ? one(parts[0]) : ratio(squares)), 0),
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
  at::Tensor ratio(const at::Tensor& squares) const {
    const at::Tensor w = squares[0].sqrt(), g = squares[1].sqrt();
    return where_positive(w, g, trust_ * w / (g + weight_decay_ * w));
  }

  double momentum_, weight_decay_, trust_;
};

std::unique_ptr<UpdateRule> rule_of(const ResolvedConfig& config, at::Device device) {
  switch (*config.optimizer) {
    case Optimizer::momentum:
      return std::make_unique<Sgd>(config, config.momentum);
    case Optimizer::adam:
      return std::make_unique<Adam>(config, false, device);
    case Optimizer::adamw:
      return std::make_unique<Adam>(config, true, device);
    case Optimizer::lamb:
      return std::make_unique<Lamb>(config, device);
    case Optimizer::lars:
      return std::make_unique<Lars>(config);
    case Optimizer::sgd:
      break;
  }
  return std::make_unique<Sgd>(config, 0);
}

}  // namespace

std::unique_ptr<UpdateRule> make_update_rule(const ResolvedConfig& config,
                                             std::optional<at::Device> behind_host) {
  std::unique_ptr<UpdateRule> rule = rule_of(config, behind_host.value_or(at::kCPU));
  if (behind_host) rule->keep_rate_on(*behind_host);
  rule->set_learning_rate(*config.init_learning_rate);
  return rule;
}

at::Tensor gradient_norm(const std::vector<Bucket>& buckets, const OperatorSet& operators) {
  std::vector<at::Tensor> norms;
  for (const Bucket& bucket : buckets) norms.push_back(operators.norm(bucket.gradients));
  return at::linalg_vector_norm(at::stack(norms), 2);
}

void clip_gradients(std::vector<Bucket>& buckets, double most, const OperatorSet& operators,
                    bool may_wait, const SumOverShards& over_shards) {
  const at::NoGradGuard no_grad;
  const at::Tensor norm = over_shards(gradient_norm(buckets, operators).square()).sqrt();
  const at::Tensor factor = (most / (norm + 1e-6)).clamp_max(1.);
  // On a GPU a multiplication by 1 costs less than waiting for the norm.
  if (may_wait && factor.item<double>() == 1) return;
  for (Bucket& bucket : buckets) bucket.gradients.mul_(factor);
}

}  // namespace scalemark

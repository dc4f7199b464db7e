// Divides the loops of batch normalisation among threads, and defines the autograd function around
// them.
#include "models/kernels/batch_norm.hpp"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "models/kernels/as_operator.hpp"
#include "models/kernels/batch_norm_loops.hpp"

namespace scalemark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Elements for which another thread is worth it.
constexpr std::int64_t kGrain = 16384;

RowShape shape_of_rows(const at::Tensor& x) { return {x.numel() / x.size(1), x.size(1)}; }

at::Tensor channels_last(const at::Tensor& x) {
  return x.contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor empty_like_rows(const at::Tensor& x) {
  return at::empty_like(x, x.options(), at::MemoryFormat::ChannelsLast);
}

/// Equal parts of the rows, as many as there are threads to take one each.
struct Parts {
  std::int64_t count, rows;

  explicit Parts(RowShape shape)
      : count(std::clamp<std::int64_t>(shape.rows * shape.channels / kGrain, 1,
                                       std::min<std::int64_t>(at::get_num_threads(), shape.rows))),
        rows(shape.rows) {}

  std::int64_t first(std::int64_t part) const { return rows * part / count; }
  std::int64_t size(std::int64_t part) const { return first(part + 1) - first(part); }

  /// Calls work(part, first row, rows) for each.
  template <typename Work>
  void run(const Work& work) const {
    at::parallel_for(0, count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) work(part, first(part), size(part));
    });
  }
};

/// Two sums of every channel and part, and what the loops need to make them.
class PartSums {
 public:
  PartSums(std::int64_t parts, std::int64_t channels)
      : channels_(channels),
        sums_(std::make_unique_for_overwrite<double[]>(2 * parts * channels)),
        scratch_(std::make_unique_for_overwrite<float[]>(kScratchPerChannel * parts * channels)) {}
  double* first(std::int64_t part) { return &sums_[2 * part * channels_]; }
  double* second(std::int64_t part) { return first(part) + channels_; }
  float* scratch(std::int64_t part) { return &scratch_[kScratchPerChannel * part * channels_]; }

 private:
  std::int64_t channels_;
  std::unique_ptr<double[]> sums_;
  std::unique_ptr<float[]> scratch_;
};

/// fp32 [4, channels], kept for the way back.
struct Statistics {
  float *mean, *inverse_deviation, *scale, *shift;

  explicit Statistics(const at::Tensor& rows) : mean(rows.mutable_data_ptr<float>()) {
    const std::int64_t channels = rows.size(1);
    inverse_deviation = mean + channels;
    scale = inverse_deviation + channels;
    shift = scale + channels;
  }
  ChannelScales scales() const { return {mean, scale, shift}; }
};

struct Rates {
  double momentum, epsilon;
};

/// Mean and variance of a channel over all rows.
struct Moments {
  double mean = 0, squares = 0;

  void add(double rows, double of_mean, double of_squares, double added_rows) {
    const double delta = of_mean - mean, share = added_rows / (rows + added_rows);
    squares += of_squares + delta * delta * rows * share;
    mean += delta * share;
  }
};

void move_running(at::Tensor& running, std::int64_t channel, double momentum, double value) {
  float& place = running.mutable_data_ptr<float>()[channel];
  place = static_cast<float>(momentum * value + (1 - momentum) * place);
}

/// Means and deviations of `x` into `to`; moves the layer's running statistics.
template <typename T>
void find_statistics(const at::Tensor& x, BatchNormTensors layer, Rates rates,
                     const Statistics& to) {
  const RowShape shape = shape_of_rows(x);
  const Parts parts(shape);
  PartSums sums(parts.count, shape.channels);
  const T* const from = x.const_data_ptr<T>();
  parts.run([&](std::int64_t part, std::int64_t first, std::int64_t rows) {
    run(MomentsOfRows<T>{from + first * shape.channels,
                         {rows, shape.channels},
                         sums.first(part),
                         sums.second(part),
                         sums.scratch(part)});
  });
  const float* const gamma = layer.weight.const_data_ptr<float>();
  const float* const beta = layer.bias.const_data_ptr<float>();
  const auto count = static_cast<double>(shape.rows);
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    Moments all;
    for (std::int64_t part = 0; part < parts.count; ++part)
      all.add(static_cast<double>(parts.first(part)), sums.first(part)[c], sums.second(part)[c],
              static_cast<double>(parts.size(part)));
    const double inverse = 1 / std::sqrt(all.squares / count + rates.epsilon);
    to.mean[c] = static_cast<float>(all.mean);
    to.inverse_deviation[c] = static_cast<float>(inverse);
    to.scale[c] = static_cast<float>(inverse * gamma[c]);
    to.shift[c] = beta[c];
    move_running(layer.running_mean, c, rates.momentum, all.mean);
    move_running(layer.running_variance, c, rates.momentum, all.squares / (count - 1));
  }
}

template <typename T>
at::Tensor normalised(const at::Tensor& x, const at::Tensor& residual, const Statistics& statistics,
                      bool relu) {
  const RowShape shape = shape_of_rows(x);
  at::Tensor y = empty_like_rows(x);
  const T* const from = x.const_data_ptr<T>();
  const T* const added = residual.defined() ? residual.const_data_ptr<T>() : nullptr;
  T* const to = y.mutable_data_ptr<T>();
  Parts(shape).run([&](std::int64_t, std::int64_t first, std::int64_t rows) {
    const std::int64_t at = first * shape.channels;
    run(NormaliseRows<T>{from + at,
                         added ? added + at : nullptr,
                         to + at,
                         {rows, shape.channels},
                         statistics.scales(),
                         relu});
  });
  return y;
}

struct Gradients {
  at::Tensor x, weight, bias, residual;
};

/// Those of gamma and beta; returns slope and offset of InputGradientOfRows, [2, channels].
std::unique_ptr<float[]> gradients_of_channels(PartSums& sums, const Parts& parts, RowShape shape,
                                               const Statistics& statistics, Gradients& made) {
  const std::int64_t channels = shape.channels;
  auto constants = std::make_unique_for_overwrite<float[]>(2 * channels);
  float *const slope = constants.get(), *const offset = slope + channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    double sum = 0, product = 0;
    for (std::int64_t part = 0; part < parts.count; ++part) {
      sum += sums.first(part)[c];
      product += sums.second(part)[c];
    }
    const double inverse = statistics.inverse_deviation[c];
    const double share = statistics.scale[c] / static_cast<double>(shape.rows);
    slope[c] = static_cast<float>(-share * product * inverse * inverse);
    offset[c] = static_cast<float>(-share * sum);
    made.weight.mutable_data_ptr<float>()[c] = static_cast<float>(product * inverse);
    made.bias.mutable_data_ptr<float>()[c] = static_cast<float>(sum);
  }
  return constants;
}

/// `y`: defined where there is a residual.
template <typename T>
Gradients gradients_of(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& y,
                       const Statistics& statistics, bool relu) {
  const RowShape shape = shape_of_rows(x);
  const std::int64_t channels = shape.channels;
  const Parts parts(shape);
  PartSums sums(parts.count, channels);
  const Mask mask = !relu ? Mask::none : y.defined() ? Mask::output : Mask::input;
  Gradients made{empty_like_rows(x), at::empty({channels}, at::kFloat),
                 at::empty({channels}, at::kFloat),
                 mask == Mask::output ? empty_like_rows(x) : at::Tensor()};
  const T *const given = dy.const_data_ptr<T>(), *const from = x.const_data_ptr<T>();
  const T* const out = y.defined() ? y.const_data_ptr<T>() : nullptr;
  T* const masked = mask == Mask::output ? made.residual.mutable_data_ptr<T>() : nullptr;
  parts.run([&](std::int64_t part, std::int64_t first, std::int64_t rows) {
    const std::int64_t at = first * channels;
    run(GradientSumsOfRows<T>{given + at,
                              from + at,
                              out ? out + at : nullptr,
                              masked ? masked + at : nullptr,
                              {rows, channels},
                              statistics.scales(),
                              mask,
                              sums.first(part),
                              sums.second(part),
                              sums.scratch(part)});
  });
  const auto terms = gradients_of_channels(sums, parts, shape, statistics, made);
  const T* const passed = masked ? masked : given;
  T* const to = made.x.mutable_data_ptr<T>();
  parts.run([&](std::int64_t, std::int64_t first, std::int64_t rows) {
    const std::int64_t at = first * channels;
    run(InputGradientOfRows<T>{passed + at,
                               from + at,
                               to + at,
                               {rows, channels},
                               statistics.scales(),
                               terms.get(),
                               terms.get() + channels,
                               mask == Mask::input});
  });
  if (!relu) made.residual = dy;
  return made;
}

class BatchNorm : public torch::autograd::Function<BatchNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const std::optional<at::Tensor>& residual,
                            const BatchNormTensors& layer, Rates rates, bool relu) {
    const at::Tensor kept = at::empty({4, x.size(1)}, at::kFloat);
    const Statistics statistics(kept);
    const at::Tensor added = residual ? channels_last(*residual) : at::Tensor();
    const bool wide = x.scalar_type() == at::kFloat;
    const BatchNormTensors tensors{weight, bias, layer.running_mean, layer.running_variance};
    wide ? find_statistics<float>(x, tensors, rates, statistics)
         : find_statistics<c10::BFloat16>(x, tensors, rates, statistics);
    const at::Tensor y = wide ? normalised<float>(x, added, statistics, relu)
                              : normalised<c10::BFloat16>(x, added, statistics, relu);
    context->save_for_backward({x, residual && relu ? y : at::Tensor(), kept});
    context->saved_data["relu"] = relu;
    context->saved_data["residual"] = residual.has_value();
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const bool relu = context->saved_data["relu"].toBool();
    const at::Tensor dy = channels_last(gradients[0]);
    const Statistics statistics(saved[2]);
    const Gradients made = x.scalar_type() == at::kFloat
                               ? gradients_of<float>(dy, x, saved[1], statistics, relu)
                               : gradients_of<c10::BFloat16>(dy, x, saved[1], statistics, relu);
    const bool residual = context->saved_data["residual"].toBool();
    return {made.x, made.weight, made.bias, residual ? made.residual : at::Tensor(), {}, {}, {}};
  }
};

}  // namespace

bool can_fuse_batch_norm(const at::Tensor& x) {
  return suits_loops(x) && x.dim() == 4 && x.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         x.numel() > x.size(1);
}

at::Tensor batch_norm_fused(const at::Tensor& x, const BatchNormTensors& layer, double momentum,
                            double epsilon, bool relu, const at::Tensor& residual) {
  RECORD_FUNCTION("scalemark::batch_norm", std::vector<c10::IValue>({x}));  // for traces
  return BatchNorm::apply(x, layer.weight, layer.bias,
                          residual.defined() ? std::optional(residual) : std::nullopt, layer,
                          Rates{momentum, epsilon}, relu);
}

}  // namespace scalemark

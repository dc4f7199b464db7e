// Computes root mean square normalisation, and layer normalisation of a sum with dropout, in one
// pass over memory in each direction. A row is small enough to stay in cache between the loops that
// sum and the one that writes.
#include <ATen/Parallel.h>

#include <cmath>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {

/// A row and what is computed of it: y = (x - mean) root weight + bias with root = 1 / sqrt(mean((x
/// - mean)^2) + epsilon). Without a bias the mean is 0.
template <typename T>
struct NormRow {
  const T* x;
  const float *weight, *bias;
  std::int64_t width;
  float epsilon, mean, root;
  // Forward: x becomes `added_to` + factors `branch`, where there is a branch.
  const T *added_to, *branch;
  const float* factors;  ///< of dropout, or null; backward too
  T *sum, *y;
  // Backward.
  const T* gradient_of_y;
  T *gradient_of_x, *gradient_of_branch;         ///< the latter only with factors
  float *gradient_of_weight, *gradient_of_bias;  ///< are added to
};
/// Writes y, and the sum, and sets mean and root.
void normalise(NormRow<float>& row);
void normalise(NormRow<c10::BFloat16>& row);
/// Writes the gradients: with g = dy weight and n = (x - mean) root, dx = root (g - mean(g) - n
/// mean(g n)), dweight += dy n and dbias += dy. Without a bias there is no mean(g).
void normalise_backward(const NormRow<float>& row);
void normalise_backward(const NormRow<c10::BFloat16>& row);

namespace {

template <typename T>
SCALEMARK_INLINE void add_branch(const NormRow<T>& row) {
  const T *const x = row.added_to, *const branch = row.branch;
  T* const sum = row.sum;
  if (const float* const factors = row.factors) {
    SCALEMARK_INDEPENDENT
    for (std::int64_t i = 0; i < row.width; ++i)
      store(sum[i], load(x[i]) + load(branch[i]) * factors[i]);
  } else {
    SCALEMARK_INDEPENDENT
    for (std::int64_t i = 0; i < row.width; ++i) store(sum[i], load(x[i]) + load(branch[i]));
  }
}

template <typename T, bool centred>
SCALEMARK_INLINE void forward_of(NormRow<T>& row) {
  const T* const x = row.x;
  T* const y = row.y;
  const float *const weight = row.weight, *const bias = row.bias;
  const auto width = static_cast<float>(row.width);
  float mean = 0;
  if constexpr (centred)
    mean = lane_sum(row.width, [x](std::int64_t i) { return load(x[i]); }) / width;
  const float squares = lane_sum(row.width, [x, mean](std::int64_t i) {
    const float value = load(x[i]) - mean;
    return value * value;
  });
  const float root = 1.f / std::sqrt(squares / width + row.epsilon);
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < row.width; ++i) {
    const float value = (load(x[i]) - mean) * root * weight[i];
    store(y[i], centred ? value + bias[i] : value);
  }
  row.mean = mean;
  row.root = root;
}

template <typename T, bool centred>
SCALEMARK_INLINE void backward_of(const NormRow<T>& row) {
  const T *const x = row.x, *const dy = row.gradient_of_y;
  T* const dx = row.gradient_of_x;
  float *const dweight = row.gradient_of_weight, *const dbias = row.gradient_of_bias;
  const float *const weight = row.weight, root = row.root, mean = row.mean;
  const auto width = static_cast<float>(row.width);
  const float with_x = lane_sum(
      row.width, [=](std::int64_t i) { return load(dy[i]) * weight[i] * (load(x[i]) - mean); });
  float of_all = 0;
  if constexpr (centred)
    of_all = lane_sum(row.width, [=](std::int64_t i) { return load(dy[i]) * weight[i]; }) / width;
  const float of_x = with_x / width * root * root;
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < row.width; ++i) {
    const float gradient = load(dy[i]), value = load(x[i]) - mean;
    dweight[i] += gradient * value * root;
    if constexpr (centred) dbias[i] += gradient;
    store(dx[i], root * (gradient * weight[i] - of_all - value * of_x));
  }
  const float* const factors = row.factors;
  if (!factors) return;
  T* const dbranch = row.gradient_of_branch;
  SCALEMARK_INDEPENDENT
  for (std::int64_t i = 0; i < row.width; ++i) store(dbranch[i], load(dx[i]) * factors[i]);
}

template <typename T>
SCALEMARK_INLINE void forward_row(NormRow<T>& row) {
  if (row.branch) add_branch(row);
  row.bias ? forward_of<T, true>(row) : forward_of<T, false>(row);
}

template <typename T>
SCALEMARK_INLINE void backward_row(const NormRow<T>& row) {
  row.bias ? backward_of<T, true>(row) : backward_of<T, false>(row);
}

}  // namespace

SCALEMARK_VECTOR_LOOP void normalise(NormRow<float>& row) { forward_row(row); }
SCALEMARK_VECTOR_LOOP void normalise(NormRow<c10::BFloat16>& row) { forward_row(row); }
SCALEMARK_VECTOR_LOOP void normalise_backward(const NormRow<float>& row) { backward_row(row); }
SCALEMARK_VECTOR_LOOP void normalise_backward(const NormRow<c10::BFloat16>& row) {
  backward_row(row);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The rows whose parameter gradients are summed together, whatever the number of threads.
constexpr std::int64_t kRowsOfABlock = 64;

/// What normalises rows: fp32 parameters [width], and the dropout of what is added to the rows.
struct Norm {
  at::Tensor weight, bias;  ///< without a bias: root mean square normalisation
  float epsilon = 0;
  std::optional<DropFactors> factors;

  std::int64_t width() const { return weight.size(0); }
  std::int64_t blocks(const at::Tensor& x) const {
    return divided_up(x.numel() / width(), kRowsOfABlock);
  }
  template <typename T>
  NormRow<T> row() const {
    NormRow<T> row{};
    row.weight = weight.const_data_ptr<float>();
    row.bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
    row.width = width();
    row.epsilon = epsilon;
    return row;
  }
  const float* factors_of(std::int64_t row, std::vector<float>& buffer) const {
    return factors ? factors->of(row * width(), width(), buffer) : nullptr;
  }
};

/// Returns null for a tensor that there is not.
template <typename T>
T* values_of(at::Tensor& x) {
  return x.defined() ? x.mutable_data_ptr<T>() : nullptr;
}

/// Returns where something of a row is, from where that of the first row is.
template <typename T>
T* moved(T* first, std::int64_t by) {
  return first ? first + by : nullptr;
}

/// Normalises the rows of x, or of sum = x + dropout(branch). `statistics` are mean and root of
/// each row.
template <typename T>
void forward_rows(const Norm& norm, const at::Tensor& x, const at::Tensor& branch, at::Tensor& sum,
                  at::Tensor& y, at::Tensor& statistics) {
  const NormRow<T> first = norm.row<T>();
  const T* const from = x.const_data_ptr<T>();
  const T* const added = branch.defined() ? branch.const_data_ptr<T>() : nullptr;
  T *const to = y.mutable_data_ptr<T>(), *const total = added ? values_of<T>(sum) : nullptr;
  auto* const found = statistics.mutable_data_ptr<float>();
  at::parallel_for(0, statistics.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> buffer;
    for (std::int64_t i = begin; i < end; ++i) {
      NormRow<T> row = first;
      const std::int64_t place = i * row.width;
      row.added_to = from + place;
      row.branch = moved(added, place);
      row.sum = moved(total, place);
      row.x = added ? row.sum : row.added_to;
      row.factors = norm.factors_of(i, buffer);
      row.y = to + place;
      normalise(row);
      found[2 * i] = row.mean;
      found[2 * i + 1] = row.root;
    }
  });
}

/// Gradients of a normalisation: those of x, of the branch, which is undefined where it is that of
/// x, and for each block of rows those of the parameters, of which that of a missing bias is
/// undefined.
struct NormGradients {
  at::Tensor x, branch, weights, biases;
};

template <typename T>
void backward_rows(const Norm& norm, const at::Tensor& dy, const at::Tensor& x,
                   const at::Tensor& statistics, NormGradients& to) {
  const NormRow<T> first = norm.row<T>();
  const T *const from = x.const_data_ptr<T>(), *const upstream = dy.const_data_ptr<T>();
  T *const dx = values_of<T>(to.x), *const dbranch = values_of<T>(to.branch);
  float *const dweights = values_of<float>(to.weights), *const dbiases =
                                                            values_of<float>(to.biases);
  const auto* const found = statistics.const_data_ptr<float>();
  at::parallel_for(0, to.weights.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> buffer;
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t last = std::min((block + 1) * kRowsOfABlock, statistics.size(0));
      for (std::int64_t i = block * kRowsOfABlock; i < last; ++i) {
        NormRow<T> row = first;
        const std::int64_t place = i * row.width;
        row.x = from + place;
        row.gradient_of_y = upstream + place;
        row.gradient_of_x = dx + place;
        row.gradient_of_branch = moved(dbranch, place);
        row.factors = norm.factors_of(i, buffer);
        row.gradient_of_weight = dweights + block * row.width;
        row.gradient_of_bias = moved(dbiases, block * row.width);
        row.mean = found[2 * i];
        row.root = found[2 * i + 1];
        normalise_backward(row);
      }
    }
  });
}

class Normalised : public torch::autograd::Function<Normalised> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const std::optional<at::Tensor>& added, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, double epsilon, std::int64_t key,
                            double probability) {
    const at::Tensor x = input.contiguous();
    const at::Tensor branch = added ? added->contiguous() : at::Tensor();
    Norm norm{weight, bias.value_or(at::Tensor()), static_cast<float>(epsilon), std::nullopt};
    if (probability > 0) norm.factors.emplace(key, probability);
    at::Tensor sum = branch.defined() ? at::empty_like(x) : x;
    at::Tensor statistics = at::empty({x.numel() / norm.width(), 2}, at::kFloat);
    context->save_for_backward({sum, weight, norm.bias, statistics});
    context->saved_data["has_branch"] = branch.defined();
    context->saved_data["key"] = key;
    context->saved_data["probability"] = probability;
    return as_operator(bias ? "scalemark::layer_norm" : "scalemark::rms_norm", {x}, [&] {
      at::Tensor y = at::empty_like(x);
      x.scalar_type() == at::kFloat
          ? forward_rows<float>(norm, x, branch, sum, y, statistics)
          : forward_rows<c10::BFloat16>(norm, x, branch, sum, y, statistics);
      return y;
    });
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &statistics = saved[3];
    Norm norm{saved[1], saved[2], 0, std::nullopt};
    const double probability = context->saved_data["probability"].toDouble();
    if (probability > 0) norm.factors.emplace(context->saved_data["key"].toInt(), probability);
    const at::Tensor dy = gradients[0].contiguous();
    const auto sums = [&] { return at::zeros({norm.blocks(x), norm.width()}, at::kFloat); };
    NormGradients of{at::empty_like(x), norm.factors ? at::empty_like(x) : at::Tensor(), sums(),
                     norm.bias.defined() ? sums() : at::Tensor()};
    as_operator(
        norm.bias.defined() ? "scalemark::layer_norm_backward" : "scalemark::rms_norm_backward",
        {dy, x}, [&] {
          x.scalar_type() == at::kFloat ? backward_rows<float>(norm, dy, x, statistics, of)
                                        : backward_rows<c10::BFloat16>(norm, dy, x, statistics, of);
          return of.x;
        });
    at::Tensor dbranch;
    if (context->saved_data["has_branch"].toBool()) dbranch = norm.factors ? of.branch : of.x;
    const at::Tensor dbias = norm.bias.defined() ? of.biases.sum(0) : at::Tensor();
    return {of.x, dbranch, of.weights.sum(0), dbias, {}, {}, {}};
  }
};

bool suits_norm(const at::Tensor& x, const at::Tensor& parameter) {
  return suits_loops(x) && parameter.scalar_type() == at::kFloat && parameter.is_contiguous();
}

}  // namespace

bool suits_rms_norm(const at::Tensor& x, const at::Tensor& weight) { return suits_norm(x, weight); }

at::Tensor rms_norm_fused(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return Normalised::apply(x, std::nullopt, weight, std::nullopt, epsilon, 0, 0.);
}

bool suits_norm_of_sum(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                       const at::Tensor& bias) {
  return suits_norm(x, weight) && suits_norm(x, bias) &&
         (!branch.defined() ||
          (branch.sizes() == x.sizes() && branch.scalar_type() == x.scalar_type()));
}

at::Tensor norm_of_sum_fused(const at::Tensor& x, const at::Tensor& branch,
                             double dropout_probability, const at::Tensor& weight,
                             const at::Tensor& bias, double epsilon) {
  const double dropped = branch.defined() ? dropout_probability : 0;
  return Normalised::apply(x, branch.defined() ? std::optional(branch) : std::nullopt, weight, bias,
                           epsilon, dropped > 0 ? draw_dropout_key() : 0, dropped);
}

}  // namespace scalemark

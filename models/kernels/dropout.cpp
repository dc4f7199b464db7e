// Draws masks from a counter, two of them from each hash, and defines the autograd functions around
// the loops.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <mutex>

#include "models/kernels/kernels.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The number of elements that share a run of hashes. The low halves decide the first 32, the high
/// halves the others.
constexpr std::int64_t kBlock = 64;

DropMask make_drop_mask(std::uint64_t key, double probability) {
  const auto threshold = static_cast<std::uint32_t>(std::lround(probability * 65536));
  return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32), threshold,
          static_cast<float>(65536. / (65536. - threshold))};
}

/// Returns 32 well-mixed bits of a counter by two rounds of xorshift and multiply, keyed before
/// each.
inline std::uint32_t hash(std::uint32_t x, const DropMask& mask) {
  x += mask.key0;
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= mask.key1;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ x >> 16;
}

/// Drops elements of the blocks [begin, end) of n elements. With `relu` negative elements are
/// dropped too.
template <typename T, bool relu>
[[gnu::always_inline]] inline void drop_blocks(const T* in, T* out, std::int64_t begin,
                                               std::int64_t end, std::int64_t n,
                                               const DropMask& mask) {
  for (std::int64_t block = begin; block < end; ++block) {
    const std::int64_t first = block * kBlock;
    const std::int64_t low = std::min(kBlock / 2, n - first);
    const std::int64_t high = std::min(kBlock / 2, n - first - kBlock / 2);
    std::uint32_t bits[kBlock / 2];
    const auto counter = static_cast<std::uint32_t>(block * (kBlock / 2));
    for (std::uint32_t j = 0; j < kBlock / 2; ++j) bits[j] = hash(counter + j, mask);
    const auto one = [&](std::int64_t i, std::uint32_t draw) {
      const float x = load(in[i]);
      const bool keep = draw >= mask.threshold && (!relu || x > 0);
      store(out[i], keep ? x * mask.scale : 0.f);
    };
    for (std::int64_t j = 0; j < low; ++j) one(first + j, bits[j] & 0xffff);
    for (std::int64_t j = 0; j < high; ++j) one(first + kBlock / 2 + j, bits[j] >> 16);
  }
}

/// Writes the factors of the elements of the blocks [begin, end).
SCALEMARK_VECTOR_LOOP void write_factors(float* out, std::int64_t begin, std::int64_t end,
                                         DropMask mask) {
  for (std::int64_t block = begin; block < end; ++block, out += kBlock) {
    const auto counter = static_cast<std::uint32_t>(block * (kBlock / 2));
    for (std::uint32_t j = 0; j < kBlock / 2; ++j) {
      const std::uint32_t draws = hash(counter + j, mask);
      out[j] = (draws & 0xffff) < mask.threshold ? 0.f : mask.scale;
      out[kBlock / 2 + j] = draws >> 16 < mask.threshold ? 0.f : mask.scale;
    }
  }
}

#define SCALEMARK_DROP(name, type, relu)                                                           \
  SCALEMARK_VECTOR_LOOP void name(const type* in, type* out, std::int64_t begin, std::int64_t end, \
                                  std::int64_t n, DropMask mask) {                                 \
    drop_blocks<type, relu>(in, out, begin, end, n, mask);                                         \
  }
SCALEMARK_DROP(drop_f32, float, false)
SCALEMARK_DROP(drop_bf16, c10::BFloat16, false)
SCALEMARK_DROP(relu_drop_f32, float, true)
SCALEMARK_DROP(relu_drop_bf16, c10::BFloat16, true)
#undef SCALEMARK_DROP

template <typename T>
using DropLoop = void (*)(const T*, T*, std::int64_t, std::int64_t, std::int64_t, DropMask);

template <typename T>
void drop_all(DropLoop<T> loop, const at::Tensor& in, at::Tensor& out, const DropMask& mask) {
  const std::int64_t n = in.numel(), blocks = (n + kBlock - 1) / kBlock;
  const T* from = in.const_data_ptr<T>();
  T* to = out.mutable_data_ptr<T>();
  at::parallel_for(0, blocks, 512, [&](std::int64_t begin, std::int64_t end) {
    loop(from, to, begin, end, n, mask);
  });
}

at::Tensor masked(const at::Tensor& x, const DropMask& mask, bool relu) {
  const at::Tensor in = x.contiguous();
  at::Tensor out = at::empty_like(in);
  RECORD_FUNCTION("scalemark::dropout", std::vector<c10::IValue>({in}));  // for traces
  if (in.scalar_type() == at::kFloat)
    drop_all<float>(relu ? relu_drop_f32 : drop_f32, in, out, mask);
  else
    drop_all<c10::BFloat16>(relu ? relu_drop_bf16 : drop_bf16, in, out, mask);
  return out;
}

class Dropout : public torch::autograd::Function<Dropout> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, std::int64_t key,
                            double probability) {
    context->saved_data["key"] = key;
    context->saved_data["probability"] = probability;
    return masked(x, make_drop_mask(static_cast<std::uint64_t>(key), probability), false);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto key = static_cast<std::uint64_t>(context->saved_data["key"].toInt());
    const double probability = context->saved_data["probability"].toDouble();
    return {masked(gradients[0], make_drop_mask(key, probability), false), {}, {}};
  }
};

/// The output shows which elements passed, so the backward pass needs no mask.
class ReluDropout : public torch::autograd::Function<ReluDropout> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, std::int64_t key,
                            double probability) {
    const DropMask mask = make_drop_mask(static_cast<std::uint64_t>(key), probability);
    const at::Tensor y = masked(x, mask, true);
    context->save_for_backward({y});
    context->saved_data["scale"] = static_cast<double>(mask.scale);
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor y = context->get_saved_variables()[0];
    const double scale = context->saved_data["scale"].toDouble();
    return {at::threshold_backward(gradients[0], y, 0).mul_(scale), {}, {}};
  }
};

}  // namespace

std::int64_t draw_dropout_key() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return static_cast<std::int64_t>(
      at::check_generator<at::CPUGeneratorImpl>(generator)->random64());
}

DropFactors::DropFactors(std::int64_t key, double probability)
    : mask_(make_drop_mask(static_cast<std::uint64_t>(key), probability)) {}

const float* DropFactors::of(std::int64_t first, std::int64_t count,
                             std::vector<float>& buffer) const {
  const std::int64_t begin = first / kBlock, end = divided_up(first + count, kBlock);
  buffer.resize(static_cast<std::size_t>((end - begin) * kBlock));
  write_factors(buffer.data(), begin, end, mask_);
  return buffer.data() + (first - begin * kBlock);
}

at::Tensor dropout(const at::Tensor& x, double probability) {
  if (probability == 0) return x;
  return suits_loops(x) ? Dropout::apply(x, draw_dropout_key(), probability)
                        : at::dropout(x, probability, true);
}

at::Tensor relu_dropout(const at::Tensor& x, double probability) {
  if (probability == 0) return at::relu(x);
  return suits_loops(x) ? ReluDropout::apply(x, draw_dropout_key(), probability)
                        : at::dropout(at::relu(x), probability, true);
}

}  // namespace scalemark

// Implements the loops over the classes of a row. Sums are kept in as many lanes as the widest
// vectors have, so that they do not depend on the processor.
#include "models/kernels/cross_entropy_loops.hpp"

#include <limits>

#include "models/kernels/elements.hpp"
#include "models/kernels/exponential.hpp"
#include "models/kernels/loops.hpp"
#include "vector_loop.hpp"

namespace scalemark {
namespace {

constexpr std::int64_t kLanes = 64;

/// lane[i % kLanes] = step(lane, value of i) over the row.
template <typename T, typename Step>
SCALEMARK_INLINE void fold(const T* x, std::int64_t count, float* lane, const Step& step) {
  std::int64_t c = 0;
  for (; c + kLanes <= count; c += kLanes) {
    SCALEMARK_INDEPENDENT
    for (std::int64_t i = 0; i < kLanes; ++i) lane[i] = step(lane[i], load(x[c + i]));
  }
  for (std::int64_t i = 0; c < count; ++c, ++i) lane[i] = step(lane[i], load(x[c]));
}

template <typename T>
SCALEMARK_INLINE RowSums row_sums(const T* logits, std::int64_t classes) {
  float most[kLanes], sums[kLanes] = {};
  for (float& lane : most) lane = -std::numeric_limits<float>::infinity();
  fold(logits, classes, most, [](float lane, float x) { return x > lane ? x : lane; });
  float highest = most[0];
  for (const float lane : most) highest = lane > highest ? lane : highest;
  fold(logits, classes, sums, [](float lane, float x) { return lane + x; });
  double sum = 0, exponentials = 0;
  for (float& lane : sums) {
    sum += lane;
    lane = 0;
  }
  fold(logits, classes, sums,
       [highest](float lane, float x) { return lane + exp_below_zero(x - highest); });
  for (const float lane : sums) exponentials += lane;
  return {highest, static_cast<float>(exponentials), static_cast<float>(sum)};
}

template <typename T>
SCALEMARK_INLINE void gradient_of(const CrossEntropyGradient<T>& row) {
  const auto [logits, gradient, classes, highest, inverse, scale, share] = row;
  SCALEMARK_INDEPENDENT
  for (std::int64_t c = 0; c < classes; ++c)
    store(gradient[c], scale * (inverse * exp_below_zero(load(logits[c]) - highest) - share));
}

}  // namespace

SCALEMARK_VECTOR_LOOP RowSums sums_of(const float* logits, std::int64_t classes) {
  return row_sums(logits, classes);
}
SCALEMARK_VECTOR_LOOP RowSums sums_of(const c10::BFloat16* logits, std::int64_t classes) {
  return row_sums(logits, classes);
}
SCALEMARK_VECTOR_LOOP void run(const CrossEntropyGradient<float>& row) { gradient_of(row); }
SCALEMARK_VECTOR_LOOP void run(const CrossEntropyGradient<c10::BFloat16>& row) { gradient_of(row); }

}  // namespace scalemark

// Declares the loops of max pooling over the channels of one pixel, for fp32 and bf16. Internal to
// max_pool.cpp.
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

namespace scalemark {

inline constexpr int kMostPixels = 15 * 15;  ///< of a window

/// y = the maximum over `count` pixels of a window, `place` = the number of the pixel that has it.
template <typename T>
struct MaxOfPixels {
  const T* pixels[kMostPixels];
  std::uint8_t numbers[kMostPixels];
  int count;
  std::int64_t channels;
  float* scratch;  ///< [2, channels]
  T* y;
  std::uint8_t* place;  ///< null: nobody asks
};
void run(const MaxOfPixels<float>& loop);
void run(const MaxOfPixels<c10::BFloat16>& loop);

/// dx = the sum of dy over the windows whose maximum the pixel has.
template <typename T>
struct GradientOfPixel {
  const T* dy[kMostPixels];
  const std::uint8_t* place[kMostPixels];
  std::uint8_t numbers[kMostPixels];  ///< of the pixel in each window
  int count;
  std::int64_t channels;
  float* scratch;  ///< [channels]
  T* dx;
};
void run(const GradientOfPixel<float>& loop);
void run(const GradientOfPixel<c10::BFloat16>& loop);

}  // namespace scalemark

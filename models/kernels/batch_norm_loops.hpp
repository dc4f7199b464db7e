// Declares the four loops of batch normalisation over rows of channels, which is the form of
// channels_last activations: rows = N x H x W. Each runs on one thread, in fp32 or bf16 with
// arithmetic in fp32; sums over many rows are kept in float64. Internal to models/kernels/.
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

namespace scalemark {

/// Rows [0, rows) of `channels` elements each, one behind the other.
struct RowShape {
  std::int64_t rows, channels;
};

/// What normalises a channel: y = (x - mean) scale + shift; all [channels].
struct ChannelScales {
  const float *mean, *scale, *shift;
};

/// Floats of scratch memory that sums need for each channel.
inline constexpr std::int64_t kScratchPerChannel = 3;

template <typename T>
struct MomentsOfRows {
  const T* x;
  RowShape shape;
  double *mean, *squares;  ///< [channels]; of differences from the mean
  float* scratch;          ///< [kScratchPerChannel x channels]
};
void run(const MomentsOfRows<float>& loop);
void run(const MomentsOfRows<c10::BFloat16>& loop);

/// y = (x - mean) scale + shift, + residual where there is one, then max(y, 0) with `relu`.
template <typename T>
struct NormaliseRows {
  const T* x;
  const T* residual;  ///< nullptr: none
  T* y;
  RowShape shape;
  ChannelScales scales;
  bool relu;
};
void run(const NormaliseRows<float>& loop);
void run(const NormaliseRows<c10::BFloat16>& loop);

/// How a gradient passes the activation.
enum class Mask {
  none,    ///< there is no activation
  input,   ///< where the normalised x is positive
  output,  ///< where y is
};

/// g = dy where it passes; the sums of g and of g (x - mean) over the rows.
template <typename T>
struct GradientSumsOfRows {
  const T* dy;
  const T* x;
  const T* y;  ///< of Mask::output
  T* g;        ///< of Mask::output: written
  RowShape shape;
  ChannelScales scales;
  Mask mask;
  double *sum, *product;  ///< [channels]
  float* scratch;         ///< [kScratchPerChannel x channels]
};
void run(const GradientSumsOfRows<float>& loop);
void run(const GradientSumsOfRows<c10::BFloat16>& loop);

/// dx = scale g + slope (x - mean) + offset.
template <typename T>
struct InputGradientOfRows {
  const T* g;  ///< with `relu` dy, masked here by the normalised x
  const T* x;
  T* dx;
  RowShape shape;
  ChannelScales scales;
  const float *slope, *offset;  ///< [channels]
  bool relu;
};
void run(const InputGradientOfRows<float>& loop);
void run(const InputGradientOfRows<c10::BFloat16>& loop);

}  // namespace scalemark

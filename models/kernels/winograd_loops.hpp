// Declares the three transforms of Winograd's F(2 x 2, 3 x 3), each of one tile over its channels,
// which are contiguous in channels_last memory, and the matrix product between them. Each runs on
// one thread. Internal to models/kernels/.
#pragma once

#include <cstdint>

namespace scalemark {

inline constexpr std::int64_t kTileOut = 2;  ///< pixels of a tile's side
inline constexpr std::int64_t kTileIn = 4;   ///< that they are computed from
inline constexpr std::int64_t kTilePositions = kTileIn * kTileIn;

/// Where a square of pixels or taps lies: element (i, j) of channel c at at[i rows + j columns +
/// c].
template <typename T>
struct Square {
  T* at;
  std::int64_t rows, columns;
};

/// to (4 x 4) = B^T x B of `from` (4 x 4).
struct TransformInput {
  Square<const float> from;
  Square<float> to;
  std::int64_t channels;
};
void run(const TransformInput& tile);

/// to (4 x 4) = G w G^T of `from` (3 x 3).
struct TransformFilter {
  Square<const float> from;
  Square<float> to;
  std::int64_t channels;
};
void run(const TransformFilter& tile);

/// to (2 x 2) = A^T m A of `from` (4 x 4) + bias, + what is in `to` with `add`, then max(., 0) with
/// `relu`.
struct TransformOutput {
  Square<const float> from;
  Square<float> to;
  std::int64_t channels;
  const float* bias;  ///< [channels]
  bool add, relu;
};
void run(const TransformOutput& tile);

/// Columns of a matrix product that are computed at a time.
inline constexpr std::int64_t kPanel = 16;

/// y [rows, count * kPanel] = x [rows, depth] times `count` panels [depth, kPanel]. Each element is
/// summed in the order of `depth`, whatever the number of rows.
struct MultiplyPanels {
  const float* x;
  std::int64_t rows, depth;
  const float* panels;
  std::int64_t count;
  float* y;
  std::int64_t apart;  ///< rows of y
};
void run(const MultiplyPanels& product);

}  // namespace scalemark

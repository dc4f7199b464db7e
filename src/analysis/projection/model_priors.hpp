// What is assumed of the parameters before a curve is seen, as standard normal coordinates, and the
// random walk that draws from what is left after it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/projection/model_fit.hpp"

namespace scalemark {

/// Coordinates of a set of parameters; each but the first is standard normal beforehand.
enum Coordinate : std::size_t {
  kCompute,
  kFixed,
  kStraggler,
  kNodeRate,
  kLinkRate,
  kLatency,
  kWork,
  kOverlap,
  kOnce,
  kAll
};
using Coordinates = std::array<double, kAll>;

/// Log-normal with this median; `spread` is the deviation of its logarithm.
struct RatePrior {
  double median, spread;
};

/// Share of a nominal rate that allreduces reach: 50 %, within a factor of 2.7 in two of three
/// cases.
inline constexpr RatePrior kLinkShare{0.5, 1.0};
/// Gbit/s where no nominal rate is known: within a factor of 2.7 in two of three cases.
inline constexpr RatePrior kUnknownLink{8, 1.0};
/// Gbit/s between the ranks of a node.
inline constexpr RatePrior kNodeLink{80, 1.2};
/// Seconds of a message between nodes; within a node a quarter of it.
inline constexpr RatePrior kLinkLatency{20e-6, 0.7};
/// Half-normal: of a rank's computation between ranks, and of a step whatever its batch.
inline constexpr double kStragglerScale = 0.05, kFixedScale = 0.05;
/// Half-normal, seconds a byte: what the cores of a rank spend on communication that runs beside
/// their computation.
inline constexpr double kWorkScale = 1e-9;
/// Seconds to add a byte of gradients: two reads and a write at the memory rate of a socket (30
/// GB/s for each rank) and of a GPU (1.5 TB/s).
inline constexpr double kSumSecondsPerByteCpu = 1e-10, kSumSecondsPerByteGpu = 2e-12;
/// Half-normal: what the step takes longer from one rank count on, whatever follows: ranks that
/// share a bus or a socket from there on.
inline constexpr double kOnceScale = 0.1;
/// Log-odds of the share that really hides of the communication that could: of a published curve,
/// whose framework nobody knows, 27 %, from 8 to 62 % in two of three cases; of scalemark's reducer
/// 88 %, from 62 to 97 %.
inline constexpr double kOverlapPublished = -1, kOverlapOurs = 2, kOverlapSpread = 1.5;

struct Priors {
  double first_compute_seconds = 1;  ///< where the walk starts; any value is alike beforehand
  double reference_batch = 1;
  double straggler_scale = kStragglerScale;
  double overlap_middle = kOverlapOurs;  ///< log-odds
  double work_scale = 0;  ///< seconds a byte; 0: others than the computing cores move the bytes
  double sum_seconds_per_byte = kSumSecondsPerByteGpu;
  RatePrior link = kUnknownLink;  ///< Gbit/s
  std::int64_t once_from = 0;     ///< rank count at which the step grew most; 0: nowhere
  std::int64_t ranks_per_node = 1;

  CostParameters parameters(const Coordinates& at) const;
};

/// Draws from the density exp(log_density) by a random walk (Metropolis et al. 1953) whose steps
/// are tuned while it settles; `count` of them, evenly apart. The same seed gives the same draws.
std::vector<Coordinates> draw_coordinates(
    const std::function<double(const Coordinates&)>& log_density, std::size_t count,
    std::uint64_t seed);

}  // namespace scalemark

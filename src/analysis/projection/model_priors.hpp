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
  kAll
};
using Coordinates = std::array<double, kAll>;

/// Log-normal with this median; `spread` is the deviation of its logarithm.
struct RatePrior {
  double median, spread;
};

/// Share of a nominal rate that allreduces reach: 50 %, within a factor of 2 in two of three cases.
inline constexpr RatePrior kLinkShare{0.5, 0.7};
/// Gbit/s where no nominal rate is known: within a factor of 10 in two of three cases.
inline constexpr RatePrior kUnknownLink{10, 2.3};
/// Gbit/s between the ranks of a node.
inline constexpr RatePrior kNodeLink{80, 1.2};
/// Seconds of a message between nodes; within a node a quarter of it.
inline constexpr RatePrior kLinkLatency{20e-6, 1.0};
/// Half-normal: of a rank's computation between ranks, and of a step whatever its batch.
inline constexpr double kStragglerScale = 0.05, kFixedScale = 0.05;
/// Half-normal, seconds a byte: what the cores of a rank spend on communication that runs beside
/// their computation.
inline constexpr double kWorkScale = 1e-9;
/// Adding gradients: two reads and a write at 30 GB/s.
inline constexpr double kSumSecondsPerByte = 1e-10;

struct Priors {
  double first_compute_seconds = 1;  ///< where the walk starts; any value is alike beforehand
  double reference_batch = 1;
  double straggler_scale = kStragglerScale;
  double work_scale = 0;  ///< seconds a byte; 0: others than the computing cores move the bytes
  RatePrior link = kUnknownLink;  ///< Gbit/s
  std::int64_t ranks_per_node = 1;

  CostParameters parameters(const Coordinates& at) const;
};

/// Draws from the density exp(log_density) by a random walk (Metropolis et al. 1953) whose steps
/// are tuned while it settles; `count` of them, evenly apart. The same seed gives the same draws.
std::vector<Coordinates> draw_coordinates(
    const std::function<double(const Coordinates&)>& log_density, std::size_t count,
    std::uint64_t seed);

}  // namespace scalemark

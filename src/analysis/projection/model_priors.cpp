// States what is assumed of the parameters before a curve is seen, and walks through them.
#include "analysis/projection/model_priors.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace scalemark {
namespace {

constexpr double kSecondsPerByteAtOneGbit = 8e-9;

double log_normal(const RatePrior& prior, double at) {
  return prior.median * std::exp(prior.spread * at);
}

/// One coordinate after the other, then all at once along what they trade against each other.
class Walk {
 public:
  Walk(const std::function<double(const Coordinates&)>& log_density, std::uint64_t seed)
      : log_density_(log_density), random_(seed) {
    at_.fill(0);
    at_[kStraggler] = at_[kFixed] = at_[kWork] = at_[kOnce] = 0.5;
    start(at_);
  }

  /// Causes trade against each other, and a walk that begins at one of them may never find another
  /// that explains the curve better: of several beginnings the one that got farthest goes on.
  void choose_beginning() {
    constexpr int kBeginnings = 8, kSweeps = 100;
    Coordinates at = at_, scale;
    double density = 0;
    for (int i = 0; i < kBeginnings; ++i) {
      Coordinates from;
      for (double& coordinate : from) coordinate = normal_(random_);
      from[kCompute] = 0;
      if (i > 0) start(from);
      for (int sweeps = 0; sweeps < kSweeps; ++sweeps) sweep(true);
      if (i == 0 || density_ > density) at = at_, scale = scale_, density = density_;
    }
    at_ = at, scale_ = scale, density_ = density;
  }

  void sweep(bool settling) {
    for (std::size_t i = 0; i < kAll; ++i) {
      Coordinates next = at_;
      next[i] += scale_[i] * normal_(random_);
      const bool moved = try_move(next);
      // Robbins and Monro (1951): towards two accepted moves of five.
      if (settling) scale_[i] = std::clamp(scale_[i] * (moved ? 1.06 : 0.96), 1e-3, 10.);
    }
    Coordinates next = at_;
    for (std::size_t i = 0; i < kAll; ++i) next[i] += 0.5 * scale_[i] * normal_(random_);
    try_move(next);
  }

  const Coordinates& at() const { return at_; }

 private:
  void start(const Coordinates& at) {
    at_ = at;
    density_ = log_density_(at_);
    scale_.fill(1);
  }

  bool try_move(const Coordinates& next) {
    const double density = log_density_(next);
    if (!(std::log(uniform_(random_)) < density - density_)) return false;
    at_ = next;
    density_ = density;
    return true;
  }

  const std::function<double(const Coordinates&)>& log_density_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  Coordinates at_, scale_;
  double density_ = 0;
};

}  // namespace

CostParameters Priors::parameters(const Coordinates& at) const {
  CostParameters made;
  made.compute_seconds = first_compute_seconds * std::exp(0.02 * at[kCompute]);
  made.reference_batch = reference_batch;
  made.fixed_share = std::min(0.9, kFixedScale * std::abs(at[kFixed]));
  made.straggler_deviation = straggler_scale * std::abs(at[kStraggler]);
  made.overlap = 1 / (1 + std::exp(-(overlap_middle + kOverlapSpread * at[kOverlap])));
  made.once = once_from > 0 ? kOnceScale * std::abs(at[kOnce]) : 0;
  made.once_from = once_from;
  Network& network = made.network;
  network.ranks_per_node = ranks_per_node;
  network.sum_seconds_per_byte = sum_seconds_per_byte;
  network.work_seconds_per_byte = work_scale * std::abs(at[kWork]);
  network.link = {log_normal(kLinkLatency, at[kLatency]),
                  kSecondsPerByteAtOneGbit / log_normal(link, at[kLinkRate])};
  network.node = {network.link.latency_seconds / 4,
                  kSecondsPerByteAtOneGbit / log_normal(kNodeLink, at[kNodeRate])};
  return made;
}

std::vector<Coordinates> draw_coordinates(
    const std::function<double(const Coordinates&)>& log_density, std::size_t count,
    std::uint64_t seed) {
  constexpr int kSettling = 1500, kApart = 6;
  Walk walk(log_density, seed);
  walk.choose_beginning();
  for (int i = 0; i < kSettling; ++i) walk.sweep(true);
  std::vector<Coordinates> draws;
  while (draws.size() < count) {
    for (int i = 0; i < kApart; ++i) walk.sweep(false);
    draws.push_back(walk.at());
  }
  return draws;
}

}  // namespace scalemark

// Runs the triad on several threads and checks its results.
#include "probe/memory_bandwidth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include "error.hpp"
#include "measure/clock.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {

constexpr double kScalar = 3;
constexpr std::size_t kFewestPasses = 3;

/// Allocates memory that nobody has touched. The thread that writes first gets it on its NUMA node.
struct Arrays {
  std::unique_ptr<double[]> a, b, c;
  explicit Arrays(std::size_t elements)
      : a(new double[elements]), b(new double[elements]), c(new double[elements]) {}
};

struct Part {
  std::size_t first, last;
};

void touch(const Arrays& arrays, Part part) {
  for (std::size_t i = part.first; i < part.last; ++i) {
    arrays.a[i] = 0;
    arrays.b[i] = 2;
    arrays.c[i] = 0.5;
  }
}

void triad(double* __restrict a, const double* __restrict b, const double* __restrict c,
           Part part) {
  for (std::size_t i = part.first; i < part.last; ++i) a[i] = b[i] + kScalar * c[i];
}

void check(const Arrays& arrays, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i)
    if (arrays.a[i] != 2 + kScalar * 0.5)
      throw RunError(fmt::format(
          "memory check: element {} of the triad is {}, not {}: the memory or a core is broken", i,
          arrays.a[i], 2 + kScalar * 0.5));
}

}  // namespace

MemoryBandwidth measure_memory_bandwidth(int threads, std::int64_t elements, double seconds) {
  const auto size = static_cast<std::size_t>(elements);
  const auto count = static_cast<std::size_t>(std::max(1, threads));
  const Arrays arrays(size);
  std::barrier<> meeting(static_cast<std::ptrdiff_t>(count));
  bool more = true;  // written by the first thread alone, between two barriers
  const auto part_of = [&](std::size_t t) {
    return Part{size * t / count, size * (t + 1) / count};
  };
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < count; ++t)
    others.emplace_back([&, part = part_of(t)] {
      touch(arrays, part);
      for (meeting.arrive_and_wait(); more; meeting.arrive_and_wait()) {
        triad(arrays.a.get(), arrays.b.get(), arrays.c.get(), part);
        meeting.arrive_and_wait();
      }
    });
  touch(arrays, part_of(0));

  const std::vector<double> times = repeat_for(seconds, kFewestPasses, [&] {
    meeting.arrive_and_wait();
    const double start = steady_seconds();
    triad(arrays.a.get(), arrays.b.get(), arrays.c.get(), part_of(0));
    meeting.arrive_and_wait();
    return steady_seconds() - start;
  });
  more = false;
  meeting.arrive_and_wait();
  others.clear();
  check(arrays, size);
  const auto bytes = static_cast<double>(triad_bytes(elements));
  return {bytes / mean(times), bytes / std::ranges::min(times), 8 * elements,
          static_cast<int>(times.size())};
}

namespace {

/// Computes a chain in which every step needs the one before, so that neither wider units nor more
/// of them help.
double quantum(std::int64_t steps) {
  const double start = steady_seconds();
  std::uint64_t x = 1;
  for (std::int64_t i = 0; i < steps; ++i) x = x * 6364136223846793005ULL + 1442695040888963407ULL;
  [[maybe_unused]] volatile std::uint64_t kept = x;
  return steady_seconds() - start;
}

/// Returns the shortest time of several repeats, which is the least disturbed one.
double fastest(std::int64_t steps) {
  double seconds = quantum(steps);
  for (int i = 0; i < 4; ++i) seconds = std::min(seconds, quantum(steps));
  return seconds;
}

}  // namespace

std::int64_t calibrate_quantum(double seconds) {
  std::int64_t steps = 1000;
  double took = fastest(steps);
  while (took < seconds / 4) {
    steps *= 2;
    took = fastest(steps);
  }
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(steps) * seconds / took));
}

std::vector<double> repeat_quantum(std::int64_t steps, double seconds) {
  return repeat_for(seconds, 10, [&] { return quantum(steps); });
}

QuantumStatistics quantum_statistics(const std::vector<std::vector<double>>& blocks) {
  std::vector<double> all;
  double best = mean(blocks.front());
  for (const auto& block : blocks) {
    best = std::min(best, mean(block));
    all.insert(all.end(), block.begin(), block.end());
  }
  const auto [least, most] = std::ranges::minmax(all);
  return {all.size(), median(all), mean(all), best, quantile(all, 0.99), most / least};
}

}  // namespace scalemark

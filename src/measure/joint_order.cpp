// See joint_order.hpp.
#include "measure/joint_order.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "measure/statistics.hpp"

namespace scalemark {
namespace {

using Places = std::vector<std::size_t>;

/// Standardised values are of the size of 1, so their rounding is too.
constexpr double kTie = 10 * kRounding;

/// How many values are at most the i-th; `most` + 1 where they are more than `most`.
Places ranks_of(const std::vector<double>& values, std::size_t most) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  const std::size_t sorted = std::min(order.size(), most + 1);
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(sorted), {},
                            [&](std::uint32_t i) { return values[i]; });
  Places ranks(values.size(), most + 1);
  for (std::size_t begin = 0, end = 0; begin < sorted; begin = end) {
    while (end < sorted && (end == begin || values[order[end]] - values[order[end - 1]] <= kTie))
      ++end;
    if (end > most) break;  // more that are equal may follow
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = end;
  }
  return ranks;
}

}  // namespace

std::vector<double> mean_of_series(const Series& series) {
  std::vector<double> means;
  for (std::size_t i = 0; !series.empty() && i < series.front().size(); ++i) {
    double sum = 0;
    for (const auto& one : series) sum += one.at(i);
    means.push_back(sum / static_cast<double>(series.size()));
  }
  return means;
}

Places joint_places(const JointStatistics& statistics, std::size_t most) {
  Places keys = ranks_of(statistics.mean, most);
  const Places others = ranks_of(statistics.smallest, most);
  // The mean goes first at each rank: 2 r - 1 before 2 r.
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = std::min(2 * keys[i] - 1, 2 * others[i]);
  Places up_to(2 * most + 3);
  for (const std::size_t key : keys) ++up_to[key];
  std::partial_sum(up_to.begin(), up_to.end(), up_to.begin());
  for (std::size_t& key : keys) key = up_to[key];
  return keys;
}

}  // namespace scalemark

// See group_sequential.hpp.
#include "measure/group_sequential.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "measure/statistics.hpp"
#include "measure/subsets.hpp"

namespace scalemark {
namespace {

void check(const std::vector<SequentialLook>& looks) {
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const bool ascends =
        i == 0 ? looks[i].pairs > 0
               : looks[i].pairs > looks[i - 1].pairs && looks[i].spent >= looks[i - 1].spent;
    if (!ascends || looks[i].pairs > kMostSequentialPairs)
      throw std::invalid_argument("looks must ascend and have at most 22 pairs");
  }
}

/// Winsorised and standardised, as a function of the signs that are turned.
class SignedSum {
 public:
  explicit SignedSum(const std::vector<double>& values)
      : values_(standardised(winsorised_magnitudes(values))),
        whole_(std::accumulate(values_.begin(), values_.end(), 0.)),
        sums_(values_) {}

  double of(std::uint32_t turned) const { return whole_ - 2 * sums_.of(turned); }

 private:
  static std::vector<double> standardised(std::vector<double> values) {
    const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.);
    if (squares > 0)
      for (double& value : values) value /= std::sqrt(squares);
    return values;
  }

  std::vector<double> values_;
  double whole_;
  SubsetSums sums_;
};

/// Assignments of signs that no look has refused yet: which signs differ from the observed ones.
class Assignments {
 public:
  /// Every assignment goes on with either sign of the next pair.
  void extend() {
    const std::size_t known = turned_.size();
    for (std::size_t i = 0; i < known; ++i) turned_.push_back(turned_[i] | 1U << pairs_);
    ++pairs_;
    all_ *= 2;
    refused_ *= 2;
  }

  /// Refuses the first in order up to the share `spent` of all assignments, those refused before
  /// included; true where the observed one is among them.
  bool refuse(const Series& differences, double spent) {
    const double allowed = std::floor(spent * all_ + 1e-9) - refused_;
    if (allowed < 1) return false;
    const auto most = std::min(turned_.size(), static_cast<std::size_t>(allowed));
    const auto places = joint_places(statistics_of(differences), most);
    const bool observed = places.front() <= most;
    std::vector<std::uint32_t> kept;
    for (std::size_t i = 0; i < turned_.size(); ++i)
      if (places[i] > most) kept.push_back(turned_[i]);
    refused_ += static_cast<double>(turned_.size() - kept.size());
    turned_ = std::move(kept);
    return observed;
  }

 private:
  std::vector<double> first_of(const std::vector<double>& values) const {
    return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(pairs_)};
  }

  JointStatistics statistics_of(const Series& differences) const {
    JointStatistics statistics;
    const SignedSum mean(first_of(mean_of_series(differences)));
    for (const std::uint32_t turned : turned_) statistics.mean.push_back(mean.of(turned));
    if (differences.size() == 1) {
      statistics.smallest = statistics.mean;
      return statistics;
    }
    statistics.smallest.assign(turned_.size(), std::numeric_limits<double>::infinity());
    for (const auto& series : differences) {
      const SignedSum sum(first_of(series));
      for (std::size_t i = 0; i < turned_.size(); ++i)
        statistics.smallest[i] = std::min(statistics.smallest[i], sum.of(turned_[i]));
    }
    return statistics;
  }

  std::vector<std::uint32_t> turned_{0};  ///< the observed one, 0, comes first until it is refused
  std::size_t pairs_ = 0;
  double all_ = 1, refused_ = 0;  ///< numbers of assignments
};

}  // namespace

std::optional<std::size_t> first_refusal(const Series& differences,
                                         const std::vector<SequentialLook>& looks) {
  check(looks);
  if (differences.empty()) return std::nullopt;
  const std::size_t known = differences.front().size();
  for (const auto& series : differences)
    if (series.size() != known) throw std::invalid_argument("series of unlike length");
  Assignments assignments;
  std::size_t pairs = 0;
  for (std::size_t look = 0; look < looks.size(); ++look) {
    if (looks[look].pairs > known) return std::nullopt;
    for (; pairs < looks[look].pairs; ++pairs) assignments.extend();
    if (assignments.refuse(differences, looks[look].spent)) return look;
  }
  return std::nullopt;
}

}  // namespace scalemark

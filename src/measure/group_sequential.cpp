// See group_sequential.hpp.
#include "measure/group_sequential.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "measure/statistics.hpp"

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

/// Sums of all assignments of signs that no look has refused yet.
class Assignments {
 public:
  /// Every assignment goes on with either sign of the next difference.
  void extend(double difference) {
    const double magnitude = std::abs(difference);
    std::vector<double> longer;
    longer.reserve(2 * sums_.size());
    for (const double sum : sums_) {
      longer.push_back(sum + magnitude);
      longer.push_back(sum - magnitude);
    }
    sums_ = std::move(longer);
    observed_ += difference;
    magnitudes_ += magnitude;
    all_ *= 2;
    refused_ *= 2;
  }

  /// Refuses the smallest sums up to the share `spent` of all assignments, those refused before
  /// included; true where the observed one is among them.
  bool refuse(double spent) {
    const double allowed = std::floor(spent * all_ + 1e-9) - refused_;
    if (allowed < 1) return false;
    const auto place = std::min(sums_.size() - 1, static_cast<std::size_t>(allowed));
    const auto first_kept = sums_.begin() + static_cast<std::ptrdiff_t>(place);
    std::ranges::nth_element(sums_, first_kept);
    const double limit = *first_kept - kRounding * magnitudes_;
    const bool refused = observed_ < limit;
    refused_ += static_cast<double>(std::erase_if(sums_, [=](double sum) { return sum < limit; }));
    return refused;
  }

 private:
  std::vector<double> sums_{0};
  double observed_ = 0, magnitudes_ = 0;
  double all_ = 1, refused_ = 0;  ///< numbers of assignments
};

}  // namespace

std::optional<std::size_t> first_refusal(std::span<const double> differences,
                                         const std::vector<SequentialLook>& looks) {
  check(looks);
  Assignments assignments;
  std::size_t pairs = 0;
  for (std::size_t look = 0; look < looks.size(); ++look) {
    if (looks[look].pairs > differences.size()) return std::nullopt;
    for (; pairs < looks[look].pairs; ++pairs) assignments.extend(differences[pairs]);
    if (assignments.refuse(looks[look].spent)) return look;
  }
  return std::nullopt;
}

}  // namespace scalemark

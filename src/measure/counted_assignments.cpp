// See counted_assignments.hpp.
#include "measure/counted_assignments.hpp"

#include "measure/all_subsets.hpp"
#include "measure/listed_subsets.hpp"

namespace scalemark {

std::shared_ptr<const Subsets> CountedAssignments::of_signs(std::size_t n) const {
  if (n <= kMostExactValues) return std::make_shared<AllSubsets>(n);
  auto& drawn = (*drawn_)[{n, 0}];
  if (!drawn)
    drawn = std::make_shared<ListedSubsets>(ListedSubsets::by_coins(n, kDrawnAssignments, seed_));
  return drawn;
}

std::shared_ptr<const Subsets> CountedAssignments::of_samples(std::size_t n, std::size_t m) const {
  if (n + m <= kMostExactValues) return std::make_shared<AllSubsets>(n + m, m);
  auto& drawn = (*drawn_)[{n, m}];
  if (!drawn)
    drawn =
        std::make_shared<ListedSubsets>(ListedSubsets::of_size(n + m, m, kDrawnAssignments, seed_));
  return drawn;
}

}  // namespace scalemark

// Puts estimates, intervals and tests of one point together.
#include "measure/shift_answer.hpp"

#include <algorithm>
#include <cmath>

#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// Of logarithms: what rounding can make of alike values is no disagreement.
constexpr double kLeastDisagreement = 1e-9;

}  // namespace

bool ShiftAnswer::refuted_by_mean() const {
  return interval && bare < interval->interval.lo - kLeastDisagreement;
}

bool ShiftAnswer::excludes(double slowdown) const {
  return interval && interval->interval.lo > slowdown && bare > slowdown && !refuted_by_mean();
}

ShiftAnswer answer_of_pairs(std::span<const double> differences, const ShiftQuestions& questions) {
  ShiftAnswer answer;
  answer.centre = sign_flip_centre(differences);
  answer.bare = mean(differences);
  answer.interval = sign_flip_interval(differences, questions.confidence, questions.assignments);
  answer.slow = slow_pairs(differences, questions.least_slow);
  return answer;
}

ShiftAnswer answer_of_samples(std::span<const double> base, std::span<const double> fresh,
                              const ShiftQuestions& questions) {
  ShiftAnswer answer;
  answer.centre = permutation_centre(base, fresh);
  answer.bare = mean(fresh) - mean(base);
  answer.interval = permutation_interval(base, fresh, questions.confidence, questions.assignments);
  if (std::min(base.size(), fresh.size()) >= kLeastStudentValues)
    answer.spreads = spreads_of(base, fresh);
  answer.slow = slow_launches(base, fresh, questions.least_slow);
  return answer;
}

}  // namespace scalemark

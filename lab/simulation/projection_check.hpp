// Predictions held against what they have not seen: by projection_check.cpp for
// docs/projection.md, and by lab/tests/published_curves_test.cpp.
#pragma once

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "analysis/projection/projection.hpp"

namespace scalemark::projection {

/// The smaller half of the rank counts of a curve, rounded up, at least two.
inline std::vector<std::int64_t> first_half(const MeasuredCurve& curve) {
  std::set<std::int64_t> counts;
  for (const CurvePoint& point : curve.points) counts.insert(point.ranks);
  std::vector<std::int64_t> half(counts.begin(), counts.end());
  half.resize(std::max<std::size_t>(2, (half.size() + 1) / 2));
  return half;
}

/// The other half.
inline std::vector<std::int64_t> unseen_half(const MeasuredCurve& curve) {
  const std::int64_t most = first_half(curve).back();
  std::set<std::int64_t> counts;
  for (const CurvePoint& point : curve.points)
    if (point.ranks > most) counts.insert(point.ranks);
  return {counts.begin(), counts.end()};
}

/// Fitted to the first half, held against the second; questions say what else is known.
inline Projection check_half(const MeasuredCurve& curve, ProjectionQuestions questions = {}) {
  if (questions.fit.fit_ranks.empty()) questions.fit.fit_ranks = first_half(curve);
  for (const CurvePoint& point : curve.points) questions.ranks.push_back(point.ranks);
  return project(curve, fit_model(curve, questions.fit), questions);
}

/// The files *.json of a folder by name, or the file itself.
inline std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// Sums of mean absolute errors over curves.
struct Tally {
  int curves = 0, better = 0, within_one_point = 0;
  std::size_t points = 0, in_band = 0;
  double model = 0, constant_efficiency = 0, linear = 0;
  double farthest_behind = -100;  ///< points of error more than constant efficiency has

  void add(const HeldOutErrors& errors) {
    ++curves;
    better += errors.model < errors.constant_efficiency;
    const double behind = errors.model - errors.constant_efficiency;
    within_one_point += behind <= 1;
    farthest_behind = std::max(farthest_behind, behind);
    points += errors.points;
    in_band += errors.in_band;
    model += errors.model;
    constant_efficiency += errors.constant_efficiency;
    linear += errors.linear;
  }
};

}  // namespace scalemark::projection

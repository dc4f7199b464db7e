// The program of the tables in docs/projection.md; see programs.hpp.
#include "lab/simulation/projection_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <random>
#include <span>

#include "commands/requests.hpp"
#include "lab/simulation/programs.hpp"
#include "lab/simulation/projection_tuning.hpp"
#include "measure/statistics.hpp"
#include "streams.hpp"

namespace scalemark::projection {
namespace {

std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  return fmt::format("{}", fmt::join(ranks, ", "));
}

void print_row(const MeasuredCurve& curve, const Projection& made) {
  std::string errors;
  for (const ProjectedPoint& point : made.points) {
    if (!point.held_out) continue;
    const double null =
        100 * (point.constant_efficiency_throughput / *point.measured_throughput - 1);
    const bool inside = *point.measured_throughput >= point.throughput.band.lo &&
                        *point.measured_throughput <= point.throughput.band.hi;
    errors += fmt::format("{}{}: {:+.1f}{} ({:+.1f})", errors.empty() ? "" : ", ", point.ranks,
                          *point.error_percent, inside ? "" : "*", null);
  }
  fmt::print("| {} | {} | {} | {:.1f} | {:.1f} | {:.1f} |\n", curve.label,
             ranks_text(first_half(curve)), errors, made.errors->model,
             made.errors->constant_efficiency, made.errors->linear);
}

void print_comparison(const Tally& tally) {
  fmt::print(
      "better than constant efficiency: {} of {} curves; better or within one point: {}; farthest "
      "behind: {:+.1f} points\n",
      tally.better, tally.curves, tally.within_one_point, tally.farthest_behind);
}

int check(const std::vector<std::string>& arguments) {
  fmt::print(
      "| curve | fitted ranks | unseen ranks: error of throughput, % (constant efficiency) | model "
      "| "
      "constant efficiency | linear |\n| --- | --- | --- | --- | --- | --- |\n");
  Tally tally;
  for (const std::string& argument : arguments)
    for (const auto& path : files_of(argument)) {
      const MeasuredCurve curve = read_curve(path.string());
      const Projection made = check_half(curve);
      if (!made.errors) continue;
      print_row(curve, made);
      tally.add(*made.errors);
    }
  const double n = std::max(1, tally.curves);
  fmt::print(
      "| mean of {} curves | | *: outside the band, {} of {} inside | {:.1f} | {:.1f} | {:.1f} |\n",
      tally.curves, tally.in_band, tally.points, tally.model / n, tally.constant_efficiency / n,
      tally.linear / n);
  fmt::print("\n");
  print_comparison(tally);
  return 0;
}

std::string text_of(const TunedConstants& constants) {
  return fmt::format("{}, {}, {}, {}, {}, {}", constants.evidence, constants.bend,
                     constants.nearly_linear, constants.model_share_leaving, constants.model_share,
                     constants.drift_per_doubling);
}

/// The curves of the arguments that have unseen points.
std::vector<MeasuredCurve> curves_of(std::span<const std::string> arguments) {
  std::vector<MeasuredCurve> curves;
  for (const std::string& argument : arguments)
    for (const auto& path : files_of(argument)) {
      curves.push_back(read_curve(path.string()));
      if (unseen_half(curves.back()).empty()) curves.pop_back();
    }
  return curves;
}

int leave_one_out(std::span<const std::string> arguments) {
  const std::vector<MeasuredCurve> curves = curves_of(arguments);
  if (curves.size() < 2) throw ConfigError("--leave_one_out: takes two curves or more");
  const TuningResult result = tune(curves);
  fmt::print(
      "constants: evidence, bend, nearly linear, model share leaving a node, elsewhere, "
      "drift per doubling\n\n| curve | constants chosen without it | model | constant efficiency | "
      "in band |\n| --- | --- | --- | --- | --- |\n");
  Tally tally;
  for (const LeftOut& one : result.left_out) {
    fmt::print("| {} | {} | {:.1f} | {:.1f} | {} of {} |\n", one.curve->label,
               text_of(one.constants), one.errors.model, one.errors.constant_efficiency,
               one.errors.in_band, one.errors.points);
    tally.add(one.errors);
  }
  const double n = tally.curves;
  fmt::print("| mean of {} curves | | {:.1f} | {:.1f} | {} of {} ({:.0f} %) |\n\n", tally.curves,
             tally.model / n, tally.constant_efficiency / n, tally.in_band, tally.points,
             100. * static_cast<double>(tally.in_band) / static_cast<double>(tally.points));
  print_comparison(tally);
  fmt::print("chosen on all curves: {}\nshipped:              {}\n", text_of(result.of_all),
             text_of(TunedConstants{}));
  return result.of_all == TunedConstants{} ? 0 : 1;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A curve of Transformer-big on nodes of 8: 105 buckets, the longest schedule of the catalog's
/// usual models.
MeasuredCurve transformer() {
  PublishedCurve curve;
  curve.model = "transformer_big";
  curve.unit = "tokens/sec";
  curve.parameters = 209'915'904;
  curve.units_per_sample = 64;
  curve.bucket_mb = 8;
  curve.ranks_per_node = 8;
  curve.link_gbit = 100;
  curve.points = {{8, 64, 8000}, {16, 64, 15'500}, {32, 64, 30'000}};
  return curve_of(curve, "made", "made");
}

void time_predictions() {
  const MeasuredCurve curve = transformer();
  ProjectionQuestions questions;
  questions.ranks = {64, 1024, 10'000, 100'000};
  const auto start = std::chrono::steady_clock::now();
  const ModelFit fit = fit_model(curve, questions.fit);
  const double fitted = seconds_since(start);
  const Projection made = project(curve, fit, questions);
  fmt::print("fit: {:.3f} s; 4 rank counts up to 100,000 with bands: {:.3f} s\n", fitted,
             seconds_since(start) - fitted);
}

/// The slowest of 100,000 drawn ranks, mean of `steps` steps, against its expectation.
void draw_ranks(int steps) {
  constexpr int kRanks = 100'000;
  const auto start = std::chrono::steady_clock::now();
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  double sum = 0, squares = 0;
  for (int step = 0; step < steps; ++step) {
    double slowest = -10;
    for (int rank = 0; rank < kRanks; ++rank) slowest = std::max(slowest, normal(random));
    sum += slowest;
    squares += slowest * slowest;
  }
  const double mean = sum / steps;
  fmt::print(
      "slowest of {} drawn ranks, {} steps: {:.4f} +- {:.4f} deviations, expected {:.4f} ({:.2f} "
      "s)\n",
      kRanks, steps, mean, std::sqrt((squares / steps - mean * mean) / steps),
      expected_maximum_of_normals(kRanks), seconds_since(start));
}

}  // namespace
}  // namespace scalemark::projection

int scalemark::simulation::projection_check(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    say_progress("usage: projection_check [--leave_one_out] CURVE_OR_FOLDER... | --speed");
    return 2;
  }
  try {
    if (arguments.front() == "--leave_one_out")
      return projection::leave_one_out(std::span(arguments).subspan(1));
    if (arguments.front() != "--speed") return projection::check(arguments);
    projection::time_predictions();
    projection::draw_ranks(100);
  } catch (const std::exception& error) {
    say_progress(fmt::format("projection_check: {}", error.what()));
    return 2;
  }
  return 0;
}

// The projection record: what a cost model that is fitted to a curve predicts.
#pragma once

#include "config/run_config.hpp"
#include "record/parts.hpp"

namespace scalemark {
namespace record {

/// What a model is fitted to.
struct FittedCurve {
  std::string path;
  std::string kind;           ///< "launches", "rounds" of one launch, or "published"
  Known<std::string> source;  ///< of a published curve
  std::vector<std::string> records, left_out;
  std::string model, unit;
  Scaling scaling = Scaling::weak;
  Known<std::string> shard;
  double parameters = 0;
  static void describe(Fields& fields);
};

/// The smallest measured point.
struct BasePoint {
  std::int64_t ranks = 1;
  double throughput = 0;
  static void describe(Fields& fields);
};

struct MeasuredPoint {
  std::int64_t ranks = 1;
  double batch_size_per_rank = 1, step_seconds = 0;
  Known<double> baseline_step_seconds;
  double throughput = 0;
  std::size_t repeats = 1;
  static void describe(Fields& fields);
};
struct FittedPoint : MeasuredPoint {
  Known<double> residual_percent, assumed_error_percent;
  static void describe(Fields& fields);
};
/// A parameter over the draws: median and the range that holds 90 % of them.
struct FittedParameter {
  std::string name, unit;
  double value = 0;
  Interval range{0, 0};
  bool fitted = false;  ///< the curve narrows what was assumed before
  std::string origin;   ///< what it comes from, in words
  static void describe(Fields& fields);
};
struct FittedTrend {
  double share = 0, shown_loss_percent = 0, loss_percent_per_doubling = 0;
  static void describe(Fields& fields);
};
struct Fit {
  std::vector<FittedPoint> points;
  std::vector<MeasuredPoint> held_out;
  std::vector<FittedParameter> parameters;
  Known<FittedTrend> trend;
  static void describe(Fields& fields);
};

struct Assumptions {
  std::string algorithm, overlap;
  double backward_share = 0, gradient_bytes = 0, bucket_bytes = 0, sum_seconds_per_byte = 0;
  Known<double> measured_link_gbit, link_gbit, link_latency_seconds;
  std::int64_t ranks_per_node = 1;
  static void describe(Fields& fields);
};

/// How much training is asked for.
struct Budget {
  enum class Unit { steps, epochs, samples, units };
  Unit unit = Unit::steps;
  double amount = 0;
  static void describe(Fields& fields);
};
constexpr auto names_of(Budget::Unit) { return Names{"steps", "epochs", "samples", "tokens"}; }

/// A number of the model with its band.
struct Predicted {
  double value = 0;
  Interval band{0, 0};
};
struct KnownPrediction {
  Known<double> value;
  Known<Interval> band;
};
/// One collective's part of a step.
struct ProjectedCollective {
  std::string collective;
  double seconds = 0, exposed_seconds = 0;
  static void describe(Fields& fields);
};
struct ProjectedPoint {
  std::int64_t ranks = 1, nodes = 1;
  double batch_size_per_rank = 1, global_batch_size = 1;  ///< samples
  Known<std::string> algorithm;
  Predicted step_seconds;
  double compute_seconds = 0, straggler_seconds = 0, communication_seconds = 0, exposed_seconds = 0;
  Known<std::vector<ProjectedCollective>> collectives;
  Known<double> trend_seconds;
  Predicted throughput;
  double speedup = 1;
  Predicted efficiency;
  Known<double> measured_throughput, error_percent;
  bool held_out = false;  ///< measured, and unseen by the fit
  double constant_efficiency_throughput = 0, linear_throughput = 0;
  Known<double> solution_steps;
  KnownPrediction time_to_solution_seconds, time_to_solution_speedup;
  static void describe(Fields& fields);
};

/// Mean absolute errors of throughput over the points that the fit has not seen, percent.
struct HeldOutErrors {
  std::size_t points = 0, in_band = 0;
  double model = 0, constant_efficiency = 0, linear = 0;
  static void describe(Fields& fields);
};

}  // namespace record

struct ProjectionResult : record::Envelope {
  record::FittedCurve curve;
  double confidence = 0;
  record::BasePoint base;
  record::Fit fit;
  record::Assumptions assumptions;
  Known<record::Budget> budget, base_budget;
  Known<double> samples_per_epoch;
  std::vector<record::ProjectedPoint> points;
  Known<record::HeldOutErrors> errors;
  static void describe(Fields& fields);
};

}  // namespace scalemark

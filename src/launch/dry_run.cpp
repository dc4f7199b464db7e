// See dry_run.hpp.
#include "launch/dry_run.hpp"

#include <fmt/format.h>

#include "config/names.hpp"
#include "models/catalog.hpp"
#include "report/text_table.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {

std::string gibibytes(double bytes) { return fmt::format("{:.2f} GiB", bytes / (1 << 30)); }

std::int64_t states_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return 0;
    case Optimizer::momentum:
    case Optimizer::lars:
      return 1;
    case Optimizer::adam:
    case Optimizer::adamw:
    case Optimizer::lamb:
      break;
  }
  return 2;
}

/// Activations grow with the micro-batch, the length or the image, and halve in bf16.
double activation_bytes(const RunConfig& config, const ModelFacts& facts, std::int64_t samples) {
  double each = facts.activation_bytes;
  if (facts.sequence_length > 0)
    each *=
        static_cast<double>(*config.sequence_length) / static_cast<double>(facts.sequence_length);
  if (facts.image_size > 0) {
    const double side =
        static_cast<double>(*config.image_size) / static_cast<double>(facts.image_size);
    each *= side * side;
  }
  return each * static_cast<double>(samples) * (config.precision == Precision::fp32 ? 1 : 0.5);
}

std::vector<std::string> row(const PointPlan& plan) {
  return {std::to_string(plan.ranks),
          std::to_string(plan.batch.batch_size_per_rank),
          fmt::format("{} x {}", plan.batch.micro_batches(), plan.batch.micro_batch_size),
          fmt::format("{:.0f}", plan.units_per_step),
          gibibytes(static_cast<double>(plan.weight_bytes + plan.shadow_bytes + plan.kept_bytes)),
          gibibytes(static_cast<double>(plan.gradient_bytes)),
          gibibytes(static_cast<double>(plan.optimizer_bytes)),
          plan.activation_bytes > 0 ? gibibytes(plan.activation_bytes) : "unknown",
          gibibytes(plan.memory_bytes()),
          gibibytes(static_cast<double>(plan.wire_bytes_per_step))};
}

Json point_json(const PointPlan& plan) {
  return {{"ranks", plan.ranks},
          {"global_batch_size", plan.batch.global_batch_size},
          {"batch_size_per_rank", plan.batch.batch_size_per_rank},
          {"micro_batch_size", plan.batch.micro_batch_size},
          {"micro_batches", plan.batch.micro_batches()},
          {"units_per_step", plan.units_per_step},
          {"weight_bytes", plan.weight_bytes},
          {"shadow_bytes", plan.shadow_bytes},
          {"kept_bytes", plan.kept_bytes},
          {"gradient_bytes", plan.gradient_bytes},
          {"optimizer_bytes", plan.optimizer_bytes},
          {"activation_bytes", plan.activation_bytes > 0 ? Json(plan.activation_bytes) : Json()},
          {"memory_bytes", plan.memory_bytes()},
          {"wire_bytes_per_step", plan.wire_bytes_per_step}};
}

}  // namespace

double PointPlan::memory_bytes() const {
  return static_cast<double>(weight_bytes + gradient_bytes + optimizer_bytes + shadow_bytes +
                             kept_bytes) +
         activation_bytes;
}

PointPlan plan_point(const RunConfig& unresolved, std::int64_t ranks, bool keeps_weights) {
  const RunConfig config = resolved(unresolved);
  const ModelFacts facts = *find_model(config.model);
  PointPlan plan;
  plan.ranks = ranks;
  plan.batch = plan_batch(config, ranks);
  const std::int64_t units_per_sample = facts.unit == "tokens/sec" ? *config.sequence_length : 1;
  plan.units_per_step = static_cast<double>(plan.batch.global_batch_size * units_per_sample);
  const std::int64_t fp32 = 4 * facts.parameters;
  plan.weight_bytes = fp32;
  plan.gradient_bytes =
      config.reducer == Reducer::c10d ? 2 * fp32 : fp32;  // it has its own buckets
  plan.optimizer_bytes = states_of(*config.optimizer) * fp32;
  plan.shadow_bytes = config.precision == Precision::fp32 ? 0 : fp32 / 2;
  plan.kept_bytes = keeps_weights ? fp32 : 0;
  plan.activation_bytes = activation_bytes(config, facts, plan.batch.micro_batch_size);
  const std::int64_t payload = config.wire_dtype == WireDtype::fp32 ? fp32 : fp32 / 2;
  plan.wire_bytes_per_step = 2 * (ranks - 1) * payload / ranks;
  return plan;
}

std::string plan_text(const RunConfig& unresolved, const std::vector<std::int64_t>& ranks,
                      bool keeps_weights) {
  const RunConfig config = resolved(unresolved);
  const ModelFacts facts = *find_model(config.model);
  const std::string counted(facts.unit.substr(0, facts.unit.find('/')));
  std::vector<std::vector<std::string>> rows{{"ranks", "batch", "micro-batches", counted + "/step",
                                              "weights", "gradients", "optimizer", "activations",
                                              "memory", "sent/step"}};
  Json points = Json::array();
  for (const std::int64_t n : ranks) {
    const PointPlan plan = plan_point(config, n, keeps_weights);
    rows.push_back(row(plan));
    points.push_back(point_json(plan));
  }
  if (config.json)
    return record_text({{"model", config.model}, {"unit", facts.unit}, {"points", points}});
  return fmt::format(
      "{} of {}, {}{}, {}\n\n{}\nOf one rank: batch in {}, activations of one micro-batch (about), "
      "memory without libraries and\nworking space (about 1 GiB), bytes sent by a ring.\n",
      config.scaling == Scaling::weak ? "Weak scaling" : "Strong scaling", config.model,
      to_string(config.precision),
      facts.sequence_length > 0 ? fmt::format(", sequences of {} tokens", *config.sequence_length)
                                : "",
      to_string(*config.optimizer), text_table(rows), facts.sample);
}

}  // namespace scalemark

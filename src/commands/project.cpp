// Implements `scalemark project`.
#include <fmt/format.h>

#include <array>

#include "commands/requests.hpp"
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/text.hpp"
#include "report/tables.hpp"
#include "result/published_curve.hpp"

namespace scalemark {
namespace {

/// The largest number of ranks, and of samples of a step and of an epoch.
constexpr std::int64_t kMost = 100'000'000;

const std::vector<std::string> kAlgorithms{"auto", "ring", "tree", "doubling", "hierarchical"};

FlagGroup prediction_flags() {
  return {"Prediction",
          {{.name = "ranks",
            .value_name = "N,...",
            .text = "rank counts",
            .standard = "those measured, doubled up to 64 x as many",
            .often_used = true},
           {.name = "batch_size",
            .value_name = "N",
            .text = "samples of a rank, instead of the curve's"},
           {.name = "global_batch_size", .value_name = "N", .text = "samples of all ranks"},
           {.name = "link_gbit",
            .value_name = "GBIT/S",
            .text = "nominal rate of a node's link, not the measured one",
            .often_used = true},
           {.name = "link_latency_us",
            .value_name = "US",
            .text = "of a message between nodes, instead of the fitted one"},
           {.name = "ranks_per_node",
            .value_name = "N",
            .text = "ranks that share a node and its link",
            .standard = "what the curve tells",
            .often_used = true},
           {.name = "budget",
            .value_name = "AMOUNT",
            .text = "training: 300000steps, 90epochs, 1e9samples or 1e11tokens",
            .often_used = true},
           {.name = "samples_per_epoch", .value_name = "N", .text = "for a budget in epochs"},
           {.name = "base_budget",
            .value_name = "AMOUNT",
            .text = "of the smallest measured rank count, where it needs another"}}};
}

FlagGroup fit_flags() {
  return {"Fit",
          {{.name = "fit_ranks",
            .value_name = "N,...",
            .text = "rank counts of the curve to fit; the others are predicted, unseen",
            .often_used = true},
           {.name = "measured_link_gbit",
            .value_name = "GBIT/S",
            .text = "nominal rate of a node's link in the measured network"},
           {.name = "algorithm",
            .value_name = "NAME",
            .text = "of the allreduce; with --shard of its halves: auto, ring or hierarchical",
            .standard = "auto",
            .words = kAlgorithms}}};
}

std::optional<Budget> budget_of(const FlagReader& flags, const std::string& name) {
  const auto word = flags.text(name);
  if (!word) return std::nullopt;
  constexpr std::array kUnits{Budget::Unit::steps, Budget::Unit::epochs, Budget::Unit::samples,
                              Budget::Unit::units};
  for (const Budget::Unit unit : kUnits) {
    if (!word->ends_with(to_string(unit))) continue;
    const auto amount =
        parse_real(std::string_view(*word).substr(0, word->size() - to_string(unit).size()));
    if (amount && *amount > 0) return Budget{unit, *amount};
  }
  refuse_at("--" + name,
            quote(*word) +
                " is no amount above 0 of steps, epochs, samples or tokens, such as 300000steps");
}

Allreduce algorithm_of(const std::string& name) {
  check_choice("--algorithm", name, kAlgorithms);
  return allreduce_from(name).value();
}

ProjectionQuestions questions_of(const FlagReader& flags) {
  const auto samples = [&](const char* name) -> std::optional<double> {
    return flags.whole(name, 1, kMost);
  };
  ProjectionQuestions questions;
  questions.fit.fit_ranks = flags.wholes("fit_ranks", 1, kMost);
  questions.fit.link_gbit = flags.positive("measured_link_gbit");
  questions.ranks_per_node = flags.whole("ranks_per_node", 1, kMost);
  if (const auto name = flags.text("algorithm")) questions.fit.algorithm = algorithm_of(*name);
  questions.ranks = flags.wholes("ranks", 1, kMost);
  questions.batch_per_rank = samples("batch_size");
  questions.global_batch = samples("global_batch_size");
  questions.link_gbit = flags.positive("link_gbit");
  if (const auto latency = flags.positive("link_latency_us"))
    questions.link_latency_seconds = 1e-6 * *latency;
  questions.budget = budget_of(flags, "budget");
  questions.base_budget = budget_of(flags, "base_budget");
  questions.samples_per_epoch = samples("samples_per_epoch");
  return questions;
}

/// Returns the questions completed from the curve. What the curve does not state, a flag states for
/// both the curve and the prediction.
ProjectionQuestions completed(ProjectionQuestions questions, const MeasuredCurve& curve) {
  if (!curve.ranks_per_node) questions.fit.ranks_per_node = questions.ranks_per_node;
  const auto& measured = curve.ranks_per_node ? curve.ranks_per_node : questions.fit.ranks_per_node;
  if (questions.ranks_per_node == measured) questions.ranks_per_node.reset();
  return questions;
}

}  // namespace

CommandHelp commands::project_help(const CommandLine&) {
  return {"project",
          "A cost model fitted to a curve: what it predicts of other rank counts, links and "
          "batches, and of the time to a solution, with a band.",
          {"CURVE [--flag]..."},
          {prediction_flags(), fit_flags(), {"Output", record_flags()}},
          {"scalemark project curve.json --ranks 16,32,64",
           "scalemark project curve.json --link_gbit 100 --output projection.json",
           "scalemark project results/sweep --budget 90epochs --samples_per_epoch 1281167"},
          "CURVE: a record of scale, a folder of runs or of a sweep, or a published curve "
          "(configs/published). The model and how far it can be trusted: docs/projection.md.\n"
          "Exit codes: 0 projected, 2 usage or a curve that tells nothing, 6 a file that is "
          "unreadable, foreign or of an older schema.\n"};
}

ProjectRequest read_project_request(std::span<const std::string> arguments) {
  const FlagReader flags(commands::project_help({}), "curve", arguments);
  const std::vector<std::string> curves = flags.positionals("curve");
  if (curves.size() != 1)
    throw ConfigError(
        "scalemark project takes one curve: scalemark project CURVE.json, or the folder of a "
        "sweep");
  ProjectRequest request;
  request.curve = curves.front();
  request.questions = questions_of(flags);
  request.output = read_record_output(flags);
  return request;
}

MeasuredCurve read_curve(const std::string& argument) {
  if (is_published_curve(argument))
    return curve_of(read_published_curve(argument), std::filesystem::path(argument).stem().string(),
                    argument);
  return curve_of(read_labelled_set(argument));
}

ExitCode commands::project(const CommandLine& line) {
  const ProjectRequest request = read_project_request(line.arguments);
  const MeasuredCurve curve = read_curve(request.curve);
  const ProjectionQuestions questions = completed(request.questions, curve);
  const ModelFit fit = fit_model(curve, questions.fit);
  const Projection projection = scalemark::project(curve, fit, questions);
  put_out(make_projection_record(curve, fit, questions, projection), request.output,
          projection_table, projection_markdown);
  return ExitCode::ok;
}

}  // namespace scalemark

// See project.hpp.
#include "commands/project.hpp"

#include <fmt/format.h>

#include <array>

#include "commands/subcommands.hpp"
#include "config/arguments.hpp"
#include "config/flags.hpp"
#include "config/numbers.hpp"
#include "config/text.hpp"
#include "report/projection_table.hpp"
#include "result/published_curve.hpp"

namespace scalemark {
namespace {

/// Ranks, samples of a step and of an epoch.
constexpr std::int64_t kMost = 100'000'000;

cxxopts::Options project_options() {
  cxxopts::Options options("scalemark project",
                           "A cost model fitted to a curve: what it predicts of other rank counts, "
                           "links and batches, and of the time to a solution, with a band.\n");
  options.custom_help("CURVE [--flag]...");
  options.positional_help("");
  const auto text = cxxopts::value<std::string>();
  options.add_options("Prediction")(
      "ranks", "rank counts (default: those measured, doubled up to 64 x as many)", text, "N,...")(
      "batch_size", "samples of a rank, instead of the curve's", text, "N")(
      "global_batch_size", "samples of all ranks", text, "N")(
      "link_gbit", "nominal rate of a node's link, instead of the measured one", text, "GBIT/S")(
      "link_latency_us", "of a message between nodes, instead of the fitted one", text, "US")(
      "ranks_per_node", "ranks that share a node and its link (default: what the curve tells)",
      text, "N")("budget", "training asked for: 300000steps, 90epochs, 1e9samples or 1e11tokens",
                 text, "AMOUNT")("samples_per_epoch", "for a budget in epochs", text, "N")(
      "base_budget", "of the smallest measured rank count, where it needs another", text, "AMOUNT");
  options.add_options("Fit")("fit_ranks",
                             "rank counts of the curve to fit; the others are predicted, unseen",
                             text, "N,...")(
      "measured_link_gbit", "nominal rate of a node's link in the measured network", text,
      "GBIT/S")("algorithm", "allreduce: auto, ring, tree, doubling, hierarchical (default: auto)",
                text, "NAME");
  options.add_options("Output")("json", "the record on stdout, nothing else")(
      "markdown", "tables in Markdown")("output", "where the record is written", text, "FILE")(
      "h,help", "this text");
  options.add_options("")("curve", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"curve"});
  return options;
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
  check_choice("--algorithm", name, {"auto", "ring", "tree", "doubling", "hierarchical"});
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

/// What the curve does not tell of itself, the flag says of both, the curve and the prediction.
ProjectionQuestions completed(ProjectionQuestions questions, const MeasuredCurve& curve) {
  if (!curve.ranks_per_node) questions.fit.ranks_per_node = questions.ranks_per_node;
  const auto& measured = curve.ranks_per_node ? curve.ranks_per_node : questions.fit.ranks_per_node;
  if (questions.ranks_per_node == measured) questions.ranks_per_node.reset();
  return questions;
}

}  // namespace

std::string project_help() {
  return project_options().help({"Prediction", "Fit", "Output"}) +
         "\nCURVE: a record of scale, a folder of runs or of a sweep, or a published curve "
         "(configs/published). The model and how far it can be trusted: docs/projection.md.\n"
         "Exit codes: 0 projected, 2 usage or a curve that tells nothing, 6 a file that is "
         "unreadable, foreign or of an older schema.\n";
}

ProjectRequest read_project_request(std::span<const std::string> arguments) {
  const FlagReader flags(parse_flags(project_options(), canonical_flags(arguments)));
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
  if (wants_help(line.arguments)) return print_help(project_help());
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

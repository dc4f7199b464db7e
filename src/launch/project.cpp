// See project.hpp.
#include "launch/project.hpp"

#include "report/projection_table.hpp"
#include "result/published_curve.hpp"

namespace scalemark {
namespace {

/// What the curve does not tell of itself, the flag says of both, the curve and the prediction.
ProjectionQuestions completed(ProjectionQuestions questions, const MeasuredCurve& curve) {
  if (!curve.ranks_per_node) questions.fit.ranks_per_node = questions.ranks_per_node;
  const auto& measured = curve.ranks_per_node ? curve.ranks_per_node : questions.fit.ranks_per_node;
  if (questions.ranks_per_node == measured) questions.ranks_per_node.reset();
  return questions;
}

}  // namespace

MeasuredCurve read_curve(const std::string& argument) {
  if (is_published_curve(argument))
    return curve_of(read_published_curve(argument), std::filesystem::path(argument).stem().string(),
                    argument);
  return curve_of(read_labelled_set(argument));
}

ExitCode run_project(const ProjectRequest& request) {
  const MeasuredCurve curve = read_curve(request.curve);
  const ProjectionQuestions questions = completed(request.questions, curve);
  const ModelFit fit = fit_model(curve, questions.fit);
  const Projection projection = project(curve, fit, questions);
  put_out(make_projection_record(curve, fit, questions, projection), request.output,
          projection_table, projection_markdown);
  return ExitCode::ok;
}

}  // namespace scalemark

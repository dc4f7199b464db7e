// The keys of a study record.
#include "record/study.hpp"

namespace scalemark {
namespace record {

namespace {
constexpr const char* kNotRun = "not run, or not to its end";
constexpr const char* kNotPublished = "not published";
constexpr const char* kNotMeasured = "not measured (reason), or nothing is expected of it";
constexpr const char* kNotTold = "no launch of the study tells";
}  // namespace

void StepState::describe(Fields& fields) {
  fields.add("name", &StepState::name, "of the study's file").filled();
  fields.add("about", &StepState::about, "what it does").filled();
  fields.add("command", &StepState::command, "its words").filled();
  fields.add("result", &StepState::result, "path within the folder").filled();
  fields.add("status", &StepState::status, "what became of it");
  fields.add("exit_code", &StepState::exit_code, "of the command").otherwise(kNotRun);
  fields.add("reason", &StepState::reason, "why it is not `ok`");
  fields.add("seconds", &StepState::seconds, "that it took")
      .unit("s")
      .at_least(0)
      .otherwise(kNotRun);
}

void Published::describe(Fields& fields) {
  fields.add("value", &Published::value, "the figure").types({"number"}).otherwise(kNotPublished);
  fields.add("low", &Published::low, "bound of it").types({"number"}).otherwise(kNotPublished);
  fields.add("high", &Published::high, "bound of it").types({"number"}).otherwise(kNotPublished);
  fields.add("about", &Published::about, "whether it is published as about");
  fields.add("text", &Published::text, "where there is no number").otherwise(kNotPublished);
  fields.add("derived", &Published::derived, "how it follows from published numbers")
      .otherwise(kNotPublished);
}

void MeasuredFigure::describe(Fields& fields) {
  fields.add("value", &MeasuredFigure::value, "in the unit of the publication")
      .types({"number", "string", "boolean"});
  fields.add("ci95", &MeasuredFigure::ci95, "its 95 % interval").otherwise(kNotMeasured);
  fields.add("repeats", &MeasuredFigure::repeats, "or pairs of them").at_least(1);
}

void FigureDifference::describe(Fields& fields) {
  fields.add("amount", &FigureDifference::amount, "measured less published");
  fields.add("unit", &FigureDifference::unit, "`percent` of the published value, or `points`")
      .one_of({"percent", "points"});
}

void StudyFigure::describe(Fields& fields) {
  fields.add("name", &StudyFigure::name, "of the study's file").filled();
  fields.add("unit", &StudyFigure::unit, "of the publication").filled();
  fields.add("published", &StudyFigure::published, "what is published");
  fields.add("measured", &StudyFigure::measured, "null with a `reason`").otherwise(kNotMeasured);
  fields.add("reason", &StudyFigure::reason, "why it was not measured");
  fields.add("difference", &StudyFigure::difference, "of the two").otherwise(kNotMeasured);
  fields.add("expected", &StudyFigure::expected, "in words").otherwise(kNotMeasured);
  fields.add("verdict", &StudyFigure::verdict, "whether the whole interval is as expected")
      .otherwise(kNotMeasured);
}

void MeasuredOn::describe(Fields& fields) {
  fields.add("host", &MeasuredOn::host, "name").otherwise(kNotTold);
  fields.add("cpu_model", &MeasuredOn::cpu_model, "of CPU 0").otherwise(kNotTold);
  fields.add("gpu", &MeasuredOn::gpu, "of the launch")
      .types({"string", "object", "integer"})
      .otherwise(kNotTold);
  fields.add("virtualisation", &MeasuredOn::virtualisation, "what the kernel runs on")
      .otherwise(kNotTold);
  fields.add("kernel", &MeasuredOn::kernel, "name and version").otherwise(kNotTold);
  fields.add("mpi", &MeasuredOn::mpi, "version").otherwise(kNotTold);
  fields.add("nccl", &MeasuredOn::nccl, "version").otherwise(kNotTold);
}

}  // namespace record

void StudyResult::describe(Fields& fields) {
  using R = StudyResult;
  Envelope::describe(fields, "study");
  fields.add("study", &R::study, "name of its file").filled();
  fields.add("title", &R::title, "that the file says").filled();
  fields.add("publication", &R::publication, "whose experiment").filled();
  fields.add("published_on", &R::published_on, "hardware, framework and size").filled();
  fields.add("not_stated", &R::not_stated, "what the publication leaves open").each(1);
  fields.add("profile", &R::profile, "what was run").one_of({"laptop", "full"});
  fields.add("site", &R::site, "where").filled();
  fields
      .add("evidence", &R::evidence,
           "the effect itself, the same effect of other hardware, or bytes and plans alone")
      .one_of({"effect", "stand_in", "arithmetic"});
  fields.add("shows", &R::shows, "what the profile can show").filled();
  fields.add("differs", &R::differs, "from the publication").filled();
  fields.add("measured_on", &R::measured_on, "the first launch that tells");
  fields.add("steps", &R::steps, "in their order").filled();
  fields.add("figures", &R::figures, "published beside measured").filled();
  fields.add("wall_seconds", &R::wall_seconds, "of all steps").unit("s").at_least(0);
}

}  // namespace scalemark

// See study_record.hpp.
#include "analysis/study/study_record.hpp"

#include <fmt/format.h>

#include "analysis/diagnosis/diagnose.hpp"
#include "config/text.hpp"
#include "result/outcome.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {

Json step_json(const StepState& state) {
  return {{"name", state.name},
          {"about", state.about},
          {"command", state.command},
          {"result", state.result},
          {"status", to_string(state.status)},
          {"exit_code", or_null(state.exit_code)},
          {"reason", state.reason},
          {"seconds", or_null(state.seconds)}};
}

Json figure_json(const Figure& figure, const RowsOfSteps& rows) {
  const MeasuredFigure measured = measure_figure(figure, rows);
  const Json expect = figure.reading ? figure.reading->expect : Json();
  const auto verdict = judge(expect, measured);
  Json published = Json::object();
  for (const char* key : {"value", "low", "high", "about", "text", "derived"})
    published[key] =
        figure.published.value(key, key == std::string("about") ? Json(false) : Json());
  Json json{{"name", figure.name},
            {"unit", figure.published.at("unit")},
            {"published", published},
            {"measured", nullptr},
            {"reason", measured.reason},
            {"difference",
             figure_difference(figure.published.at("unit"),
                               or_null(published_number(figure.published)), measured.value)},
            {"expected", null_if_empty(expectation_words(expect))},
            {"verdict", verdict ? Json(to_string(*verdict)) : Json()}};
  if (!measured.value.is_null())
    json["measured"] = {
        {"value", measured.value}, {"ci95", or_null(measured.ci95)}, {"repeats", measured.repeats}};
  return json;
}

/// Of the first launch that tells.
Json measured_on(const RowsOfSteps& rows) {
  Json system = Json::object();
  for (const char* key : {"host", "cpu_model", "gpu", "virtualisation", "kernel", "mpi", "nccl"}) {
    system[key] = nullptr;
    for (const auto& [step, all] : rows)
      for (const StepRow& row : all)
        if (system[key].is_null()) system[key] = row.columns.value(key, Json());
  }
  return system;
}

Outcome outcome_of(const std::vector<StepState>& states) {
  const auto named = [&](StepStatus status) {
    std::vector<std::string> names;
    for (const StepState& state : states)
      if (state.status == status) names.push_back(state.name);
    return join(names, ", ");
  };
  if (const auto names = named(StepStatus::interrupted); !names.empty())
    return {Status::interrupted, "interrupted in " + names};
  if (const auto names = named(StepStatus::failed); !names.empty())
    return {Status::failed, "failed: " + names};
  if (const auto names = named(StepStatus::waiting); !names.empty())
    return {Status::interrupted, "not yet measured: " + names};
  if (named(StepStatus::ok).empty()) return {Status::failed, "every step was skipped"};
  return {};
}

/// Of the launches of each step: how many warn, and what the first of them says.
std::vector<std::string> warnings_of_launches(const RowsOfSteps& rows) {
  std::vector<std::string> warnings;
  for (const auto& [step, all] : rows) {
    std::size_t launches = 0, warned = 0;
    std::string first;
    for (const StepRow& row : all) {
      if (row.of_round || row.columns.value("row", Json()) != "launch") continue;
      ++launches;
      const std::string words = row.columns.at("warnings").get<std::string>();
      if (words.empty()) continue;
      ++warned;
      if (first.empty()) first = words.substr(0, words.find(';'));
    }
    if (warned > 0)
      warnings.push_back(
          fmt::format("{}: {} of {} launches have warnings: {}", step, warned, launches, first));
  }
  return warnings;
}

/// What a reader of the table alone would miss.
std::vector<std::string> warnings_of(const std::vector<StepState>& states, const Json& figures,
                                     const RowsOfSteps& rows) {
  std::vector<std::string> warnings = warnings_of_launches(rows);
  for (const StepState& state : states)
    if (state.status != StepStatus::ok)
      warnings.push_back(fmt::format("{}: {}{}{}", state.name, to_string(state.status),
                                     state.reason.empty() ? "" : ": ", state.reason));
  for (const Json& figure : figures)
    if (figure.at("verdict") == "opposite" || figure.at("verdict") == "not shown")
      warnings.push_back(fmt::format("{}: {}", figure.at("name").get<std::string>(),
                                     figure.at("verdict").get<std::string>()));
  return warnings;
}

}  // namespace

std::vector<StepState> states_of(const Json& record) {
  std::vector<StepState> states;
  for (const Json& step : record.at("steps")) {
    StepState state{step.at("name"), step.at("about"), step.at("command"), step.at("result")};
    state.status = *from_string<StepStatus>(step.at("status").get<std::string>());
    if (!step.at("exit_code").is_null()) state.exit_code = step.at("exit_code");
    state.reason = step.at("reason");
    if (!step.at("seconds").is_null()) state.seconds = step.at("seconds");
    states.push_back(std::move(state));
  }
  return states;
}

Json make_study_record(const Study& study, const StudyProfile& profile, const std::string& site,
                       const std::vector<StepState>& states, const RowsOfSteps& rows) {
  const Outcome outcome = outcome_of(states);
  Json record = envelope("study", outcome.status, outcome.reason);
  record["study"] = study.name;
  record["title"] = study.title;
  record["publication"] = study.publication;
  record["published_on"] = study.published_on;
  record["not_stated"] = study.not_stated;
  record["profile"] = profile.name;
  record["site"] = site;
  record["evidence"] = profile.evidence;
  record["shows"] = profile.shows;
  record["differs"] = profile.differs;
  record["measured_on"] = measured_on(rows);
  record["steps"] = Json::array();
  double seconds = 0;
  for (const StepState& state : states) {
    record["steps"].push_back(step_json(state));
    seconds += state.seconds.value_or(0);
  }
  record["figures"] = Json::array();
  for (const Figure& figure : profile.figures)
    record["figures"].push_back(figure_json(figure, rows));
  record["wall_seconds"] = seconds;
  record["warnings"] = warnings_of(states, record["figures"], rows);
  record["unavailable"] = Json::object();
  explain_nulls(record, "measured_on", "no launch of the study tells");
  explain_nulls(record, "steps", "not run, or not to its end");
  explain_nulls(record, "figures.published", "not published");
  explain_nulls(record, "figures", "not measured (reason), or nothing is expected of it");
  diagnosis::add_findings(record);
  return record;
}

}  // namespace scalemark

// The study record: a published experiment, repeated; its figures beside what was measured.
#pragma once

#include "record/parts.hpp"

namespace scalemark {

enum class StepStatus { ok, failed, skipped, interrupted, waiting };
constexpr auto names_of(StepStatus) {
  return Names{"ok", "failed", "skipped", "interrupted", "waiting"};
}
enum class FigureVerdict { shown, not_shown, opposite };
constexpr auto names_of(FigureVerdict) { return Names{"shown", "not shown", "opposite"}; }

namespace record {

/// What became of a step.
struct StepState {
  std::string name, about;
  std::vector<std::string> command;  ///< all words, as typed
  std::string result;                ///< path within the study's folder
  StepStatus status = StepStatus::waiting;
  Known<int> exit_code = {};
  std::string reason = {};  ///< why it is not ok
  Known<double> seconds = {};
  static void describe(Fields& fields);
};

/// A number as it is published, 18 or 18.7, or bounds of it; a text alone where there is none.
struct Published {
  Known<Json> value, low, high;
  bool about = false;
  Known<std::string> text, derived;
  static void describe(Fields& fields);
};
struct MeasuredFigure {
  Json value = nullptr;       ///< in the unit of the publication: a number, word or truth value
  Known<Interval> ci95 = {};  ///< Student's t on logarithms over repeats or pairs
  std::size_t repeats = 0;
  static void describe(Fields& fields);
};
struct FigureDifference {
  double amount = 0;
  std::string unit;
  static void describe(Fields& fields);
};
struct StudyFigure {
  std::string name, unit;
  Published published;
  Known<MeasuredFigure> measured;
  std::string reason;
  Known<FigureDifference> difference;
  Known<std::string> expected;
  Known<FigureVerdict> verdict;
  static void describe(Fields& fields);
};

/// The first launch that tells.
struct MeasuredOn {
  Known<std::string> host, cpu_model;
  Known<Json> gpu;
  Known<std::string> virtualisation, kernel, mpi, nccl;
  static void describe(Fields& fields);
};

}  // namespace record

struct StudyResult : record::Envelope {
  std::string study, title, publication, published_on;
  std::vector<std::string> not_stated;
  std::string profile, site, evidence, shows, differs;
  record::MeasuredOn measured_on;
  std::vector<record::StepState> steps;
  std::vector<record::StudyFigure> figures;
  double wall_seconds = 0;
  static void describe(Fields& fields);
};

}  // namespace scalemark

// A published experiment as a file (docs/schema/study_plan.schema.json): the steps that repeat it,
// and its figures with what is measured beside each.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"
#include "record/describe.hpp"
#include "record/study.hpp"

namespace scalemark {

/// scripts/netlab.
struct VirtualHosts {
  int hosts = 2;
  std::string rate;
  static void describe(Fields& fields);
};

/// One command of scalemark.
struct StudyStep {
  std::string name, about;
  std::vector<std::string> words;  ///< as typed, without scalemark and --output
  double minutes = 0;              ///< that it takes, about
  Json plan = nullptr;             ///< of a sweep, else null
  std::optional<VirtualHosts> netlab = {};
  std::map<std::string, std::string> environment = {};
  bool needs_gpu = false, needs_root = false;
  std::vector<int> accepted = {};  ///< exit codes beside 0 that are an answer

  bool is_sweep() const { return words.front() == "sweep"; }
  /// What prints JSON to stdout and measures nothing.
  bool is_arithmetic() const;
};

/// Returns the step that a word "{NAME}" names, which stands for its result.
std::optional<std::string> named_step(const std::string& word);

/// Settings, columns or members of a row, with the values that choose it.
using Where = Entries<Json>;

/// What shows the published effect, the whole interval included.
struct Expectation {
  std::optional<double> above = {}, below = {};
  std::optional<double> within_percent = {};  ///< of 1: no difference, by equivalence
  Json equals = nullptr;                      ///< null: not judged by it
  static void describe(Fields& fields);
};

/// Values of `of` among the results of a step where `where` holds, over those where `over` does.
struct Reading {
  std::string step, of;
  Where where = {};
  std::optional<Where> over = {};  ///< none: no ratio
  std::string over_step = {}, over_of = {};
  double times = 1;
  std::optional<Expectation> expect = {};  ///< none: nothing is judged
  static void describe(Fields& fields);
};

/// A published number, or bounds of it, in its unit; a text alone where there is no number.
struct PublishedFigure : record::Published {
  std::string unit;
  static void describe(Fields& fields);
};

struct Figure {
  std::string name, unit;
  record::Published published;
  std::optional<Reading> reading = {};  ///< none: this profile cannot tell
};

struct StudyProfile {
  std::string name;
  std::string evidence;  ///< effect, stand_in, arithmetic
  std::string shows, differs;
  int ranks = 1;  ///< the most of one launch
  std::vector<StudyStep> steps = {};
  std::vector<Figure> figures = {};

  static void describe(Fields& fields);
  double minutes() const;
  bool needs_gpu() const;
  bool needs_root() const;
};

struct Study {
  std::string name;  ///< of its file
  std::string title, publication, published_on;
  std::vector<std::string> not_stated;
  std::vector<StudyProfile> profiles = {};  ///< laptop, full

  /// ConfigError for a name that is none.
  const StudyProfile& profile(const std::string& name) const;
};

/// Throws ConfigError with the file and the JSON pointer.
Study read_study(const std::filesystem::path& path);
/// Parses the text of a study; `name`: of the study, `place`: for messages.
Study parse_study(std::string_view text, const std::string& name, const std::string& place);
/// The keys of such a file.
const Fields& study_file_fields();

}  // namespace scalemark

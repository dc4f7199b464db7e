// Lists the kinds of records, and checks a record by the type of its kind.
#include "result/record_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "record/baseline.hpp"
#include "record/comparison.hpp"
#include "record/inference.hpp"
#include "record/instances.hpp"
#include "record/preflight.hpp"
#include "record/projection.hpp"
#include "record/read.hpp"
#include "record/run.hpp"
#include "record/scaling.hpp"
#include "record/schema.hpp"
#include "record/study.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {

struct RecordKind {
  std::string_view name;
  const Fields& (*fields)();
  void (*check)(const Json& record);
};

template <typename T>
constexpr RecordKind described(std::string_view name) {
  return {name, &fields_of<T>,
          [](const Json& record) { record_from<T>(record, MissingKeys::allowed); }};
}

constexpr RecordKind kKinds[] = {
    described<Baseline>("baseline"),
    described<Comparison>("comparison"),
    described<HistoryResult>("history"),
    described<InferenceResult>("inference"),
    described<InstancesResult>("instances"),
    described<PreflightResult>("preflight"),
    described<ProjectionResult>("projection"),
    described<RunResult>("run"),
    described<ScalingCurve>("scaling"),
    described<StudyResult>("study"),
    described<Verdict>("verdict"),
};

/// Why keys of a record are null, by their paths: what every kind of record has last.
struct Reasons {
  Entries<std::string> unavailable;
  static void describe(Fields& fields) {
    fields.add("unavailable", &Reasons::unavailable).each(1).optional();
  }
};

const RecordKind& kind_named(std::string_view name) {
  return *std::ranges::find(kKinds, name, &RecordKind::name);
}

/// Adds newer keys to the record that `reasons` belongs to.
struct KeyAdder {
  int revision;
  Json& reasons;

  /// `path`: of the value, an object.
  void add(Json& value, const Fields& fields, const std::string& path) const {
    if (!value.is_object()) return;
    for (const Field& field : fields) {
      const std::string below = path.empty() ? field.key : path + "." + field.key;
      if (const auto found = value.find(field.key); found != value.end()) {
        if (field.shape->fields() != nullptr)
          add_to_parts(*found, field.shape->path(), *field.shape->fields(), below);
      } else if (field.first_revision > revision) {
        value[field.key] = nullptr;
        reasons[below] =
            fmt::format("not in records before schema_revision {}", field.first_revision);
      }
    }
  }

  /// `way`: from the value to its objects, as Shape::path(). Maps have no keys of their own.
  void add_to_parts(Json& value, std::string_view way, const Fields& fields,
                    const std::string& path) const {
    if (way.empty()) return add(value, fields, path);
    if (way.starts_with("[]") && value.is_array())
      for (Json& part : value) add_to_parts(part, way.substr(2), fields, path);
  }
};

}  // namespace

const std::vector<std::string>& record_kinds() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const RecordKind& kind : kKinds) all.emplace_back(kind.name);
    return all;
  }();
  return names;
}

int schema_revision() {
  static const int newest = [] {
    int found = 1;
    for (const RecordKind& kind : kKinds) found = std::max(found, newest_revision(kind.fields()));
    return found;
  }();
  return newest;
}

void check_values(const Json& record) {
  kind_named(kind_of(record)).check(record);
  part_from<Reasons>(record);
}

void add_newer_keys(Json& record) {
  const int revision = record.value("schema_revision", 1);
  const auto told = record.find("unavailable");
  if (revision >= schema_revision() || told == record.end() || !told->is_object()) return;
  Json reasons = std::move(*told);
  record["schema_revision"] = revision;  // the first records did not say it
  KeyAdder{revision, reasons}.add(record, kind_named(kind_of(record)).fields(), "");
  record["unavailable"] = std::move(reasons);
}

}  // namespace scalemark

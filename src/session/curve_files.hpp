// Manages the files of a scaling curve: FILE.json and its run records in FILE.runs/.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "config/curves.hpp"
#include "record/run.hpp"
#include "result/record_context.hpp"
#include "result/records.hpp"
#include "result/runs_folder.hpp"

namespace scalemark {

/// Holds a run of a curve that an earlier command left.
struct KeptRun {
  CurveSegment segment;
  std::string path;  ///< relative to the curve's folder
  RunResult record;
};

class CurveFiles {
 public:
  /// Checks that both places can be written. Throws ResultError where one cannot.
  explicit CurveFiles(const std::filesystem::path& curve_path, Older older = Older::kept)
      : curve_(curve_path, ResultFile::kReservedBytes, "--output", older), runs_(curve_.path()) {}
  const std::filesystem::path& path() const { return curve_.path(); }
  const std::filesystem::path& runs_folder() const { return runs_.path(); }
  /// Writes a run record of a point of so many ranks; returns its path relative to the curve's
  /// folder.
  std::string write_run(const RunResult& record, const CurveSegment& segment, std::int64_t ranks);
  /// Returns the runs of the rounds that an earlier command measured whole before it was ended:
  /// those of `plan` whose record is there, is ok, and for which `same` says that the run would be
  /// measured alike now. `ranks` are the sizes of the plan's points. A finished curve is not
  /// continued.
  std::vector<KeptRun> unfinished(
      const std::vector<CurveSegment>& plan, const std::vector<std::int64_t>& ranks,
      const std::function<bool(const RunResult& record, const CurveSegment& segment)>& same);
  /// Replaces the curve's record, then removes the run records that only the replaced curve named,
  /// or lays them beside it where that is kept.
  void write_curve(const Json& record);

 private:
  ResultFile curve_;
  RunsFolder runs_;
};

}  // namespace scalemark

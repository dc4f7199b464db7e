// Manages the files of a scaling curve: FILE.json and its run records in FILE.runs/.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "config/curves.hpp"
#include "record/run.hpp"
#include "result/records.hpp"
#include "result/runs_folder.hpp"

namespace scalemark {

/// Where, by what and under which variables something was measured.
struct Origins {
  const record::Build& build;
  const record::System& system;
  const Entries<std::string>& environment;  ///< as records have it
  /// Whether it is one program on one machine, with the same variables but for those of Slurm,
  /// whose next job goes on with what the last one began.
  bool operator==(const Origins& other) const;
};

/// Holds a run of a curve that an earlier command left.
struct KeptRun {
  CurveSegment segment;
  std::string path;  ///< relative to the curve's folder
  RunResult record;
};

class CurveFiles {
 public:
  /// Checks that both places can be written. Throws ResultError where one cannot.
  explicit CurveFiles(const std::filesystem::path& curve_path)
      : curve_(curve_path), runs_(curve_.path()) {}
  const std::filesystem::path& path() const { return curve_.path(); }
  const std::filesystem::path& runs_folder() const { return runs_.path(); }
  /// Writes a run record; returns its path relative to the curve's folder.
  std::string write_run(const RunResult& record, int ranks, int round, bool baseline);
  /// Returns the runs of the rounds that an earlier command measured whole before it was ended:
  /// those of `plan` whose record is there, is ok, and for which `same` says that the run would be
  /// measured alike now. `ranks` are the sizes of the plan's points. A finished curve is not
  /// continued.
  std::vector<KeptRun> unfinished(
      const std::vector<CurveSegment>& plan, const std::vector<std::int64_t>& ranks,
      const std::function<bool(const RunResult& record, const CurveSegment& segment)>& same);
  /// Replaces the curve's record, then removes the run records that only the replaced curve named.
  void write_curve(const Json& record);

 private:
  ResultFile curve_;
  RunsFolder runs_;
};

}  // namespace scalemark

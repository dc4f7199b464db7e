// Where a scaling curve lies: FILE.json and its run records in FILE.runs/.
#pragma once

#include <filesystem>
#include <string>

#include "result/records.hpp"
#include "result/runs_folder.hpp"

namespace scalemark {

class CurveFiles {
 public:
  /// Probes both places; throws ResultError.
  explicit CurveFiles(const std::filesystem::path& curve_path)
      : curve_(curve_path), runs_(curve_.path()) {}
  const std::filesystem::path& path() const { return curve_.path(); }
  /// Writes a run record; returns its path relative to the curve's folder.
  std::string write_run(const Json& record, int ranks, int round, bool baseline);
  /// Replaces the curve, then removes the run records that only the replaced curve named.
  void write_curve(const Json& record);

 private:
  ResultFile curve_;
  RunsFolder runs_;
};

}  // namespace scalemark

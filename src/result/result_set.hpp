// The launches that a user compares: a record, a folder of records, or the folder of a sweep.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "result/measured_launch.hpp"

namespace scalemark {

struct ResultSet {
  std::string label;
  std::string path;  ///< as the user wrote it
  std::vector<MeasuredLaunch> launches;
  std::vector<std::string> left_out;  ///< what of the path is not among them, and why
  Json baseline = nullptr;            ///< baseline_reference() where the path is a baseline file
};

/// Reads `path`: a record of kind run, inference, scaling or baseline; a folder with the journal of
/// a sweep, whose last entry of each launch counts; or any other folder, with every *.json below
/// it, in the order of their start. Runs that a curve of the same folder names belong to the curve.
/// Left out: records whose status is not ok, and of a folder those of other kinds. ConfigError
/// where the path does not exist, is a record without throughput, or holds none; ResultError where
/// a file is unreadable, foreign, corrupt or of another schema version.
ResultSet read_result_set(const std::string& label, const std::string& path);

/// "LABEL=PATH", or a path whose last part is the label. A word that exists as it is, is a path.
ResultSet read_labelled_set(const std::string& argument);

}  // namespace scalemark

// The engine's side of the hand-over to the supervisor that launched it (src/launch): what is known
// so far, so that a killed job still leaves a record, and the exit code that all ranks agreed on.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "error.hpp"
#include "result/records.hpp"

namespace scalemark {

/// Does nothing on other ranks than the root and where no supervisor is.
class Handover {
 public:
  Handover(const std::map<std::string, std::string>& environment, bool is_root);
  /// `finished`: records of the curves that are written already; `record`: of the curve that is
  /// measured, null where it has no run yet; `path`: of its file, empty without --output.
  void publish_partial(const Json& finished, const Json& record,
                       const std::filesystem::path& path) const;
  void publish_exit_code(ExitCode code) const;
  /// Instead of the exit code, where this rank aborts the job.
  void publish_abort(int exit_code, const std::string& message) const;

 private:
  std::filesystem::path folder_;  ///< empty: nobody to hand over to
};

}  // namespace scalemark

// The hand-over from the ranks of a job to the supervisor that launched it, through a private
// folder: what is known so far, so that a killed job still leaves a record, and the exit code that
// all ranks agreed on. Errors of ranks before MPI is up are told through it, too.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "error.hpp"
#include "platform/posix_file.hpp"
#include "result/records.hpp"

namespace scalemark {

/// Names the folder to the ranks.
inline constexpr const char* kHandoverVariable = "SMK_INTERNAL_HANDOVER";

/// What a curve has measured so far.
struct PartialResults {
  Json finished = Json::array();  ///< records of the curves that are written already
  Json record;                    ///< of the curve that is measured; null where it has no run yet
  std::string path;               ///< of its file; empty without --output
  static void describe(Fields& fields);
};

/// Why rank 0 aborted the job.
struct AbortNotice {
  int exit_code = 0;
  std::string reason;
  static void describe(Fields& fields);
};

/// The supervisor's end; the folder is gone with the object.
class HandoverFolder {
 public:
  /// Makes it in `parent`, where the results go, and sets the variable for the processes that are
  /// started from now on.
  explicit HandoverFolder(const std::filesystem::path& parent);

  const std::filesystem::path& path() const { return folder_.path(); }
  /// What the ranks agreed on; their results are written.
  std::optional<int> exit_code() const;
  std::optional<AbortNotice> abort() const;
  std::optional<PartialResults> partial() const;
  /// All ranks are in MPI's world and take a stop.
  bool listens() const;
  /// Rank 0 knows that it is to stop.
  bool stop_heard() const;
  /// Another value whenever rank 0 has given a sign of life; nothing before the first.
  std::optional<std::int64_t> pulse() const;

 private:
  TemporaryFolder folder_;
};

/// The ranks' end. Does nothing where no supervisor is, and but for an abort nothing on other ranks
/// than the root. Never throws: a rank that cannot hand over still measures.
class Handover {
 public:
  Handover(const std::map<std::string, std::string>& environment, bool is_root);
  /// Whether there is a supervisor, which hears what is said here.
  bool is_heard() const { return !folder_.empty(); }
  void publish_partial(const PartialResults& partial) const;
  void publish_exit_code(ExitCode code) const;
  /// Instead of the exit code, where this rank aborts the job: rank 0 may be the one that hangs.
  void publish_abort(const AbortNotice& abort) const;
  void publish_listens() const;
  void publish_stop_heard() const;
  /// A sign of life.
  void beat() const;

 private:
  void publish(const char* name, const std::string& text) const;

  std::filesystem::path folder_;  ///< empty: nobody to hand over to
  bool speaks_ = false;           ///< the root, where somebody listens
};

/// Tells what keeps this process from measuring; a rank of several names itself and its host where
/// it is not the first. A message that another rank of this host tells, or that rank 0 tells of
/// itself, is told once: for that the ranks of a launch wait a moment, at most two seconds. The
/// supervisor that launched the job hears it, too. The caller ends with `code`, which ends the job.
void say_error_before_mpi(ExitCode code, const std::string& what);

}  // namespace scalemark

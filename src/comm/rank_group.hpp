// Control between ranks, always MPI: broadcast, gather, a sleeping barrier, deadlines, subgroups
// and the agreed stop. No gradient ever passes here; see communicator.hpp for data. LibTorch- and
// CUDA-free.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/watchdog.hpp"
#include "error.hpp"

namespace scalemark {

class MpiWorld;  // the MPI thread and MPI_COMM_WORLD; defined in comm/mpi_world.hpp, seen only
                 // inside comm/

/// What all ranks of a group throw together when one of them failed: each can leave by itself, no
/// abort is needed.
struct AgreedError : Error {
  using Error::Error;
};

/// The same while they measure: there is something to leave a record of.
struct AgreedWhileMeasuring : AgreedError {
  using AgreedError::AgreedError;
};

class RankGroup {
 public:
  /// Initialises MPI (on its own thread) under the watchdog's start-up deadline. Once a process.
  /// Sets unset OMPI_MCA_* variables that scalemark needs before MPI_Init (srun has no --mca).
  /// Throws EnvironmentError where MPI cannot start.
  static RankGroup world(Watchdog& watchdog);

  int rank() const;
  int size() const;
  int local_rank() const;  ///< among the ranks of this host
  int local_size() const;
  std::string library_version() const;  ///< MPI_Get_library_version, first line

  /// All of these sleep while they wait and obey the watchdog's deadline. All ranks of the group
  /// must call them.
  void barrier();
  std::string broadcast(std::string value, int root = 0);
  /// At root: one string per rank, in rank order; elsewhere empty.
  std::vector<std::string> gather(const std::string& value, int root = 0);
  std::vector<std::string> all_gather(const std::string& value);
  /// Element-wise sum, all ranks get it.
  std::vector<double> all_sum(std::vector<double> values);

  /// Ranks with the same color form a group, ordered by rank. color < 0: this rank gets nullopt.
  std::optional<RankGroup> split(int color) const;

  /// Every rank says how it fared; when any failed, all ranks throw AgreedError with the agreed
  /// code (precedence 7, 2, 5, 4, 6) and a message that names the ranks and their words. Call at
  /// the end of every phase that can fail on one rank.
  void agree(ExitCode code, const std::string& message);

  /// The same for a callable: runs it, agrees on its outcome.
  template <typename F>
  void agree_on(F&& f) {
    ExitCode code = ExitCode::ok;
    std::string message;
    try {
      f();
    } catch (const std::exception& error) {
      code = exit_code_of(error);
      message = words_of(error);
    }
    agree(code, message);
  }

  Watchdog& watchdog() const;
  /// CPU seconds of communication: of the MPI thread, and of others in MPI calls.
  double communication_cpu_seconds() const;
  /// Collective; MPI_Finalize on the last group of the process. Also done by the destructor of the
  /// world's last copy, unless an abort is under way.
  static void finalize(RankGroup& world);

  struct Impl;
  std::shared_ptr<Impl> impl() const { return impl_; }

 private:
  friend class AgreedStop;
  explicit RankGroup(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

/// Sums that all ranks agree on one step late: posted at step s, read at step s+1, as one small
/// nonblocking reduction. SIGTERM, --target_ci and --max_seconds stop all ranks at the same step
/// through it.
class AgreedStop {
 public:
  explicit AgreedStop(RankGroup& group);
  ~AgreedStop();
  /// Posts this step's words and returns the sums of the step before (empty at the first call).
  /// Every rank posts the same number of values.
  std::vector<double> exchange(std::span<const double> words);
  /// The sums of the last posted step; ends the exchange.
  std::vector<double> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scalemark

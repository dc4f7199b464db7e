// Provides control between ranks, always by MPI: broadcast, gather, a sleeping barrier, deadlines,
// subgroups and the agreed stop. Gradients never pass here; see communicator.hpp for data.
// LibTorch- and CUDA-free.
#pragma once

#include <cstdint>
#include <map>
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

/// Thrown by all ranks of a group together when one of them failed. Each can leave by itself, so no
/// abort is needed.
struct AgreedError : Error {
  using Error::Error;
};

/// Thrown instead of AgreedError while the ranks measure, when there are results to leave a record
/// of.
struct AgreedWhileMeasuring : AgreedError {
  using AgreedError::AgreedError;
};

/// Is called, in place of a message on stderr, with what keeps MPI from starting where MPI itself
/// ends the process, from within exit(): a launcher may wait for ever for such a rank, and so
/// whoever watches it has to know.
using StartFailureTold = void (*)(ExitCode, const std::string&);
void tell_failed_start_by(StartFailureTold tells);

/// A group of ranks that exchange control messages. Copies share the group.
class RankGroup {
 public:
  /// Initialises MPI (on its own thread) under the watchdog's start-up deadline. Call it once in a
  /// process. Sets unset OMPI_MCA_* variables that scalemark needs before MPI_Init (srun has no
  /// --mca). Throws EnvironmentError where MPI cannot start.
  static RankGroup world(Watchdog& watchdog);

  int rank() const;
  int size() const;
  int local_rank() const;  ///< among the ranks of this host
  int local_size() const;
  std::string library_version() const;  ///< MPI_Get_library_version, first line

  /// All collectives sleep while they wait and obey the watchdog's deadline. All ranks of the group
  /// must call them.
  void barrier();
  std::string broadcast(std::string value, int root = 0);
  /// Returns at the root one string for each rank, in rank order, and an empty list elsewhere.
  std::vector<std::string> gather(const std::string& value, int root = 0);
  std::vector<std::string> all_gather(const std::string& value);
  /// Returns the element-wise sum over ranks at all ranks.
  std::vector<double> all_sum(std::vector<double> values);

  /// Divides the group: ranks with the same color form a group, ordered by rank. A rank with color
  /// < 0 gets nullopt.
  std::optional<RankGroup> split(int color) const;

  /// Lets every rank report its outcome. When any failed, all ranks throw AgreedError with the
  /// agreed code (precedence 7, 2, 5, 4, 6) and a message that names the ranks and their texts.
  /// Call it at the end of every phase that can fail on one rank.
  void agree(ExitCode code, const std::string& message);

  /// Runs a callable and agrees on its outcome.
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
  /// Returns the CPU seconds of communication: those of the MPI thread, and those of other threads
  /// in MPI calls.
  double communication_cpu_seconds() const;
  /// Calls MPI_Finalize on the last group of the process. The call is collective. The destructor of
  /// the world's last copy does the same unless an abort is in progress.
  static void finalize(RankGroup& world);

  struct Impl;
  std::shared_ptr<Impl> impl() const { return impl_; }

 private:
  friend class AgreedStop;
  explicit RankGroup(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

/// Sums values such that all ranks agree on them one step late: they are posted at step s and read
/// at step s+1, as one small nonblocking reduction. SIGTERM, --target_ci and --max_seconds stop all
/// ranks at the same step through it.
class AgreedStop {
 public:
  explicit AgreedStop(RankGroup& group);
  ~AgreedStop();
  /// Posts the values of this step and returns the sums of the step before (empty at the first
  /// call). Every rank must post the same number of values.
  std::vector<double> exchange(std::span<const double> words);
  /// Returns the sums of the last posted step and ends the exchange.
  std::vector<double> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns those of the parameters `names` of Open MPI (MCA) that this MPI library has, as it has
/// them after MPI_Init, whether they came from variables, files or mpirun's command line. Numbers
/// and truth values are text. The call is not collective. Throws CommError where the MPI thread has
/// ended.
std::map<std::string, std::string> mca_parameters(RankGroup& group,
                                                  const std::vector<std::string>& names);

}  // namespace scalemark

// Internal to comm/: the settings of Open MPI that scalemark depends on. srun has no --mca, so
// defaults go through the environment before MPI_Init; the allreduce algorithm is chosen by size
// through MPI_T.
#pragma once

#include <cstdint>
#include <string>

#include "comm/mpi.hpp"

namespace scalemark {

/// Sets what is unset among the OMPI_MCA_* variables that scalemark needs, before MPI_Init.
void set_mca_defaults();

/// Values of coll_libnbc_iallreduce_algorithm.
enum class AllreduceAlgorithm : int { library = 0, ring = 1, recursive_doubling = 4 };

/// Open MPI picks a binomial tree for an in-place nonblocking allreduce, which moves the whole
/// buffer log2(N) times. Ring is right for large buffers, recursive doubling for small ones. Used
/// in turn (MpiWorld) only.
class AllreduceSelector {
 public:
  static constexpr std::int64_t ring_from_bytes = 64 * 1024;

  /// After MPI_Init. `user_value`: what the user has set (empty: nothing), which then stands for
  /// all sizes.
  explicit AllreduceSelector(std::string user_value);

  /// What an allreduce of `bytes` runs with.
  AllreduceAlgorithm choice(std::int64_t bytes) const;

  /// Calls `post`, which starts an allreduce of `bytes`, and gives its result. The choice ends with
  /// the call: Open MPI makes communicators by allreduces of its own, and ranks that stood at
  /// different choices would wait for each other for ever.
  template <typename F>
  auto post(std::int64_t bytes, F post) {
    set(choice(bytes));
    auto result = post();
    set(AllreduceAlgorithm::library);
    return result;
  }

  /// Before MPI_Finalize; choice() and description() stay.
  void close();
  /// For the record.
  std::string description() const;

 private:
  void set(AllreduceAlgorithm algorithm);

  std::string user_value_;
  MPI_T_cvar_handle variable_{};
  bool by_call_ = false;  ///< else the library cannot be told, and the environment's ring stands
  bool open_ = false;
};

/// Bytes that each rank sends for an allreduce of `bytes` payload over `ranks` ranks.
/// Ring: ring_allreduce_bytes(); N blocks differ by at most one element. Recursive doubling: bytes
/// x log2 of the largest power of two in N, and once more where N is none.
std::int64_t allreduce_wire_bytes(AllreduceAlgorithm algorithm, std::int64_t bytes, int ranks);

/// What the transport is derived from.
struct TransportFacts {
  int ranks = 1;
  int hosts = 1;
  std::string pml = {};   ///< OMPI_MCA_pml; empty: unset
  std::string btl = {};   ///< OMPI_MCA_btl
  bool fabric = false;    ///< a host channel adapter is present: UCX or libfabric may be chosen
  int library_major = 4;  ///< of Open MPI; 0: another MPI, of whose transport nothing is known
};
/// "vader" / "sm", "tcp", "vader+tcp", "ucx" …; empty where it cannot be derived.
std::string derive_transport(const TransportFacts& facts);
/// This process's environment and adapters.
TransportFacts transport_facts(int ranks, int hosts);

}  // namespace scalemark

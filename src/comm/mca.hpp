// Handles the settings of Open MPI on which scalemark depends. srun has no --mca, so defaults are
// set in the environment before MPI_Init; the allreduce algorithm is selected by size through
// MPI_T. It is internal to comm/.
#pragma once

#include <cstdint>
#include <string>

#include "comm/mpi.hpp"

namespace scalemark {

/// Sets the OMPI_MCA_* variables that scalemark needs and that are unset. Call it before MPI_Init.
void set_mca_defaults();

/// The values of coll_libnbc_iallreduce_algorithm.
enum class AllreduceAlgorithm : int { library = 0, ring = 1, recursive_doubling = 4 };

/// Selects the algorithm of an allreduce by its size. For an in-place nonblocking allreduce, Open
/// MPI picks a binomial tree, which moves the whole buffer log2(N) times. A ring is right for large
/// buffers, recursive doubling for small ones. Use it only while holding the MPI lock (MpiWorld).
class AllreduceSelector {
 public:
  static constexpr std::int64_t ring_from_bytes = 64 * 1024;

  /// Call it after MPI_Init. `user_value` is what the user has set, which then holds for all sizes;
  /// it is empty where nothing is set.
  explicit AllreduceSelector(std::string user_value);

  /// Returns the algorithm of an allreduce of `bytes`.
  AllreduceAlgorithm choice(std::int64_t bytes) const;

  /// Calls `post`, which starts an allreduce of `bytes`, and returns its result. The choice ends
  /// with the call: Open MPI creates communicators by allreduces of its own, and ranks with
  /// different choices would wait for each other forever.
  template <typename F>
  auto post(std::int64_t bytes, F post) {
    set(choice(bytes));
    auto result = post();
    set(AllreduceAlgorithm::library);
    return result;
  }

  /// Call it before MPI_Finalize. choice() and description() remain valid.
  void close();
  /// Returns the text for the record.
  std::string description() const;

 private:
  void set(AllreduceAlgorithm algorithm);

  std::string user_value_;
  MPI_T_cvar_handle variable_{};
  bool by_call_ = false;  ///< false: the ring set in the environment is used
  bool open_ = false;
};

/// Returns the bytes that each rank sends for an allreduce of `bytes` payload over `ranks` ranks.
/// For a ring this is ring_allreduce_bytes(); its N blocks differ by at most one element. For
/// recursive doubling it is bytes x log2 of the largest power of two in N, and one more time the
/// bytes where N is no power of two.
std::int64_t allreduce_wire_bytes(AllreduceAlgorithm algorithm, std::int64_t bytes, int ranks);

/// The facts from which the transport is derived.
struct TransportFacts {
  int ranks = 1;
  int hosts = 1;
  std::string pml = {};       ///< OMPI_MCA_pml; empty: unset
  std::string btl = {};       ///< OMPI_MCA_btl
  bool fabric = false;        ///< a host channel adapter is present: UCX or libfabric may be chosen
  int library_major = 4;      ///< version of Open MPI; 0: another MPI, whose transport is unknown
  bool shares_memory = true;  ///< its component for ranks of one host has mapped its segment
};
/// Returns "vader" / "sm", "tcp", "vader+tcp", "ucx" …, or an empty text where the transport cannot
/// be derived.
std::string derive_transport(const TransportFacts& facts);
/// Reads the facts from the environment and the adapters of this process.
TransportFacts transport_facts(int ranks, int hosts);

}  // namespace scalemark

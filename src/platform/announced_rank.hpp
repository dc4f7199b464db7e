// This task's rank as its launcher announces it, for what must be said before MPI is up.
#pragma once

#include <cstdlib>

namespace scalemark {

/// The text of the first rank variable that is set (Open MPI, PMIx, PMI, Slurm); null outside a
/// launcher.
inline const char* announced_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return rank;
  return nullptr;
}

/// The same as a number; 0 outside a launcher.
inline int rank_before_mpi() {
  const char* rank = announced_rank();
  return rank ? std::atoi(rank) : 0;
}

/// Whether a launcher says that there are no other ranks, or that there is no launcher.
inline bool is_announced_alone() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* size = std::getenv(name)) return std::atoi(size) == 1;
  return !announced_rank();
}

/// Its rank among the tasks of its host; 0 outside a launcher.
inline int announced_local_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (const char* rank = std::getenv(name)) return std::atoi(rank);
  return 0;
}

/// Set by scripts/gpu_check: ranks may share a GPU, which is an error otherwise.
inline constexpr const char* kSharedGpuVariable = "SMK_INTERNAL_SHARED_GPU";

}  // namespace scalemark

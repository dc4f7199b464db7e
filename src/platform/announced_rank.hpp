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

}  // namespace scalemark

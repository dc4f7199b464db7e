// The ranks of an MPI test: what tests/support/mpi_main.cpp sets up before the first test runs.
#pragma once

#include <string>

#include "comm/rank_group.hpp"

namespace scalemark::testing {

/// All ranks that mpirun started. Every test case runs on every rank, in the same order.
RankGroup& world();

/// Some settings and their tests are Open MPI's alone; a build for MPICH skips these.
inline bool is_open_mpi() {
  return world().library_version().find("Open MPI") != std::string::npos;
}

}  // namespace scalemark::testing

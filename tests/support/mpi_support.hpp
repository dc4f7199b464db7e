// The ranks of an MPI test: what tests/support/mpi_main.cpp sets up before the first test runs.
#pragma once

#include "comm/rank_group.hpp"

namespace scalemark::testing {

/// All ranks that mpirun started. Every test case runs on every rank, in the same order.
RankGroup& world();

}  // namespace scalemark::testing

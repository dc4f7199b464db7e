// Open MPI's parameters as the library has them after MPI_Init, wherever they came from: variables,
// files or mpirun's command line.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "comm/rank_group.hpp"

namespace scalemark {

/// Those of `names` that this MPI library has, by MPI_T; numbers and truth values as text. Without
/// a group's other ranks. Throws CommError where the MPI thread is gone.
std::map<std::string, std::string> mca_parameters(RankGroup& group,
                                                  const std::vector<std::string>& names);

}  // namespace scalemark

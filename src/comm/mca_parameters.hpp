// Reads Open MPI's parameters as the library has them after MPI_Init, whether they came from
// variables, files or mpirun's command line.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "comm/rank_group.hpp"

namespace scalemark {

/// Returns those of `names` that this MPI library has, by MPI_T, with numbers and truth values as
/// text. The call is not collective. Throws CommError where the MPI thread has ended.
std::map<std::string, std::string> mca_parameters(RankGroup& group,
                                                  const std::vector<std::string>& names);

}  // namespace scalemark

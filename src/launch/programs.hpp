// The programs that a launch needs: the launcher itself, and what it would reach other hosts by.
#pragma once

#include <map>
#include <string>

#include "launch/launch.hpp"

namespace scalemark {

/// Without ssh and rsh in PATH Open MPI 4's mpirun ends, also where it has no other host to reach.
/// There, and where a resource manager reaches them, its component that wants one is left out: on
/// one host `isolated` remains of its framework plm. What the user has set of it stands.
/// `elsewhere`: ranks are to run on other hosts too.
void do_without_ssh(LaunchRequest& request, const std::map<std::string, std::string>& environment,
                    bool elsewhere);

/// Of a request that is complete. Throws EnvironmentError where one is not in PATH. Of what srun
/// starts on other hosts nothing is known here.
void require_programs(const LaunchRequest& request);

}  // namespace scalemark

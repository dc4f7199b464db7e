// Errors of ranks before MPI is up: whoever has one says it, once per message and host.
#pragma once

#include <string>

#include "error.hpp"

namespace scalemark {

/// Tells what keeps this process from measuring; a rank of several names itself and its host where
/// it is not the first. A message that another rank of this host tells, or that rank 0 tells of
/// itself, is told once: for that the ranks of a launch wait a moment, at most two seconds. The
/// supervisor that launched the job hears it, too. The caller ends with `code`, which ends the job.
void say_error_before_mpi(ExitCode code, const std::string& what);

}  // namespace scalemark

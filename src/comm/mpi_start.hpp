// MPI_Init, made to end as everything else does.
#pragma once

namespace scalemark {

/// MPI_Init_thread with MPI_THREAD_SERIALIZED; false where this MPI wants all calls from the thread
/// that started it. An MPI that cannot start ends the process from within,
/// with status 1 and its own message: here with exit code 7 and what to look at. The limit of
/// descriptors is raised to what is allowed; too few are refused. Throws EnvironmentError, and
/// ResultError where several ranks may not share files of the size that they need.
bool start_mpi();

}  // namespace scalemark

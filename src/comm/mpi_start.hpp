// Starts MPI such that a failure ends like every other error.
#pragma once

namespace scalemark {

/// Calls MPI_Init_thread with MPI_THREAD_SERIALIZED. Returns false where this MPI requires all
/// calls from the thread that started it. An MPI that cannot start ends the process from within,
/// with status 1 and its own message; here the process then ends with exit code 7 and a hint. The
/// limit of descriptors is raised as far as allowed; too few are refused. Throws EnvironmentError,
/// and ResultError where several ranks may not share files of the size that they need.
bool start_mpi();

}  // namespace scalemark

// An MPI whose sums are wrong from the CORRUPT_FROM-th on, at rank 1, and whose abort hangs where
// HANG_IN_ABORT is set: to be preloaded.
#include <unistd.h>

#include <cstdlib>

#include "comm/mpi.hpp"

extern "C" int MPI_Iallreduce(const void* send, void* receive, int count, MPI_Datatype type,
                              MPI_Op op, MPI_Comm communicator, MPI_Request* request) {
  static const char* const from = std::getenv("CORRUPT_FROM");
  static int calls = 0;
  int rank = 0;
  PMPI_Comm_rank(communicator, &rank);
  constexpr int kControl = 100;  // what ranks agree on is shorter
  if (from && rank == 1 && count > kControl && ++calls >= std::atoi(from) && send == MPI_IN_PLACE &&
      type == MPI_FLOAT)
    static_cast<float*>(receive)[count / 2] += 1;
  return PMPI_Iallreduce(send, receive, count, type, op, communicator, request);
}

extern "C" int MPI_Abort(MPI_Comm communicator, int code) {
  while (std::getenv("HANG_IN_ABORT")) pause();
  return PMPI_Abort(communicator, code);
}

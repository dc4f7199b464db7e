// Holds the state of a RankGroup. It is internal to comm/.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "comm/mpi.hpp"
#include "comm/mpi_world.hpp"
#include "comm/rank_group.hpp"

namespace scalemark {

struct RankGroup::Impl {
  std::shared_ptr<MpiWorld> world;
  MPI_Comm communicator = MPI_COMM_NULL;
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
  int hosts = 1;  ///< number of hosts of the ranks of this group

  /// Takes ownership of `communicator`. Call it while holding the MPI lock (MpiWorld).
  Impl(std::shared_ptr<MpiWorld> world, MPI_Comm communicator);
  ~Impl() {
    if (communicator == MPI_COMM_WORLD) return;
    world->release([comm = communicator]() mutable { MPI_Comm_free(&comm); });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Runs one nonblocking collective: `post(&request)` calls MPI and returns its result.
  template <typename Post>
  void run(const char* phase, const char* call, Post post) {
    world->run(phase, [post = std::move(post), call] {
      MPI_Request request = MPI_REQUEST_NULL;
      check_mpi(post(&request), call);
      return std::vector{request};
    });
  }
};

}  // namespace scalemark

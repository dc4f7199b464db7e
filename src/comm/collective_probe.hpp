// Times and checks collectives over all ranks of a group, in host memory: MPI's own in a bare loop
// on the MPI thread, and the allreduce that training uses. Collective itself. LibTorch-free.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "measure/bus_bandwidth.hpp"

namespace scalemark {

/// Who moves the data.
enum class Carrier { mpi, scalemark };

struct CollectiveTiming {
  std::int64_t bytes = 0;  ///< collective_bytes()
  double seconds = 0;      ///< median over repetitions of the rank for which it is longest
  int repetitions = 0;
  std::int64_t wrong_elements = 0;  ///< that the check found, over all ranks
  std::string first_wrong;          ///< "rank 1: element 7 is 12, not 11"; empty: none
};

class CollectiveProbe {
 public:
  /// Two buffers of `largest` bytes each are taken. For two ranks and more.
  CollectiveProbe(RankGroup& group, std::int64_t largest);

  /// One untimed collective of known data, whose every element is compared on every rank; then at
  /// least 3 timed ones, one behind the other, for about `seconds`. `corrupt`: this rank damages
  /// one element before the comparison (--inject corrupt_allreduce). Carrier::scalemark has an
  /// allreduce only. Throws CommError.
  CollectiveTiming measure(Collective collective, Carrier carrier, std::int64_t asked_bytes,
                           double seconds, bool corrupt = false);

  const Communicator& communicator() const { return *communicator_; }

 private:
  std::vector<double> run(Collective collective, Carrier carrier, std::int64_t bytes,
                          int repetitions);
  void fill(Collective collective, std::size_t elements);
  std::string compare(Collective collective, std::size_t elements, std::int64_t& wrong) const;
  std::vector<double> of_all_ranks(double mine);

  RankGroup& group_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<float> sent_, received_;  ///< allreduce and broadcast work in received_
};

}  // namespace scalemark

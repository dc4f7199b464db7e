// Implements the carriers in host memory. The one of NCCL is in comm/cuda/.
#include "comm/collective_carrier.hpp"

#include <algorithm>

#include "comm/communicator.hpp"
#include "comm/nccl_factory.hpp"
#include "comm/rank_group_impl.hpp"
#include "error.hpp"
#include "measure/clock.hpp"

namespace scalemark {
namespace {

/// Returns the seconds of every call of `work`, each after a call of `prepare`.
template <typename Work, typename Prepare>
std::vector<double> each_timed(int repetitions, Work work, Prepare prepare) {
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(repetitions));
  for (int i = 0; i < repetitions; ++i) {
    prepare();
    const double start = steady_seconds();
    work();
    seconds.push_back(steady_seconds() - start);
  }
  return seconds;
}

/// Moves data between buffers in host memory.
class HostCarrier : public CollectiveCarrier {
 public:
  explicit HostCarrier(std::int64_t largest) : received_(static_cast<std::size_t>(largest / 4)) {}
  bool in_place(Collective collective) const override {
    return collective == Collective::allreduce || collective == Collective::broadcast;
  }
  void put_sent(std::size_t first, std::span<const float> values) override {
    if (sent_.size() < first + values.size()) sent_.resize(received_.size());
    std::ranges::copy(values, sent_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  void put_received(std::size_t first, std::span<const float> values) override {
    if (first + values.size() > received_.size())
      throw CommError("collective: more than the carrier was made for");
    std::ranges::copy(values, received_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  void get_received(std::size_t first, std::span<float> values) override {
    std::copy_n(received_.begin() + static_cast<std::ptrdiff_t>(first), values.size(),
                values.begin());
  }

 protected:
  std::vector<float> sent_, received_;
};

class MpiCarrier : public HostCarrier {
 public:
  MpiCarrier(RankGroup& group, std::int64_t largest) : HostCarrier(largest), impl_(group.impl()) {}

  std::vector<double> run(Collective collective, std::size_t elements, int repetitions) override {
    return impl_->world->call("collective", [&] {
      // The root of a broadcast goes on before anybody has the data, so that one would follow the
      // other without ever arriving. All begin together, and the last one's time is the arrival.
      const auto prepare = [&] {
        if (collective == Collective::broadcast)
          check_mpi(MPI_Barrier(impl_->communicator), "MPI_Barrier");
      };
      return each_timed(
          repetitions, [&] { call_mpi(collective, static_cast<int>(elements)); }, prepare);
    });
  }

 private:
  void call_mpi(Collective collective, int elements) {
    float* const to = received_.data();
    const MPI_Comm comm = impl_->communicator;
    const int block = elements / impl_->size;
    switch (collective) {
      case Collective::allreduce:
        return check_mpi(MPI_Allreduce(MPI_IN_PLACE, to, elements, MPI_FLOAT, MPI_SUM, comm),
                         "MPI_Allreduce");
      case Collective::allgather:
        return check_mpi(MPI_Allgather(sent_.data(), block, MPI_FLOAT, to, block, MPI_FLOAT, comm),
                         "MPI_Allgather");
      case Collective::alltoall:
        return check_mpi(MPI_Alltoall(sent_.data(), block, MPI_FLOAT, to, block, MPI_FLOAT, comm),
                         "MPI_Alltoall");
      case Collective::broadcast:
      case Collective::reduce_scatter:  // nobody asks for it yet
        break;
    }
    check_mpi(MPI_Bcast(to, elements, MPI_FLOAT, 0, comm), "MPI_Bcast");
  }

  std::shared_ptr<RankGroup::Impl> impl_;
};

class ScalemarkCarrier : public HostCarrier {
 public:
  ScalemarkCarrier(RankGroup& group, std::int64_t largest)
      : HostCarrier(largest), communicator_(make_communicator(CommunicatorKind::mpi, group, -1)) {}
  bool carries(Collective collective) const override { return collective == Collective::allreduce; }

  std::vector<double> run(Collective, std::size_t elements, int repetitions) override {
    return each_timed(
        repetitions,
        [&] {
          communicator_->allreduce({received_.data(), elements, DataType::f32});
        },
        [] {});
  }

 private:
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace

std::string_view to_string(Carrier carrier) {
  constexpr std::array names{"mpi", "scalemark", "nccl", "nccl_in_place"};
  return names[static_cast<std::size_t>(carrier)];
}

std::unique_ptr<CollectiveCarrier> make_carrier(Carrier carrier, RankGroup& group,
                                                std::int64_t largest, int cuda_device) {
  // An alltoall of at least one element for every rank may be larger than `largest`.
  const std::int64_t bytes =
      std::max(largest, collective_bytes(Collective::alltoall, largest, group.size()));
  switch (carrier) {
    case Carrier::mpi:
      return std::make_unique<MpiCarrier>(group, bytes);
    case Carrier::scalemark:
      return std::make_unique<ScalemarkCarrier>(group, bytes);
    case Carrier::nccl:
    case Carrier::nccl_in_place:
      break;
  }
  return make_nccl_carrier(group, cuda_device, bytes, carrier == Carrier::nccl_in_place);
}

}  // namespace scalemark

// Allreduce of host memory: posted on the MPI thread, ring for large buffers, fp32 sums of the
// 2-byte types.
#include "comm/mpi_communicator.hpp"

#include <algorithm>
#include <exception>

#include "comm/abort.hpp"
#include "comm/half.hpp"

namespace scalemark {
namespace {

template <void (*sum)(const std::uint16_t*, std::uint16_t*, std::size_t)>
void sum_for_mpi(void* in, void* inout, int* count, MPI_Datatype*) {
  sum(static_cast<const std::uint16_t*>(in), static_cast<std::uint16_t*>(inout),
      static_cast<std::size_t>(*count));
}

class MpiPending : public Pending {
 public:
  MpiPending(std::shared_ptr<MpiWorld> world, std::shared_ptr<Operation> operation)
      : world_(std::move(world)), operation_(std::move(operation)) {}
  /// MPI writes into the buffer until the operation is complete, so an unread one is waited for.
  ~MpiPending() override {
    if (waited_) return;
    if (abort_under_way()) await_exit();
    try {
      wait();
    } catch (const std::exception&) {  // whoever wanted the sum would have called wait()
    }
  }
  void wait() override {
    if (std::exchange(waited_, true)) return;
    world_->wait(*operation_, "allreduce");
  }
  double seconds() const override {
    if (!world_->done(*operation_)) return 0;
    return std::chrono::duration<double>(operation_->completed - operation_->posted).count();
  }

 private:
  std::shared_ptr<MpiWorld> world_;
  std::shared_ptr<Operation> operation_;
  bool waited_ = false;
};

}  // namespace

MpiCommunicator::MpiCommunicator(RankGroup& group, std::size_t largest_count)
    : group_(group.impl()) {
  handles_.largest_count = largest_count;
  group.barrier();  // MPI_Comm_dup polls until all ranks are there
  group_->world->call("communicator", [this] {
    check_mpi(MPI_Comm_dup(group_->communicator, &handles_.communicator), "MPI_Comm_dup");
    check_mpi(MPI_Op_create(sum_for_mpi<sum_bf16>, 1, &handles_.sum_bf16), "MPI_Op_create");
    check_mpi(MPI_Op_create(sum_for_mpi<sum_f16>, 1, &handles_.sum_f16), "MPI_Op_create");
  });
}

MpiCommunicator::~MpiCommunicator() {
  group_->world->release([handles = handles_]() mutable {
    MPI_Op_free(&handles.sum_bf16);
    MPI_Op_free(&handles.sum_f16);
    MPI_Comm_free(&handles.communicator);
  });
}

std::string MpiCommunicator::algorithm() const { return group_->world->selector().description(); }

std::string MpiCommunicator::transport() const {
  return derive_transport(transport_facts(group_->size, group_->hosts));
}

std::int64_t MpiCommunicator::wire_bytes(std::int64_t bytes) const {
  return allreduce_wire_bytes(group_->world->selector().choice(bytes), bytes, size());
}

std::unique_ptr<Pending> MpiCommunicator::start_allreduce(const Buffer& buffer, Stream) {
  auto* const world = group_->world.get();
  auto operation = world->start([world, buffer, handles = handles_, alone = size() == 1] {
    if (alone) return std::vector<MPI_Request>{};
    const auto bytes = static_cast<std::int64_t>(buffer.count * size_of(buffer.type));
    return world->selector().post(bytes, [&] { return handles.start(buffer); });
  });
  return std::make_unique<MpiPending>(group_->world, std::move(operation));
}

std::vector<MPI_Request> MpiCommunicator::Handles::start(const Buffer& buffer) const {
  struct Kind {
    MPI_Datatype type;
    MPI_Op sum;
  };
  const Kind kind = [&]() -> Kind {
    switch (buffer.type) {
      case DataType::f64:
        return {MPI_DOUBLE, MPI_SUM};
      case DataType::f32:
        return {MPI_FLOAT, MPI_SUM};
      case DataType::bf16:
        return {MPI_UINT16_T, sum_bf16};
      case DataType::f16:
        return {MPI_UINT16_T, sum_f16};
      case DataType::i64:
        return {MPI_INT64_T, MPI_SUM};
      case DataType::i32:
        return {MPI_INT32_T, MPI_SUM};
      case DataType::u8:
        return {MPI_UINT8_T, MPI_SUM};
    }
    throw CommError("allreduce of an unknown data type");
  }();
  std::vector<MPI_Request> requests;
  for (std::size_t first = 0; first < buffer.count; first += largest_count) {
    const auto count = static_cast<int>(std::min(largest_count, buffer.count - first));
    auto* part = static_cast<char*>(buffer.data) + first * size_of(buffer.type);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(
        MPI_Iallreduce(MPI_IN_PLACE, part, count, kind.type, kind.sum, communicator, &request),
        "MPI_Iallreduce");
    requests.push_back(request);
  }
  return requests;
}

}  // namespace scalemark

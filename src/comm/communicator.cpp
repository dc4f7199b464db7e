// Chooses a communicator, which is done only here, and implements `none`, with which training is
// measured without communication.
#include "comm/communicator.hpp"

#include "comm/mpi_communicator.hpp"
#include "comm/nccl_factory.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

class CompletedOperation : public Pending {
 public:
  void wait() override {}
  std::optional<OperationTimes> times() override { return OperationTimes(); }
};

class NoCommunicator : public Communicator {
 public:
  explicit NoCommunicator(int size)
      : Communicator({.name = "none", .size = size, .moves_data = false}) {}
  std::string algorithm() const override { return "none"; }
  std::string transport() const override { return "none"; }
  std::int64_t wire_bytes(std::int64_t) const override { return 0; }
  std::unique_ptr<Pending> start_allreduce(const Buffer&, Stream) override {
    return completed_operation();
  }
};

}  // namespace

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::f64:
    case DataType::i64:
      return 8;
    case DataType::f32:
    case DataType::i32:
      return 4;
    case DataType::bf16:
    case DataType::f16:
      return 2;
    case DataType::u8:
      return 1;
  }
  return 0;
}

std::string_view to_string(DataType type) {
  switch (type) {
    case DataType::f64:
      return "f64";
    case DataType::f32:
      return "f32";
    case DataType::bf16:
      return "bf16";
    case DataType::f16:
      return "f16";
    case DataType::i64:
      return "i64";
    case DataType::i32:
      return "i32";
    case DataType::u8:
      return "u8";
  }
  return "unknown";
}

std::unique_ptr<Pending> completed_operation() { return std::make_unique<CompletedOperation>(); }

std::int64_t Communicator::payload_bytes(const Buffer& buffer) const {
  const bool halved = buffer.type == DataType::f32 && wire_dtype() != WireDtype::fp32;
  return static_cast<std::int64_t>(halved ? 2 * buffer.count : buffer.bytes());
}

AsynchronousCommunicator& asynchronous(Communicator& communicator) {
  if (auto* const found = dynamic_cast<AsynchronousCommunicator*>(&communicator)) return *found;
  throw CommError("communicator " + std::string(communicator.name()) +
                  " has no allgather; use --communicator mpi or nccl");
}

std::unique_ptr<Communicator> make_communicator(CommunicatorKind kind, RankGroup& group,
                                                int cuda_device, WireDtype wire) {
  switch (kind) {
    case CommunicatorKind::mpi: {
      auto mpi = std::make_unique<MpiCommunicator>(group, wire);
      if (cuda_device < 0) return mpi;
      return make_host_staged_communicator(std::move(mpi), cuda_device);
    }
    case CommunicatorKind::nccl:
      if (cuda_device < 0)
        throw EnvironmentError(
            "communicator nccl needs --device cuda; on the CPU use --communicator mpi");
      if (wire != WireDtype::fp32 && group.size() > 1)
        throw EnvironmentError(
            "communicator nccl sends gradients as fp32 only; use --wire_dtype fp32, or "
            "--communicator mpi");
      return make_nccl_communicator(group, cuda_device);
    case CommunicatorKind::none:
      return std::make_unique<NoCommunicator>(group.size());
    case CommunicatorKind::automatic:
      break;
  }
  throw CommError("communicator 'auto' must be resolved before a communicator is made");
}

std::unique_ptr<Communicator> make_shard_communicator(CommunicatorKind kind, RankGroup& group,
                                                      int cuda_device, WireDtype wire, int ranks) {
  if (ranks == 1 || ranks == group.size() || kind == CommunicatorKind::none)
    return make_communicator(kind, group, cuda_device, wire);
  RankGroup own = *group.split(group.rank() / ranks);
  RankGroup same_place = *group.split(group.rank() % ranks);
  std::unique_ptr<Communicator> communicator;
  // A group that fails tells the others, which would wait for its ranks in the second one.
  group.agree_on([&] { communicator = make_communicator(kind, own, cuda_device, wire); });
  communicator->set_replicas(make_communicator(kind, same_place, cuda_device, wire));
  return communicator;
}

CommunicatorKind resolve_communicator(CommunicatorKind kind, bool cuda, int world_size) {
  if (kind != CommunicatorKind::automatic) return kind;
  if (world_size <= 1) return CommunicatorKind::none;
  return cuda ? CommunicatorKind::nccl : CommunicatorKind::mpi;
}

}  // namespace scalemark

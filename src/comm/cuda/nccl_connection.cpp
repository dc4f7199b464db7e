// See nccl_connection.hpp.
#include "comm/cuda/nccl_connection.hpp"

#include <cstring>
#include <string>

namespace scalemark {

const NcclLog& nccl_log() {
  static const NcclLog log;
  return log;
}

ncclDataType_t nccl_type(DataType type) {
  switch (type) {
    case DataType::f64:
      return ncclFloat64;
    case DataType::f32:
      return ncclFloat32;
    case DataType::bf16:
      return ncclBfloat16;
    case DataType::f16:
      return ncclFloat16;
    case DataType::i64:
      return ncclInt64;
    case DataType::i32:
      return ncclInt32;
    case DataType::u8:
      return ncclUint8;
  }
  throw CommError("an NCCL operation on an unknown data type");
}

NcclConnection::NcclConnection(RankGroup& group, int cuda_device) {
  nccl_log();
  check_cuda(cudaSetDevice(cuda_device), "cudaSetDevice");
  int low = 0, high = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&low, &high), "cudaDeviceGetStreamPriorityRange");
  check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, high),
             "cudaStreamCreateWithPriority");
  try {
    connect(group);
  } catch (...) {
    if (communicator_) ncclCommAbort(communicator_);
    cudaStreamDestroy(stream_);
    throw;
  }
  watch_ = std::make_unique<NcclWatch>(communicator_, cuda_device, group.watchdog());
}

/// Nothing here throws, whatever the device has come to.
NcclConnection::~NcclConnection() {
  cudaStreamSynchronize(stream_);
  watch_.reset();
  ncclCommFinalize(communicator_);
  ncclCommDestroy(communicator_);
  cudaStreamDestroy(stream_);
}

/// Blocks inside NCCL until all ranks have come; one that never does is met by the watchdog,
/// whose thread ends the job. A communicator that blocks queues a collective at once, without
/// asking whether the one before is queued.
void NcclConnection::connect(RankGroup& group) {
  const PhaseScope phase(group.watchdog(), "nccl start-up");
  std::string id(sizeof(ncclUniqueId), '\0');
  group.agree_on([&] {
    ncclUniqueId own;
    if (group.rank() == 0) check_nccl(ncclGetUniqueId(&own), "ncclGetUniqueId");
    if (group.rank() == 0) std::memcpy(id.data(), &own, sizeof own);
  });
  id = group.broadcast(id);
  ncclUniqueId unique;
  std::memcpy(&unique, id.data(), sizeof unique);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  group.agree_on([&] {
    check_nccl(ncclCommInitRankConfig(&communicator_, group.size(), unique, group.rank(), &config),
               "ncclCommInitRankConfig");
  });
}

}  // namespace scalemark

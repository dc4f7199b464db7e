// Holds the NCCL connection of the ranks of a group, a stream for their collectives, and the thread
// that watches it. It is internal to comm/cuda/.
#pragma once

#include <memory>

#include "comm/communicator.hpp"
#include "comm/cuda/check.hpp"
#include "comm/cuda/nccl_watch.hpp"
#include "comm/nccl_log.hpp"

namespace scalemark {

/// Returns the log of this process, which is created before the first call of NCCL.
const NcclLog& nccl_log();

ncclDataType_t nccl_type(DataType type);

/// Calls `post(peer)` for all `peers` ranks as one operation. After an error the others are queued
/// too, since a group must be closed. Throws CommError where the group cannot be opened.
template <typename Post>
ncclResult_t post_grouped(int peers, Post post) {
  check_nccl(ncclGroupStart(), "ncclGroupStart");
  ncclResult_t queued = ncclSuccess;
  for (int peer = 0; peer < peers; ++peer)
    if (const ncclResult_t result = post(peer); result != ncclSuccess) queued = result;
  const ncclResult_t ended = ncclGroupEnd();
  return queued != ncclSuccess ? queued : ended;
}

class NcclConnection {
 public:
  /// Connects the ranks of the group; the call is collective. Throws CommError.
  NcclConnection(RankGroup& group, int cuda_device);
  ~NcclConnection();
  NcclConnection(const NcclConnection&) = delete;
  NcclConnection& operator=(const NcclConnection&) = delete;

  ncclComm_t communicator() const { return communicator_; }
  cudaStream_t stream() const { return stream_; }
  NcclWatch& watch() { return *watch_; }

 private:
  void connect(RankGroup& group, int cuda_device);
  void make_stream(int cuda_device);

  Unwinding unwinding_;
  cudaStream_t stream_ = nullptr;
  ncclComm_t communicator_ = nullptr;
  std::unique_ptr<NcclWatch> watch_;
};

}  // namespace scalemark

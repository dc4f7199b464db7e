// An NCCL without a GPU: the calls that src/comm/cuda makes, for ranks of one machine that meet in
// a file which the unique id names. Every collective is a set of transfers through mailboxes in
// that file, done by the stream's thread. As the real one, it takes no two ranks with the same GPU
// of the same host (NCCL_HOSTID), names its channels in the log, and blocks where a peer stays
// away. FAKE_NCCL_FAIL, a fault (fault.hpp): `hang`, `error` (asynchronous, and the operation does
// not end), `late` (asynchronous, once the operation has ended) or `memory` (the call fails) of the
// N-th operation; `start` fails and all peers hear of it, `start_alone` and none does. Says on
// stderr that it aborts.
#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "tests/comm/fakes/fault.hpp"

namespace {

constexpr int kMostRanks = 8;

/// What one rank sends to another: a ring of bytes, of which the counts say how many have passed.
struct Mailbox {
  std::atomic<std::uint64_t> written, read;
  std::array<char, 1 << 16> ring;
};
/// In the file, which is all zero at first.
struct Meeting {
  std::atomic<int> arrived, left;
  std::atomic<bool> failed;
  std::array<std::array<char, 64>, kMostRanks> gpus;
  std::array<std::array<Mailbox, kMostRanks>, kMostRanks> boxes;  ///< by sender, receiver
};

struct Transfer {
  int peer;
  bool sends;
  char* data;
  std::size_t bytes, done = 0;
};

struct Operation {
  ncclComm_t comm;
  cudaStream_t stream;
  std::vector<Transfer> transfers;
  std::function<void()> before = [] {}, after = [] {};
  bool hangs = false;
  ncclResult_t outcome = ncclSuccess;  ///< of the communicator, once the operation was met
};

thread_local std::string last_words;
thread_local int groups = 0;
thread_local std::vector<Operation> grouped;

scalemark::fakes::Fault& fault() {
  static scalemark::fakes::Fault it("FAKE_NCCL_FAIL");
  return it;
}

ncclResult_t fail(ncclResult_t result, const std::string& words) {
  last_words = words;
  return result;
}

std::string cuda_failure(cudaError_t error) {
  return "Cuda failure " + std::to_string(error) + " '" + cudaGetErrorString(error) + "'";
}

}  // namespace

struct ncclComm {
  Meeting* meeting;
  int rank, size;
  bool connected = false;
  std::atomic<bool> aborted{false};
  std::atomic<int> state{ncclSuccess}, open{0};
};

namespace {

/// As much of it as there is room or data for; whether that was anything.
bool advance(const ncclComm& comm, Transfer& transfer) {
  const auto self = static_cast<std::size_t>(comm.rank),
             peer = static_cast<std::size_t>(transfer.peer);
  Mailbox& box = transfer.sends ? comm.meeting->boxes[self][peer] : comm.meeting->boxes[peer][self];
  auto& mine = transfer.sends ? box.written : box.read;
  const std::uint64_t ready =
      transfer.sends ? box.ring.size() - (box.written - box.read) : box.written - box.read;
  const std::size_t at = mine % box.ring.size();
  const std::size_t bytes = std::min(
      {static_cast<std::size_t>(ready), box.ring.size() - at, transfer.bytes - transfer.done});
  char* const data = transfer.data + transfer.done;
  transfer.sends ? std::memcpy(&box.ring[at], data, bytes)
                 : std::memcpy(data, &box.ring[at], bytes);
  mine += bytes;
  transfer.done += bytes;
  return bytes > 0;
}

/// All transfers at once, those between the same two ranks one behind the other.
void transfer_all(const ncclComm& comm, std::vector<Transfer> left, bool hangs) {
  while ((hangs || !left.empty()) && !comm.aborted) {
    bool moved = false;
    std::array<std::array<bool, 2>, kMostRanks> busy{};
    for (Transfer& transfer : left)
      if (!std::exchange(busy[static_cast<std::size_t>(transfer.peer)][transfer.sends], true))
        moved = advance(comm, transfer) || moved;
    std::erase_if(left, [](const Transfer& one) { return one.done == one.bytes; });
    if (!moved) usleep(50);
  }
}

/// What a stream is given. Of a recording it stays, since it may be repeated.
struct Group {
  std::vector<Operation> operations;
  bool recorded = false;
};

/// The operations of a group, on the stream's thread.
void run(void* data) {
  auto* const group = static_cast<Group*>(data);
  const std::unique_ptr<Group> once(group->recorded ? nullptr : group);
  const std::vector<Operation>& operations = group->operations;
  ncclComm& comm = *operations.front().comm;
  std::vector<Transfer> transfers;
  bool hangs = false;
  for (const Operation& one : operations) {
    one.before();
    hangs = hangs || one.hangs;
    transfers.insert(transfers.end(), one.transfers.begin(), one.transfers.end());
    if (one.hangs && one.outcome != ncclSuccess) comm.state = one.outcome;
  }
  transfer_all(comm, std::move(transfers), hangs);
  for (const Operation& one : operations) {
    if (!comm.aborted) one.after();
    if (one.outcome != ncclSuccess) comm.state = one.outcome;
  }
  if (once) --comm.open;
}

ncclResult_t launch(std::vector<Operation> operations) {
  if (operations.empty()) return ncclSuccess;
  const cudaStream_t stream = operations.front().stream;
  ncclComm& comm = *operations.front().comm;
  const char* log = std::getenv("NCCL_DEBUG_FILE");
  if (std::FILE* file = comm.connected || !log ? nullptr : std::fopen(log, "a")) {
    std::fprintf(file, "host:1:1 [0] NCCL INFO Channel 00/0 : %d[0] -> %d[0] via FAKE/memory\n",
                 comm.rank, (comm.rank + 1) % comm.size);
    std::fclose(file);
  }
  comm.connected = true;
  auto status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream, &status);
  auto* const group = new Group{std::move(operations), status != cudaStreamCaptureStatusNone};
  if (!group->recorded) ++comm.open;
  const cudaError_t launched = cudaLaunchHostFunc(stream, run, group);
  if (launched == cudaSuccess) return ncclSuccess;
  return fail(ncclUnhandledCudaError, cuda_failure(launched));
}

ncclResult_t post(Operation operation) {
  if (fault().strikes("memory"))
    return fail(ncclUnhandledCudaError, cuda_failure(cudaErrorMemoryAllocation));
  operation.hangs = fault().strikes("hang");
  if (fault().strikes("error")) operation.hangs = true, operation.outcome = ncclRemoteError;
  if (fault().strikes("late")) operation.outcome = ncclRemoteError;
  if (groups == 0) return launch({std::move(operation)});
  grouped.push_back(std::move(operation));
  return ncclSuccess;
}

/// `use` of a value of that type.
template <typename Use>
auto with_type(ncclDataType_t type, Use use) {
  if (type == ncclUint8) return use(std::uint8_t{});
  if (type == ncclFloat16) return use(__half{});
  if (type == ncclBfloat16) return use(__nv_bfloat16{});
  if (type == ncclInt32) return use(std::int32_t{});
  if (type == ncclFloat32) return use(float{});
  if (type == ncclInt64) return use(std::int64_t{});
  return use(double{});
}

std::size_t bytes_of(std::size_t count, ncclDataType_t type) {
  return count * with_type(type, [](auto value) { return sizeof value; });
}

/// Sums in the order of the ranks, rounded at every step.
void add(char* sum, const char* values, std::size_t count, ncclDataType_t type) {
  with_type(type, [&](auto a) {
    for (std::size_t at = 0; at < count * sizeof a; at += sizeof a) {
      auto b = a;
      std::memcpy(&a, sum + at, sizeof a);
      std::memcpy(&b, values + at, sizeof a);
      a = static_cast<decltype(a)>(a + b);
      std::memcpy(sum + at, &a, sizeof a);
    }
  });
}

char* address(const void* data) { return static_cast<char*>(const_cast<void*>(data)); }

/// Each rank's block to all, one behind the other.
Operation gather(const void* send, char* receive, std::size_t bytes, ncclComm_t comm,
                 cudaStream_t stream) {
  const auto block = [=](int rank) { return receive + static_cast<std::size_t>(rank) * bytes; };
  Operation operation{comm, stream, {}};
  for (int peer = 0; peer < comm->size; ++peer) {
    if (peer == comm->rank) continue;
    operation.transfers.push_back({peer, true, address(send), bytes});
    operation.transfers.push_back({peer, false, block(peer), bytes});
  }
  operation.before = [=] { std::memmove(block(comm->rank), send, bytes); };
  return operation;
}

/// Its own file's name is the unique id.
Meeting* open_meeting(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const data = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return data == MAP_FAILED ? nullptr : static_cast<Meeting*>(data);
}

void write_gpu(std::array<char, 64>& gpu) {
  const char* host = std::getenv("NCCL_HOSTID");
  int device = 0;
  cudaGetDevice(&device);
  std::snprintf(gpu.data(), gpu.size(), "device %d of host '%.40s'", device, host ? host : "");
}

ncclResult_t meet(const ncclComm& comm) {
  Meeting& meeting = *comm.meeting;
  write_gpu(meeting.gpus[static_cast<std::size_t>(comm.rank)]);
  ++meeting.arrived;
  while (meeting.arrived < comm.size && !meeting.failed) usleep(500);
  if (meeting.failed) return fail(ncclRemoteError, "a peer has failed");
  for (int a = 0; a < comm.size; ++a)
    for (int b = 0; b < a; ++b)
      if (meeting.gpus[static_cast<std::size_t>(a)] == meeting.gpus[static_cast<std::size_t>(b)])
        return fail(ncclInvalidUsage, "Duplicate GPU detected: ranks " + std::to_string(b) +
                                          " and " + std::to_string(a));
  return ncclSuccess;
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  constexpr std::array words{"no error",
                             "unhandled cuda error",
                             "unhandled system error",
                             "internal error",
                             "invalid argument",
                             "invalid usage",
                             "remote process exited or there was a network error",
                             "NCCL operation in progress"};
  return words[static_cast<std::size_t>(result)];
}
const char* ncclGetLastError(ncclComm_t) { return last_words.c_str(); }
ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> made{0};
  const char* folder = std::getenv("TMPDIR");
  std::snprintf(id->internal, sizeof id->internal, "%s/fake-nccl.%d.%d",
                folder ? folder : "/dev/shm", getpid(), ++made);
  const int file = open(id->internal, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Meeting)) != 0)
    return fail(ncclSystemError, std::string("cannot make ") + id->internal);
  close(file);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t*) {
  if (size > kMostRanks) return fail(ncclInvalidArgument, "the fake NCCL has room for 8 ranks");
  if (fault().strikes("start_alone")) return fail(ncclSystemError, "told to fail alone");
  auto comm = std::make_unique<ncclComm>(open_meeting(id.internal), rank, size);
  if (!comm->meeting) return fail(ncclSystemError, "cannot open the file of the unique id");
  if (fault().strikes("start")) {
    comm->meeting->failed = true;
    return fail(ncclSystemError, "told to fail");
  }
  const ncclResult_t met = meet(*comm);
  unlink(id.internal);
  if (met == ncclSuccess) *made = comm.release();
  return met;
}

/// Waits for what was posted.
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  while (comm->open > 0) usleep(500);
  return ncclSuccess;
}
/// As the real one, of all ranks of a host together.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  ++comm->meeting->left;
  while (comm->meeting->left < comm->size) usleep(500);
  munmap(comm->meeting, sizeof(Meeting));
  delete comm;
  return ncclSuccess;
}
/// Operations end as soon as they see it; what they use stays.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->aborted = true;
  std::fprintf(stderr, "fake NCCL: rank %d aborts\n", comm->rank);
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = static_cast<ncclResult_t>(comm->state.load());
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++groups;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  return --groups > 0 ? ncclSuccess : launch(std::exchange(grouped, {}));
}

ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = bytes_of(count, type);
  const auto parts =
      std::make_shared<std::vector<char>>(bytes * static_cast<std::size_t>(comm->size));
  Operation operation = gather(send, parts->data(), bytes, comm, stream);
  operation.after = [=] {
    for (std::size_t at = bytes; at < parts->size(); at += bytes)
      add(parts->data(), parts->data() + at, count, type);
    std::memcpy(receive, parts->data(), bytes);
  };
  return post(std::move(operation));
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                               cudaStream_t stream) {
  const std::size_t bytes = bytes_of(count, type);
  const auto size = static_cast<std::size_t>(comm->size);
  const auto parts = std::make_shared<std::vector<char>>(bytes * size * size);
  Operation operation = gather(send, parts->data(), bytes * size, comm, stream);
  operation.after = [=] {
    char* const sum = parts->data() + bytes * static_cast<std::size_t>(comm->rank);
    for (std::size_t peer = 1; peer < size; ++peer)
      add(sum, sum + peer * bytes * size, count, type);
    std::memcpy(receive, sum, bytes);
  };
  return post(std::move(operation));
}

ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return post(gather(send, address(receive), bytes_of(count, type), comm, stream));
}

ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = bytes_of(count, type);
  if (comm->rank != root) return post({comm, stream, {{root, false, address(receive), bytes}}});
  Operation operation{comm, stream, {}};
  for (int peer = 0; peer < comm->size; ++peer)
    if (peer != root) operation.transfers.push_back({peer, true, address(send), bytes});
  operation.before = [=] { std::memmove(receive, send, bytes); };
  return post(std::move(operation));
}

ncclResult_t ncclSend(const void* send, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return post({comm, stream, {{peer, true, address(send), bytes_of(count, type)}}});
}
ncclResult_t ncclRecv(void* receive, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return post({comm, stream, {{peer, false, address(receive), bytes_of(count, type)}}});
}

}  // extern "C"

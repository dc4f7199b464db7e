// Implements allreduce of host memory: posted on the MPI thread, as a ring for large buffers, with
// fp32 sums of the 2-byte types, and for fp32 values through a 2-byte type; reduce-scatter and
// allgather by messages of their own, in pieces that go one after the other: Open MPI's nonblocking
// reduce-scatter sums everything at rank 0, its gathers share the link, so that all come last, and
// count elements in ints.
#include "comm/mpi_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>

#include "comm/abort.hpp"
#include "comm/half.hpp"
#include "comm/wire_sum.hpp"
#include "error.hpp"

namespace scalemark {

namespace {

template <void (*sum)(const std::uint16_t*, std::uint16_t*, std::size_t)>
void sum_for_mpi(void* in, void* inout, int* count, MPI_Datatype*) {
  sum(static_cast<const std::uint16_t*>(in), static_cast<std::uint16_t*>(inout),
      static_cast<std::size_t>(*count));
}

class MpiPending : public Pending {
 public:
  /// `phase` is a string literal for the watchdog.
  MpiPending(std::shared_ptr<MpiWorld> world, std::vector<std::shared_ptr<Operation>> operations,
             const char* phase = "allreduce")
      : world_(std::move(world)), operations_(std::move(operations)), phase_(phase) {}
  /// MPI writes into the buffer until the operations are complete, so those that were not waited
  /// for are waited for here.
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
    times_.wait_begin = steady_seconds();
    std::exception_ptr error;  // of the first operation that failed; none may be left in flight
    for (const auto& operation : operations_) {
      try {
        world_->wait(*operation, phase_);
      } catch (const CommError&) {
        if (!error) error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
    times_.wait_end = times_.posted = steady_seconds();
    for (const auto& operation : operations_) {  // there are none for an empty buffer
      times_.posted = std::min(times_.posted, seconds_of(operation->posted));
      times_.done = std::max(times_.done, seconds_of(operation->completed));
    }
    if (operations_.empty()) times_.done = times_.posted;
  }
  bool is_complete() const override {
    return std::ranges::all_of(operations_, [](const auto& one) { return one->done.load(); });
  }
  std::optional<OperationTimes> times() override { return times_; }

 private:
  std::shared_ptr<MpiWorld> world_;
  std::vector<std::shared_ptr<Operation>> operations_;
  const char* phase_;
  OperationTimes times_;
  bool waited_ = false;
};

/// A large buffer is sent in pieces of this size: what is rounded is then still in the cache when
/// it is sent (8 to 18 % of the time at 2 ranks in shared memory).
constexpr std::size_t kPiece = std::size_t{2} << 20;
/// Urgent buffers have smaller pieces, so that what becomes urgent is sent soon. This applies only
/// where values are rounded; the bits of fp32 sums would change.
constexpr std::size_t kUrgentRoundedPiece = kPiece / 4;
constexpr UrgentQueue::InFlight kUrgentInFlight{3, 8}, kUrgentRoundedInFlight{6, 16};

struct Kind {
  MPI_Datatype type;
  MPI_Op sum;
};

void check_buffers(const Peers& peers, const Buffer& mine, const Buffer& all,
                   const std::vector<std::size_t>& counts) {
  const auto rank = static_cast<std::size_t>(peers.rank);
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  if (counts.size() == static_cast<std::size_t>(peers.size) && counts[rank] == mine.count &&
      total == all.count && mine.type == all.type)
    return;
  throw CommError(fmt::format(
      "allgather on rank {} of {}: {} {} elements into {} {}, but the {} counts say {} into {}",
      peers.rank, peers.size, mine.count, to_string(mine.type), all.count, to_string(all.type),
      counts.size(), rank < counts.size() ? counts[rank] : 0, total));
}

}  // namespace

/// Handles that operations need while they hold the MPI lock. They are shared with the operations,
/// because the communicator may be destroyed before their last stage. The last owner frees them
/// while holding the lock.
struct MpiCommunicator::Handles {
  MPI_Comm communicator = MPI_COMM_NULL;
  /// Collectives on these communicators start in an order of their own.
  MPI_Comm urgent = MPI_COMM_NULL, agreements = MPI_COMM_NULL;
  MPI_Op sum_bf16 = MPI_OP_NULL, sum_f16 = MPI_OP_NULL;

  explicit Handles(MPI_Comm parent) {
    check_mpi(MPI_Comm_dup(parent, &communicator), "MPI_Comm_dup");
    check_mpi(MPI_Comm_dup(parent, &urgent), "MPI_Comm_dup");
    check_mpi(MPI_Comm_dup(parent, &agreements), "MPI_Comm_dup");
    check_mpi(MPI_Op_create(sum_for_mpi<scalemark::sum_bf16>, 1, &sum_bf16), "MPI_Op_create");
    check_mpi(MPI_Op_create(sum_for_mpi<scalemark::sum_f16>, 1, &sum_f16), "MPI_Op_create");
  }
  ~Handles() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return;
    MPI_Op_free(&sum_bf16);
    MPI_Op_free(&sum_f16);
    MPI_Comm_free(&agreements);
    MPI_Comm_free(&urgent);
    MPI_Comm_free(&communicator);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  Kind kind_of(DataType type) const;
  std::vector<MPI_Request> start(const Buffer& buffer, std::size_t largest_count,
                                 MPI_Comm on) const;
  MPI_Request start_part(void* data, std::size_t count, DataType type, MPI_Comm on) const;
};

MpiCommunicator::MpiCommunicator(RankGroup& group, WireDtype wire, std::size_t largest_count)
    : AsynchronousCommunicator({.name = "mpi",
                                .size = group.size(),
                                .wire_dtype = group.size() > 1 ? wire : WireDtype::fp32}),
      group_(group.impl()),
      largest_count_(largest_count) {
  group.barrier();  // MPI_Comm_dup polls until all ranks are there
  handles_ = group_->world->call(
      "communicator", [&] { return std::make_shared<const Handles>(group_->communicator); });
  urgent_ = std::make_shared<UrgentQueue>(
      *group_->world, handles_, handles_->agreements,
      wire_dtype() == WireDtype::fp32 ? kUrgentInFlight : kUrgentRoundedInFlight);
  pieces_ = std::make_shared<PieceQueue>(*group_->world);
}

MpiCommunicator::~MpiCommunicator() {
  group_->world->release([handles = std::move(handles_), urgent = std::move(urgent_)]() mutable {
    urgent.reset();
    handles.reset();
  });
}

std::string MpiCommunicator::algorithm() const {
  if (wire_dtype() == WireDtype::fp32) return group_->world->selector().description();
  return fmt::format("all-to-all + all-gather, {} wire, fp32 sums",
                     wire_dtype() == WireDtype::bf16 ? "bf16" : "fp16");
}

std::string MpiCommunicator::transport() const {
  return derive_transport(transport_facts(group_->size, group_->hosts));
}

std::int64_t MpiCommunicator::wire_bytes(std::int64_t bytes) const {
  // The mean over ranks of an all-to-all and an all-gather is what each rank of a ring sends.
  const auto algorithm = wire_dtype() == WireDtype::fp32 ? group_->world->selector().choice(bytes)
                                                         : AllreduceAlgorithm::ring;
  return allreduce_wire_bytes(algorithm, bytes, size());
}

std::unique_ptr<Pending> MpiCommunicator::start_allreduce(const Buffer& buffer, Stream) {
  const bool small = buffer.bytes() <= MpiWorld::kEagerBytes;
  return start(buffer, small ? MpiWorld::Poster::caller_alone : MpiWorld::Poster::caller);
}

std::unique_ptr<Pending> MpiCommunicator::start_last_allreduce(const Buffer& buffer, Stream) {
  return start(buffer, MpiWorld::Poster::waiter);
}

/// `poster` says who posts an operation that needs no rounding first.
std::unique_ptr<Pending> MpiCommunicator::start(const Buffer& buffer, MpiWorld::Poster poster) {
  std::vector<std::shared_ptr<Operation>> operations;
  if (is_rounded(buffer))
    for (auto& stages : wire_sums(buffer, kPiece))
      operations.push_back(group_->world->start(std::move(stages)));
  else
    operations.push_back(group_->world->start(sum_of(buffer, handles_->communicator), poster));
  return std::make_unique<MpiPending>(group_->world, std::move(operations));
}

void MpiCommunicator::allreduce(const Buffer& buffer, Stream stream) {
  if (is_rounded(buffer) || size() == 1 || buffer.count > largest_count_ ||
      buffer.bytes() > MpiWorld::kEagerBytes)
    return start_last_allreduce(buffer, stream)->wait();
  group_->world->run_small("allreduce", [this, &buffer] {
    return group_->world->selector().post(static_cast<std::int64_t>(buffer.bytes()), [&] {
      return handles_->start_part(buffer.data, buffer.count, buffer.type, handles_->communicator);
    });
  });
}

bool MpiCommunicator::is_rounded(const Buffer& buffer) const {
  return buffer.type == DataType::f32 && wire_dtype() != WireDtype::fp32;
}

std::unique_ptr<Pending> MpiCommunicator::start_urgent_allreduce(const Buffer& buffer, int urgency,
                                                                 Stream stream) {
  if (size() == 1) return start_allreduce(buffer, stream);
  std::vector<std::vector<Operation::Post>> pieces;
  if (is_rounded(buffer)) {
    pieces = wire_sums(buffer, kUrgentRoundedPiece);
  } else {
    const std::size_t piece = elements_of_piece(kPiece, size_of(buffer.type));
    for (std::size_t first = 0; first < buffer.count; first += piece)
      pieces.push_back({sum_of({static_cast<char*>(buffer.data) + first * size_of(buffer.type),
                                std::min(piece, buffer.count - first), buffer.type},
                               handles_->urgent)});
  }
  std::vector<std::shared_ptr<Operation>> operations;
  for (auto& stages : pieces) operations.push_back(std::make_shared<Operation>(std::move(stages)));
  urgent_->add(operations, urgency);
  return std::make_unique<MpiPending>(group_->world, std::move(operations));
}

/// Returns the function that starts the sum.
Operation::Post MpiCommunicator::sum_of(const Buffer& buffer, MPI_Comm on) const {
  return [world = group_->world.get(), buffer, on, handles = handles_, largest = largest_count_,
          alone = size() == 1] {
    if (alone) return std::vector<MPI_Request>{};
    const auto bytes = static_cast<std::int64_t>(buffer.bytes());
    return world->selector().post(bytes, [&] { return handles->start(buffer, largest, on); });
  };
}

std::unique_ptr<Pending> MpiCommunicator::start_reduce_scatter(const Buffer& all,
                                                               const Buffer& mine, Stream) {
  if (all.type != DataType::f32 || mine.type != DataType::f32 ||
      all.count != mine.count * static_cast<std::size_t>(size()))
    throw CommError(fmt::format("reduce-scatter of {} {} elements into {} {} on {} ranks",
                                all.count, to_string(all.type), mine.count, to_string(mine.type),
                                size()));
  auto* const values = static_cast<float*>(all.data);
  auto* const sums = static_cast<float*>(mine.data);
  if (size() == 1) {
    std::copy_n(values, mine.count, sums);
    return completed_operation();
  }
  const HalfLoops* const loops = wire_loops();
  const std::size_t piece = elements_of_block_piece(sizeof(float));
  std::vector<std::shared_ptr<Operation>> operations;
  for (std::size_t first = 0; first < mine.count; first += piece)
    operations.push_back(std::make_shared<Operation>(ShardSum::stages(
        {{handles_, handles_->communicator, group_->rank, group_->size},
         loops,
         {values + first, mine.count, std::min(piece, mine.count - first), sums + first},
         next_tag()})));
  pieces_->add(operations);
  return std::make_unique<MpiPending>(group_->world, std::move(operations), "reduce_scatter");
}

std::unique_ptr<Pending> MpiCommunicator::start_allgather(const Buffer& mine, const Buffer& all,
                                                          const std::vector<std::size_t>& counts,
                                                          Stream) {
  const Peers peers{handles_, handles_->communicator, group_->rank, group_->size};
  check_buffers(peers, mine, all, counts);
  const std::size_t longest = *std::ranges::max_element(counts);
  const std::size_t piece = elements_of_block_piece(size_of(mine.type));
  std::vector<std::shared_ptr<Operation>> operations;
  for (std::size_t first = 0; first < longest; first += piece)
    operations.push_back(std::make_shared<Operation>(
        std::vector{gather_part(peers, {mine, all, counts, first, piece}, next_tag())}));
  pieces_->add(operations);
  return std::make_unique<MpiPending>(group_->world, std::move(operations), "allgather");
}

/// Returns the elements of a piece of `bytes`, but at least so many that no message of a ring or an
/// all-to-all is below 64 KiB.
std::size_t MpiCommunicator::elements_of_piece(std::size_t bytes,
                                               std::size_t bytes_of_element) const {
  const auto smallest = static_cast<std::size_t>(size()) * (64 << 10);
  return std::min(largest_count_, std::max(bytes, smallest) / bytes_of_element);
}

/// Returns the elements of every rank's block that a piece has.
std::size_t MpiCommunicator::elements_of_block_piece(std::size_t bytes_of_element) const {
  return elements_of_piece(kPiece, bytes_of_element) / static_cast<std::size_t>(size());
}

/// Returns the stages of the sum for each piece of `bytes`. Rounding is left to the MPI thread: it
/// costs the same there, and is hidden where that thread has a core of its own.
std::vector<std::vector<Operation::Post>> MpiCommunicator::wire_sums(const Buffer& buffer,
                                                                     std::size_t bytes) {
  const std::size_t piece = elements_of_piece(bytes, sizeof(std::uint16_t));
  std::vector<std::vector<Operation::Post>> pieces;
  for (std::size_t first = 0; first < buffer.count; first += piece) {
    const std::size_t count = std::min(piece, buffer.count - first);
    pieces.push_back(
        WireSum::stages({{handles_, handles_->communicator, group_->rank, group_->size},
                         *wire_loops(),
                         static_cast<float*>(buffer.data) + first,
                         count,
                         next_tag()}));
  }
  return pieces;
}

const HalfLoops* MpiCommunicator::wire_loops() const {
  if (wire_dtype() == WireDtype::fp32) return nullptr;
  return wire_dtype() == WireDtype::bf16 ? &bf16_loops : &f16_loops;
}

/// Returns the first of the two tags of a sum. MPI guarantees 32,768 tags, so they repeat after
/// 16,384 sums.
int MpiCommunicator::next_tag() { return 2 * (sums_started_++ % 16'384); }

Kind MpiCommunicator::Handles::kind_of(DataType type) const {
  switch (type) {
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
}

std::vector<MPI_Request> MpiCommunicator::Handles::start(const Buffer& buffer,
                                                         std::size_t largest_count,
                                                         MPI_Comm on) const {
  std::vector<MPI_Request> requests;
  for (std::size_t first = 0; first < buffer.count; first += largest_count) {
    auto* part = static_cast<char*>(buffer.data) + first * size_of(buffer.type);
    requests.push_back(
        start_part(part, std::min(largest_count, buffer.count - first), buffer.type, on));
  }
  return requests;
}

MPI_Request MpiCommunicator::Handles::start_part(void* data, std::size_t count, DataType type,
                                                 MPI_Comm on) const {
  const Kind kind = kind_of(type);
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(count), kind.type, kind.sum, on,
                           &request),
            "MPI_Iallreduce");
  return request;
}

}  // namespace scalemark

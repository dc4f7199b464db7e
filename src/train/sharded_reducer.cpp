// Implements the reducer of --shard: reduce-scatters gradients, sums the own block over the other
// groups of --shard_ranks, and gathers weights before layers use them. What runs on a communicator
// is started in an order that the network decides, which is the same on all ranks.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "error.hpp"
#include "measure/bus_bandwidth.hpp"
#include "train/trainer_impl.hpp"

namespace scalemark {
namespace {

DataType type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kBFloat16:
      return DataType::bf16;
    case at::kHalf:
      return DataType::f16;
    default:
      return DataType::f32;
  }
}

Buffer buffer_of(const at::Tensor& tensor) {
  return {tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()), type_of(tensor)};
}

std::optional<Collective> collective_of(LeaveOut what) {
  switch (what) {
    case LeaveOut::reduce_scatter:
      return Collective::reduce_scatter;
    case LeaveOut::allgather:
      return Collective::allgather;
    case LeaveOut::allreduce:
      return Collective::allreduce;
    case LeaveOut::none:
      break;
  }
  return std::nullopt;
}

/// Returns the part of a bucket that this rank sends to those that gather.
const at::Tensor& sent_of(const Bucket& bucket) {
  return bucket.shadow.defined() ? bucket.shadow : bucket.weights;
}

/// Returns the first element and the length of what lies between slices and behind the last one.
std::vector<std::array<std::int64_t, 2>> gaps_of(const WholeBucket& whole) {
  std::vector<std::array<std::int64_t, 2>> gaps;
  std::int64_t end = 0;
  const auto add = [&](std::int64_t next) {
    if (next > end) gaps.push_back({end, next - end});
  };
  for (const Slice& slice : whole.slices) {
    add(slice.offset);
    end = slice.offset + slice.count;
  }
  add(whole.count);
  return gaps;
}

class ShardedReducer : public StepReducer {
 public:
  ShardedReducer(Trainer::Impl& trainer, Communicator& communicator)
      : parameters_(trainer.parameters),
        device_(trainer.device),
        communicator_(communicator),
        asynchronous_(dynamic_cast<AsynchronousCommunicator*>(&communicator)),
        replicas_(communicator.replicas()),
        left_out_(collective_of(trainer.config.leave_out)),
        overlaps_(trainer.config.overlap != Overlap::none),
        parts_(buckets().size()),
        order_(buckets().size()) {
    for (const Bucket& bucket : buckets()) {
      if (bucket.block >= static_cast<int>(of_block_.size()))
        of_block_.resize(static_cast<std::size_t>(bucket.block) + 1, -1);
      const auto index = static_cast<int>(&bucket - buckets().data());
      if (bucket.block >= 0) of_block_[static_cast<std::size_t>(bucket.block)] = index;
      parts_[static_cast<std::size_t>(index)].gaps = gaps_of(bucket.whole);
    }
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(order_, {}, [&](std::size_t i) { return buckets()[i].first_use; });
    parameters_->set_on_ready([this](int bucket) { add(static_cast<std::size_t>(bucket)); });
    parameters_->set_on_use([this](int bucket) { need(static_cast<std::size_t>(bucket)); });
    parameters_->set_on_write(
        [this](int bucket) { hold_gradients(static_cast<std::size_t>(bucket)); });
    if (division().frees_weights())
      parameters_->set_on_block(
          [this](int block, FlatParameters::BlockEvent event) { pass(block, event); });
  }
  ~ShardedReducer() override {
    parameters_->set_on_ready([](int) {});
    parameters_->set_on_use({});
    parameters_->set_on_write({});
    parameters_->set_on_block({});
  }

  void begin_pass(bool first, bool last) override {
    if (first) {
      if (asynchronous_) asynchronous_->begin_step(device_.stream());
      if (replicas_) asynchronous(*replicas_).begin_step(device_.stream());
      traffic_ = {};
    } else {
      end_pass();
    }
    adds_ = !first;
    is_last_ = last;
    const bool whole_pass = division().frees_gradients();
    parameters_->begin_pass(first || whole_pass, last || whole_pass);
    for (std::size_t i = 0; i < parts_.size(); ++i)
      parts_[i].missing = static_cast<int>(buckets()[i].whole.slices.size());
    next_ = 0;
    pass_is_open_ = whole_pass || last;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (buckets()[i].first_use < 0) need(i);
  }

  void finalize(const std::function<void(std::size_t)>& on_sum) override {
    check_full();
    while (next_ < parts_.size()) start_sum(next_++);
    if (replicas_)  // those of the last buckets run beside each other
      for (std::size_t i = 0; i < parts_.size(); ++i) complete_sum(i);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      complete_sum(i);
      complete_total(i);
      if (division().frees_weights() && buckets()[i].block >= 0) release(i);
      if (on_sum) on_sum(i);
    }
    pass_is_open_ = false;
    sent_ = traffic_;
    log_.end_step();
  }

  /// Gathers the new weights that stay until the next step, or are needed first, once all are
  /// there: in the order of the forward pass, which begins when the first have come.
  void updated(std::size_t bucket) override {
    parts_[bucket].present = false;
    if (bucket + 1 < parts_.size()) return;
    for (const std::size_t i : order_)
      if (!division().frees_weights() || buckets()[i].block <= 0) start_gather(i);
  }

  void settle() override {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].gather) need(i);
  }

  std::vector<Bucket>& buckets() override { return parameters_->buckets(); }
  ReducerSamples take_samples() override {
    return {log_.take(), /*waited_in_backward=*/false, sent_, {}};
  }
  void keep_operations() override { log_.keep_operations(); }
  void set_on_wait(std::function<void(bool)> on_wait) override { on_wait_ = std::move(on_wait); }

  at::Tensor sum_over_shards(const at::Tensor& value) override {
    at::Tensor sum = value.to(at::kDouble).contiguous().clone();
    communicator_.allreduce({sum.data_ptr(), static_cast<std::size_t>(sum.numel()), DataType::f64},
                            device_.stream());
    return sum;
  }

 private:
  /// What is under way of a bucket.
  struct Part {
    int missing = 0;       ///< gradients, in this pass
    bool present = false;  ///< `whole.weights` holds the current weights
    bool writes = false;   ///< `whole.gradients` has memory, and zeros for padding
    std::vector<std::array<std::int64_t, 2>> gaps = {};  ///< that padding
    std::unique_ptr<Pending> sum, total, gather;  ///< null: not in flight; total: over all groups
    at::Tensor more;                              ///< [count], where a sum of a later pass arrives
  };

  const Division& division() const { return parameters_->division(); }

  /// Returns null where a collective is left out, alone or with all communication.
  AsynchronousCommunicator* carrier_of(Collective collective) const {
    return collective == left_out_ ? nullptr : asynchronous_;
  }

  void hold_gradients(std::size_t i) {
    Part& part = parts_[i];
    if (std::exchange(part.writes, true)) return;
    if (division().frees_gradients()) hold_memory(buckets()[i].whole.gradients, true);
    // Padding must be zero: sums leave anything there.
    for (const auto& [first, count] : part.gaps)
      buckets()[i].whole.gradients.narrow(0, first, count).zero_();
  }

  void add(std::size_t i) {
    if (--parts_[i].missing < 0)
      throw CommError("bucket " + std::to_string(i) + " got more gradients than it has");
    if (!overlaps_) return;
    while (next_ < parts_.size() && parts_[next_].missing == 0) start_sum(next_++);
    if (replicas_) complete_arrived();
  }

  void check_full() const {
    if (!communicator_.moves_data()) return;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].missing != 0)
        throw CommError("bucket " + std::to_string(i) + " lacks gradients at the end of the step");
  }

  void count(std::int64_t bytes, std::int64_t wire_bytes) {
    traffic_.bytes += bytes;
    traffic_.wire_bytes += wire_bytes;
    ++traffic_.messages;
  }
  /// Counts a reduce-scatter or an allgather, whose bytes are those of all blocks.
  void count_blocks(std::int64_t bytes) {
    count(bytes, ring_allgather_bytes(bytes, communicator_.size()));
  }

  void start_sum(std::size_t i) {
    hold_gradients(i);  // with --forward_only or a bucket without gradients nobody has
    Bucket& bucket = buckets()[i];
    Part& part = parts_[i];
    if (adds_ && division().frees_gradients() && !part.more.defined())
      part.more = at::empty_like(bucket.gradients);
    const at::Tensor& mine = adds_ && division().frees_gradients() ? part.more : bucket.gradients;
    if (AsynchronousCommunicator* carrier = carrier_of(Collective::reduce_scatter)) {
      const Buffer all = buffer_of(bucket.whole.gradients);
      part.sum = carrier->start_reduce_scatter(all, buffer_of(mine), device_.stream());
      count_blocks(communicator_.payload_bytes(all));
    } else {  // without it a rank has its own gradients alone
      at::Tensor(mine).copy_(own_block(bucket, bucket.whole.gradients));
      part.sum = completed_operation();
    }
    // Two sums at most hold their gradients at a time. A device that works behind the host does not
    // tell which have arrived, so that there those before them go on to the other groups here.
    if (division().frees_gradients() || (replicas_ && device_.works_behind_host()))
      for (std::size_t before = 0; before + 1 < i; ++before) complete_sum(before);
  }

  /// Completes the sums that have arrived, up to the first one that has not.
  void complete_arrived() {
    for (std::size_t i = 0; i < next_ && (!parts_[i].sum || parts_[i].sum->is_complete()); ++i)
      complete_sum(i);
  }

  void complete_sum(std::size_t i) {
    Part& part = parts_[i];
    if (!part.sum) return;
    Bucket& bucket = buckets()[i];
    const std::int64_t all = communicator_.payload_bytes(buffer_of(bucket.whole.gradients));
    wait(std::exchange(part.sum, nullptr),
         {false, static_cast<int>(i), all, Collective::reduce_scatter});
    if (adds_ && division().frees_gradients()) bucket.gradients.add_(part.more);
    part.writes = false;
    if (division().frees_gradients()) hold_memory(bucket.whole.gradients, false);
    if (replicas_ && is_last_ && left_out_ != Collective::allreduce) start_total(i);
  }

  /// Sums the own block over the other groups. Buckets come here in their order.
  void start_total(std::size_t i) {
    const Buffer mine = buffer_of(buckets()[i].gradients);
    parts_[i].total = replicas_->start_allreduce(mine, device_.stream());
    const std::int64_t bytes = replicas_->payload_bytes(mine);
    count(bytes, replicas_->wire_bytes(bytes));
  }

  void complete_total(std::size_t i) {
    if (!parts_[i].total) return;
    const std::int64_t bytes = replicas_->payload_bytes(buffer_of(buckets()[i].gradients));
    wait(std::exchange(parts_[i].total, nullptr),
         {false, static_cast<int>(i), bytes, Collective::allreduce});
  }

  /// Ends a pass after which others of the step follow.
  void end_pass() {
    if (!std::exchange(pass_is_open_, false)) return;
    check_full();
    while (next_ < parts_.size()) start_sum(next_++);
    for (std::size_t i = 0; i < parts_.size(); ++i) complete_sum(i);
  }

  at::Tensor own_block(const Bucket& bucket, const at::Tensor& whole) const {
    return whole.narrow(0, bucket.count * division().rank, bucket.count);
  }

  void start_gather(std::size_t i) {
    Part& part = parts_[i];
    if (part.present || part.gather) return;
    const Bucket& bucket = buckets()[i];
    const at::Tensor& whole = bucket.whole.weights;
    hold_memory(whole, true);
    if (AsynchronousCommunicator* carrier = carrier_of(Collective::allgather)) {
      const std::vector<std::size_t> counts(static_cast<std::size_t>(communicator_.size()),
                                            static_cast<std::size_t>(bucket.count));
      part.gather = carrier->start_allgather(buffer_of(sent_of(bucket)), buffer_of(whole), counts,
                                             device_.stream());
      count_blocks(static_cast<std::int64_t>(whole.nbytes()));
    } else {
      // Without it all ranks' blocks are this rank's, written as a gather writes them.
      if (division().frees_weights())
        whole.view({division().ranks, bucket.count})
            .copy_(sent_of(bucket).expand({division().ranks, bucket.count}));
      part.gather = completed_operation();
    }
  }

  /// Makes the weights of a bucket present in a forward pass, and begins to gather the next ones.
  void need(std::size_t i) {
    if (parts_[i].present) return;
    start_gather(i);
    const auto place = std::ranges::find(order_, i);
    if (place + 1 != order_.end()) start_gather(*(place + 1));
    await_gather(i);
  }

  void await_gather(std::size_t i) {
    Part& part = parts_[i];
    if (part.present) return;
    const auto bytes = static_cast<std::int64_t>(buckets()[i].whole.weights.nbytes());
    wait(std::exchange(part.gather, nullptr),
         {false, static_cast<int>(i), bytes, Collective::allgather});
    part.present = true;
  }

  void wait(std::unique_ptr<Pending> operation, const OperationLoad& load) {
    if (on_wait_) on_wait_(true);
    operation->wait();
    if (on_wait_) on_wait_(false);
    if (carrier_of(load.collective)) log_.add(std::move(operation), load);
  }

  void release(std::size_t i) {
    Part& part = parts_[i];
    if (part.gather) await_gather(i);
    if (std::exchange(part.present, false)) hold_memory(buckets()[i].whole.weights, false);
  }

  int bucket_of(int block) const {
    const auto blocks = static_cast<int>(of_block_.size());
    return block < 0 || block >= blocks ? -1 : of_block_[static_cast<std::size_t>(block)];
  }

  /// Holds the weights of one block of the network, while those of the next one come.
  void pass(int block, FlatParameters::BlockEvent event) {
    const int own = bucket_of(block);
    if (own < 0) return;
    const auto index = static_cast<std::size_t>(own);
    if (event == FlatParameters::BlockEvent::forward_ended) {
      if (bucket_of(block + 1) >= 0) release(index);  // the backward pass begins with the last one
      return;
    }
    start_gather(index);
    if (const int next = bucket_of(block - 1); next >= 0)
      start_gather(static_cast<std::size_t>(next));
    await_gather(index);
    if (const int before = bucket_of(block + 1); before >= 0)
      release(static_cast<std::size_t>(before));
  }

  std::shared_ptr<FlatParameters> parameters_;
  DeviceBackend& device_;
  Communicator& communicator_;
  AsynchronousCommunicator* asynchronous_;  ///< the same; null: it moves nothing
  Communicator* replicas_;                  ///< of the same block in other groups; null: none
  std::optional<Collective> left_out_;      ///< that is not done: --leave_out
  bool overlaps_;
  std::vector<Part> parts_;         ///< by bucket
  std::vector<std::size_t> order_;  ///< buckets in the order of their first uses
  std::vector<int> of_block_;       ///< bucket by block of the network; -1: it has none
  std::size_t next_ = 0;            ///< the first bucket whose sum has not started
  bool adds_ = false;               ///< this pass is not the first one of the step
  bool is_last_ = true;             ///< it is the last one, whose sums go to the other groups
  bool pass_is_open_ = false;       ///< it has sums that were not completed
  StepTraffic traffic_, sent_;      ///< of this step so far, and of the last one
  std::function<void(bool)> on_wait_;
  CommunicationLog log_;
};

}  // namespace

std::unique_ptr<StepReducer> make_sharded_reducer(Trainer::Impl& trainer,
                                                  Communicator& communicator) {
  return std::make_unique<ShardedReducer>(trainer, communicator);
}

}  // namespace scalemark

// Uses DistributedDataParallel's Reducer as the reducer of a step, in the same way as DDP:
// gradients are dropped before a step (zero_grad), copied into its buckets as autograd computes
// them, stay there as views (gradient_as_bucket_view) and are summed bucket by bucket during the
// rest of the backward pass. After the first step buckets are rebuilt in the order in which
// gradients came.
//
// Losses are already divided by the loss count of all ranks, so sums are needed: the hook below
// replaces DDP's default, which is the same allreduce after a division by the world size.
#include "train/c10d_reducer.hpp"

#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>
#include <vector>

#include "error.hpp"
#include "measure/clock.hpp"
#include "train/arithmetic.hpp"
#include "train/c10d/process_group.hpp"

namespace scalemark {
namespace {

/// Provides weights as DDP's users have them under autocast: fp32 leaves, cast inside the graph,
/// once in each pass.
class AutogradGate : public ParameterGate {
 public:
  explicit AutogradGate(at::ScalarType dtype) : dtype_(dtype) {}
  at::Tensor compute_weight(const at::Tensor& leaf) override {
    if (dtype_ == at::kFloat) return leaf;
    at::Tensor& cast = casts_[leaf.unsafeGetTensorImpl()];
    if (!cast.defined()) cast = leaf.to(dtype_);
    return cast;
  }
  at::Tensor table_rows(const at::Tensor& leaf, const at::Tensor& indices) override {
    return at::embedding(leaf, indices).to(dtype_);
  }
  void forget_casts() { casts_.clear(); }

 private:
  at::ScalarType dtype_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> casts_;  ///< casts by leaf
};

/// The times of one step in steady_seconds(). Buckets complete on Gloo's threads.
struct StepTimes {
  double wait_begin = 0, wait_end = 0;
  std::mutex mutex;  ///< guards the members below
  double last_complete = 0;
  std::vector<LoggedOperation> buckets;  ///< by index

  /// Records the start of a bucket. The first bucket begins the step.
  void post(std::size_t index, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    if (index == 0) buckets.clear();
    const OperationLoad load{false, static_cast<int>(index), static_cast<std::int64_t>(bytes)};
    const double now = steady_seconds();
    buckets.push_back({0, load, {.posted = now, .done = now}});
  }
  void complete(std::size_t index) {
    const std::lock_guard lock(mutex);
    last_complete = buckets.at(index).times.done = steady_seconds();
  }
  double wait_seconds() const { return wait_end - wait_begin; }
  double communication_seconds() {
    const std::lock_guard lock(mutex);
    return buckets.empty() ? 0 : std::max(0., last_complete - buckets.front().times.posted);
  }
  /// Returns the operations of the step. The backward pass waits for all of them together, so the
  /// wait is recorded with the last one.
  std::vector<LoggedOperation> operations(std::size_t step) {
    const std::lock_guard lock(mutex);
    std::vector<LoggedOperation> taken = buckets;
    for (LoggedOperation& operation : taken) operation.step = step;
    if (!taken.empty()) {
      taken.back().times.wait_begin = wait_begin;
      taken.back().times.wait_end = wait_end;
    }
    return taken;
  }
};

/// Queues two callbacks. Callbacks run at the end of a backward pass in the order in which they
/// were queued, and the Reducer's, which waits for all sums, is queued with the last bucket. So the
/// first of these two runs before it, and the second after it.
void queue_clock(const std::shared_ptr<StepTimes>& times) {
  auto& engine = torch::autograd::Engine::get_default_engine();
  engine.queue_callback([&engine, times] {
    times->wait_begin = steady_seconds();
    engine.queue_callback([times] { times->wait_end = steady_seconds(); });
  });
}

/// Sums every bucket over ranks and records the times of the step.
class SumHook : public c10d::CommHookInterface {
 public:
  SumHook(c10::intrusive_ptr<c10d::ProcessGroup> group, std::shared_ptr<StepTimes> times)
      : group_(std::move(group)), times_(std::move(times)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    times_->post(bucket.getIndex(), bucket.getBufferRef().nbytes());
    if (bucket.getIndex() == 0) queue_clock(times_);
    std::vector<at::Tensor> tensors{bucket.getBufferRef()};
    auto sum = group_->allreduce(tensors)->getFuture();
    if (!tensors[0].is_cpu())
      return sum;  // complete when it is queued, since the stream waits for it
    return sum->then(
        [times = times_, index = bucket.getIndex()](c10::ivalue::Future& done) {
          times->complete(index);
          try {
            return done.value();
          } catch (const std::exception& error) {
            throw CommError(
                fmt::format("c10d: the allreduce of bucket {} failed: {}", index, words_of(error)));
          }
        },
        sum->elementType());
  }
  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::shared_ptr<StepTimes> times_;
};

class C10dReducer : public StepReducer {
 public:
  C10dReducer(Trainer::Impl& trainer, ProcessGroupCommunicator& communicator)
      : model_(trainer.model),
        parameters_(trainer.parameters),
        communicator_(communicator),
        leaves_(model_->parameters()),
        gate_(std::make_shared<AutogradGate>(compute_dtype(trainer.config.precision))),
        times_(std::make_shared<StepTimes>()) {
    make_reducer(trainer.config, bucket_mb(trainer.config, trainer.device));
    parameters_->take_leaf_gradients(false);
    model_->set_gate(gate_);
    view_buckets();
  }

  ~C10dReducer() override {
    reducer_.reset();  // removes its hooks from the leaves
    drop_gradients();
    model_->set_gate(parameters_);
    parameters_->take_leaf_gradients(true);
  }

  void begin_pass(bool first, bool last) override {
    gate_->forget_casts();
    if (first) {
      drop_gradients();
      if (reducer_->rebuild_buckets()) view_buckets();
    }
    if (last) reducer_->prepare_for_backward({});  // other passes only accumulate
  }

  /// Nothing is left to wait for: the backward pass itself ends when all sums are complete.
  void finalize(const std::function<void(std::size_t)>& on_sum) override {
    gate_->forget_casts();
    // For CUDA buffers the callbacks tell when the host was there, and nothing about the stream.
    const bool timed = parameters_->buckets().front().weights.is_cpu();
    if (timed && keeps_operations_) {
      const auto operations = times_->operations(taken_.wait_seconds.size());
      taken_.operations.insert(taken_.operations.end(), operations.begin(), operations.end());
    }
    taken_.wait_seconds.push_back(timed ? times_->wait_seconds()
                                        : std::numeric_limits<double>::quiet_NaN());
    taken_.communication_seconds += timed ? times_->communication_seconds() : 0;
    if (!on_sum) return;
    for (std::size_t i = 0; i < buckets_.size(); ++i) on_sum(i);
  }

  std::vector<Bucket>& buckets() override { return buckets_; }
  ReducerSamples take_samples() override {
    return {std::exchange(taken_, {}), /*waited_in_backward=*/true, traffic_, {}};
  }
  void keep_operations() override { keeps_operations_ = true; }

 private:
  void make_reducer(const ResolvedConfig& config, double bucket_mb) {
    const auto bytes = [](double mib) { return static_cast<std::int64_t>(mib * 1024 * 1024); };
    const std::int64_t cap = bytes(bucket_mb), first_cap = bytes(config.first_bucket_mb);
    std::vector<at::Tensor> ready;
    std::vector<std::int64_t> order;
    for (const Slice& slice : parameters_->slices()) {
      order.push_back(slice.parameter);
      ready.push_back(leaves_[static_cast<std::size_t>(slice.parameter)]);
    }
    auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
        ready, {static_cast<std::size_t>(first_cap), static_cast<std::size_t>(cap)}, {}, order));
    std::unordered_map<std::size_t, std::string> names;
    for (const auto& named : model_->named_parameters()) names.emplace(names.size(), named.key());
    reducer_ = std::make_unique<c10d::Reducer>(
        leaves_, std::move(buckets), communicator_.process_group(),
        std::vector<bool>(leaves_.size(), false), cap, /*find_unused_parameters=*/false,
        /*gradient_as_bucket_view=*/true, std::move(names), first_cap,
        /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
        /*bucket_bytes_cap_list=*/std::vector<std::int64_t>{});
    reducer_->register_comm_hook(std::make_unique<SumHook>(communicator_.process_group(), times_));
  }

  /// Drops the gradients as PyTorch's zero_grad() does by default, which saves a pass over them.
  void drop_gradients() {
    for (at::Tensor& leaf : leaves_) leaf.mutable_grad().reset();
  }

  /// Makes the optimizer's view of c10d's buckets, which hold gradients without padding: one bucket
  /// for every parameter, so that no gradient is copied again.
  void view_buckets() {
    std::unordered_map<const c10::TensorImpl*, const Slice*> slice_of;
    for (const Slice& slice : parameters_->slices())
      slice_of[leaves_[static_cast<std::size_t>(slice.parameter)].unsafeGetTensorImpl()] = &slice;
    buckets_.clear();
    traffic_ = {};
    for (const c10d::GradBucket& bucket :
         reducer_->get_grad_buckets(/*return_zero_tensors=*/false)) {
      const auto gradients = bucket.getGradients();
      const auto variables = bucket.getParameters();
      for (std::size_t i = 0; i < variables.size(); ++i)
        add_bucket(*slice_of.at(variables[i].unsafeGetTensorImpl()), gradients[i]);
      const auto payload = static_cast<std::int64_t>(bucket.getBuffer().nbytes());
      traffic_.bytes += payload;
      traffic_.wire_bytes += communicator_.wire_bytes(payload);
      ++traffic_.messages;
    }
  }

  void add_bucket(const Slice& slice, const at::Tensor& gradient) {
    const Bucket& flat = parameters_->buckets()[static_cast<std::size_t>(slice.bucket)];
    const auto part = [&](const at::Tensor& tensor) {
      return tensor.narrow(0, slice.offset, slice.count);
    };
    Bucket bucket;
    bucket.count = slice.count;
    bucket.slices = {
        {slice.parameter, static_cast<int>(buckets_.size()), 0, slice.count, slice.vector}};
    bucket.weights = part(flat.weights);
    bucket.gradients = gradient.view({-1});
    for (const at::Tensor& state : flat.state) bucket.state.push_back(part(state));
    buckets_.push_back(std::move(bucket));
  }

  std::shared_ptr<Model> model_;
  std::shared_ptr<FlatParameters> parameters_;
  ProcessGroupCommunicator& communicator_;
  std::vector<at::Tensor> leaves_;
  std::shared_ptr<AutogradGate> gate_;
  std::shared_ptr<StepTimes> times_;
  CommunicationTimes taken_;
  std::unique_ptr<c10d::Reducer> reducer_;
  std::vector<Bucket> buckets_;  ///< one a parameter
  StepTraffic traffic_;
  bool keeps_operations_ = false;
};

}  // namespace

std::unique_ptr<StepReducer> make_c10d_reducer(Trainer::Impl& trainer, Communicator& communicator) {
  auto* const group = dynamic_cast<ProcessGroupCommunicator*>(&communicator);
  if (!group) throw std::logic_error("--reducer c10d needs make_c10d_communicator()");
  return std::make_unique<C10dReducer>(trainer, *group);
}

}  // namespace scalemark

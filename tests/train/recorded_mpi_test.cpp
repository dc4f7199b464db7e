// Steps that are recorded once and repeated (--cuda_graph), on a CPU that records work as a GPU
// records a graph: the losses, weights and counts of steps that are given one operation at a time.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "tests/support/mpi_support.hpp"
#include "tests/train/training_support.hpp"
#include "tests/train/wrapped_cpu.hpp"
#include "train/trainer.hpp"

namespace scalemark::recorded_test {
namespace {

using testing::bytes_of;
using testing::small_config;
using testing::world;

/// Records work of LibTorch's operators. Of what is recorded nothing happens; a repetition calls
/// each again, with the numbers that the host gave it then, and puts its results where those of the
/// recording lay. Whatever else the host did in the work is not repeated, and reading a value of
/// the device there is an error.
class CpuRecorder : public WorkRecorder {
 public:
  void record(const std::function<void()>& work) override {
    recordings_.emplace_back();
    saved_.clear();
    const at::Generator generator = at::detail::getDefaultCPUGenerator();
    const at::Tensor drawn = generator.get_state();
    recording() = this;
    c10::impl::tls_set_dispatch_key_included(kKey, true);
    try {
      work();
    } catch (...) {
      end();
      throw;
    }
    end();
    at::Generator(generator).set_state(drawn);
    for (auto saved = saved_.rbegin(); saved != saved_.rend(); ++saved)
      saved->first.copy_(saved->second);
  }
  void repeat(std::size_t index) override {
    const at::NoGradGuard no_grad;
    ++repeated;
    for (const auto& part : recordings_.at(index)) part();
  }

  /// Where the host works in place of a device, as in a sum over ranks: the work is done in every
  /// repetition, and at once where nothing is recorded.
  static void do_or_record(std::function<void()> work) {
    if (recording())
      recording()->recordings_.back().push_back(std::move(work));
    else
      work();
  }

  /// Called for every operator below autograd while there is a recording.
  static void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard below(kKey);
    recording()->add(op, stack);
  }

  static inline long repeated = 0;
  /// A key of dispatch below autograd for which LibTorch has no kernels.
  static constexpr auto kKey = c10::DispatchKey::Fake;

 private:
  static CpuRecorder*& recording() {
    static CpuRecorder* it = nullptr;
    return it;
  }
  static void end() {
    c10::impl::tls_set_dispatch_key_included(kKey, false);
    recording() = nullptr;
  }

  static std::vector<at::Tensor> tensors_in(const c10::IValue& value) {
    if (value.isTensor()) return {value.toTensor()};
    if (value.isTensorList()) return value.toTensorVector();
    return {};
  }

  void add(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const std::string name = op.schema().name();
    if (name == "aten::_local_scalar_dense" || name == "aten::nonzero" || name == "aten::equal")
      throw std::logic_error(name + " waits for the device in a recording");
    const auto& arguments = op.schema().arguments();
    const std::vector<c10::IValue> inputs(stack->end() - static_cast<long>(arguments.size()),
                                          stack->end());
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].alias_info() && arguments[i].alias_info()->isWrite())
        for (const at::Tensor& changed : tensors_in(inputs[i]))
          if (changed.defined()) saved_.emplace_back(changed.detach(), changed.detach().clone());
    op.callBoxed(stack);
    std::vector<at::Tensor> outputs;
    const std::size_t returned = op.schema().returns().size();
    for (auto value = stack->end() - static_cast<long>(returned); value != stack->end(); ++value)
      for (const at::Tensor& output : tensors_in(*value)) outputs.push_back(output);
    recordings_.back().push_back([op, inputs, outputs] {
      torch::jit::Stack again(inputs.begin(), inputs.end());
      op.callBoxed(&again);
      std::size_t next = 0;
      for (const c10::IValue& value : again)
        for (const at::Tensor& output : tensors_in(value)) {
          at::Tensor place = outputs.at(next++);
          // Views and what was changed in its place are there already.
          if (place.defined() && !place.is_alias_of(output)) place.copy_(output);
        }
    });
  }

  std::vector<std::vector<std::function<void()>>> recordings_;
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;  ///< what the recording changed, before
};

/// The CPU as a device that records.
class RecordedCpu : public testing::WrappedCpu {
 public:
  bool works_behind_host() const override { return true; }
  std::unique_ptr<WorkRecorder> make_work_recorder() override {
    return std::make_unique<CpuRecorder>();
  }
};

TORCH_LIBRARY_IMPL(_, Fake, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&CpuRecorder::call>());
}

/// Sums by MPI as a part of the recording, as NCCL does.
class RecordedCommunicator : public AsynchronousCommunicator {
 public:
  RecordedCommunicator() : AsynchronousCommunicator({.name = "mpi", .size = world().size()}) {}
  std::string algorithm() const override { return mpi_->algorithm(); }
  std::string transport() const override { return mpi_->transport(); }
  std::int64_t wire_bytes(std::int64_t bytes) const override { return mpi_->wire_bytes(bytes); }
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) override {
    CpuRecorder::do_or_record(
        [this, buffer, stream] { mpi_->start_allreduce(buffer, stream)->wait(); });
    return completed_operation();
  }
  std::unique_ptr<Pending> start_reduce_scatter(const Buffer&, const Buffer&, Stream) override {
    throw std::logic_error("no part of a recording");
  }
  std::unique_ptr<Pending> start_allgather(const Buffer&, const Buffer&,
                                           const std::vector<std::size_t>&, Stream) override {
    throw std::logic_error("no part of a recording");
  }

 private:
  std::unique_ptr<Communicator> mpi_ = make_communicator(CommunicatorKind::mpi, world(), -1);
};

struct Trained {
  Samples samples;
  StepTraffic traffic;
  std::vector<std::string> weights;  ///< by bucket
};

/// Trains twice, from the same weights.
Trained train(RunConfig config, CudaGraph graph) {
  config.cuda_graph = graph;
  config.kernels = Kernels::torch;
  RecordedCpu device;
  RecordedCommunicator communicator;
  Trainer trainer(config, device, world(), plan_batch(config, world().size()));
  EXPECT_EQ(trainer.records_steps(), graph != CudaGraph::off);
  trainer.keep_initial_weights();
  const Samples first = trainer.measure(world(), communicator, nullptr);
  Trained trained{trainer.measure(world(), communicator, nullptr), trainer.last_traffic(), {}};
  EXPECT_EQ(first.loss, trained.samples.loss);
  for (const Bucket& bucket : trainer.parameters().buckets())
    trained.weights.push_back(bytes_of(bucket.weights));
  return trained;
}

Samples expect_the_same(const RunConfig& config) {
  const Trained given = train(config, CudaGraph::off);
  CpuRecorder::repeated = 0;
  const Trained repeated = train(config, CudaGraph::automatic);
  EXPECT_EQ(CpuRecorder::repeated, 2 * (config.num_warmup_batches + config.num_batches));
  EXPECT_EQ(repeated.samples.loss, given.samples.loss);
  EXPECT_TRUE(repeated.weights == given.weights);
  EXPECT_EQ(repeated.traffic.messages, given.traffic.messages);
  EXPECT_EQ(repeated.traffic.bytes, given.traffic.bytes);
  return repeated.samples;
}

TEST(RecordedSteps, LearnAsThoseThatAreGivenOneByOne) {
  RunConfig config = small_config();
  const Samples samples = expect_the_same(config);
  ASSERT_EQ(samples.loss.size(), 12u);
  EXPECT_NE(samples.loss.front(), samples.loss.back());
  EXPECT_EQ(samples.step_seconds.size(), 12u);
  ASSERT_EQ(samples.wait_seconds.size(), 12u);
  for (const double wait : samples.wait_seconds) EXPECT_TRUE(std::isnan(wait));
  EXPECT_EQ(samples.communication_seconds, 0);
  config.micro_batch_size = 2;
  expect_the_same(config);
  config.overlap = Overlap::none;
  expect_the_same(config);
}

/// The rate, the count of steps, dropout's masks, the scale of fp16 and what of the gradients is
/// clipped differ from step to step, though the host takes no part in them.
TEST(RecordedSteps, TakeNothingOfTheHostWithThem) {
  struct Case {
    const char* model;
    Optimizer rule;
    Precision precision;
  };
  for (const auto& [model, rule, precision] :
       {Case{"transformer_tiny", Optimizer::adam, Precision::fp32},
        Case{"bert_tiny", Optimizer::lamb, Precision::fp32},
        Case{"smallnet", Optimizer::adamw, Precision::bf16},
        Case{"smallnet", Optimizer::lars, Precision::fp16}}) {
    SCOPED_TRACE(model);
    RunConfig config = small_config();
    config.model = model;
    config.optimizer = rule;
    config.precision = precision;
    config.num_batches = 6;
    config.init_learning_rate.reset();
    config.lr_schedule.shape = LearningRateSchedule::Shape::polynomial;
    config.clip_norm = 0.5;
    if (model != std::string("smallnet")) config.dropout = 0.1;
    config.fp16_loss_scale = 1 << 22;  // whose gradients overflow at first
    const Samples samples = expect_the_same(config);
    if (precision == Precision::fp16) {
      EXPECT_GT(samples.loss_scaling->skipped_steps, 0);
    }
  }
}

/// Every batch has a recording of its own.
TEST(RecordedSteps, TakeTheBatchesInTurn) {
  RunConfig config = small_config();
  config.num_batches = 18;
  config.data = SyntheticData::learnable;
  expect_the_same(config);
  config = small_config();
  config.model = "transformer_tiny";
  config.length_distribution = LengthDistribution::uniform;
  expect_the_same(config);
}

TEST(RecordedSteps, AreGivenOneByOneFromAnInjectedLossOn) {
  RunConfig config = small_config();
  config.inject = Injection{.kind = "nan_loss", .rank = -1, .step = 5};
  const Trained trained = train(config, CudaGraph::automatic);
  EXPECT_EQ(trained.samples.stop_reason, StopReason::non_finite);
}

TEST(RecordedSteps, AreLeftWhereThereIsNoRecorderOrTheHostTakesPart) {
  RunConfig config = small_config();
  config.cuda_graph = CudaGraph::automatic;
  const auto records = [&](DeviceBackend& device) {
    return Trainer(config, device, world(), plan_batch(config, world().size())).records_steps();
  };
  RecordedCpu recorded;
  EXPECT_TRUE(records(recorded));
  EXPECT_FALSE(records(*make_device_backend(Device::cpu, 0)));
  config.input = InputPlace::host;
  EXPECT_FALSE(records(recorded));
  config.cuda_graph = CudaGraph::on;
  EXPECT_THROW(records(*make_device_backend(Device::cpu, 0)), EnvironmentError);
}

/// What would stop a recording on a GPU stops it here.
TEST(RecordedSteps, WaitForNothing) {
  CpuRecorder recorder;
  const at::Tensor value = at::zeros({});
  EXPECT_THROW(recorder.record([&] { at::ones({}).item<double>(); }), std::logic_error);
  recorder.record([&] { value.add_(1); });
  EXPECT_EQ(value.item<double>(), 0) << "is recorded, not done";
  recorder.repeat(1);
  recorder.repeat(1);
  EXPECT_EQ(value.item<double>(), 2);
}

}  // namespace
}  // namespace scalemark::recorded_test

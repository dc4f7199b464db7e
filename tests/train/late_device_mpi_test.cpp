// A device that works behind the host, as a GPU does, with a communicator whose operations tell
// their times late: what a training reports of them is what they were, and no step is lost.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/mpi_support.hpp"
#include "tests/train/training_support.hpp"
#include "tests/train/wrapped_cpu.hpp"
#include "train/batch_search.hpp"
#include "train/trace/recorders.hpp"
#include "train/trainer.hpp"

namespace scalemark::late_device_test {
namespace {

using testing::small_config;
using testing::world;

/// Behind synchronize() everything is known; before, the latest of everything is not.
struct Progress {
  long posted = 0;  ///< operations
  long known = 0;   ///< of them
};

class LateReader : public ScalarReader {
 public:
  std::optional<double> exchange(const at::Tensor& scalar) override {
    return std::exchange(last_, scalar.item<double>());
  }
  std::optional<double> finish() override { return std::exchange(last_, std::nullopt); }

 private:
  std::optional<double> last_;
};

/// The CPU, two operations behind.
class LateDevice : public testing::WrappedCpu {
 public:
  explicit LateDevice(Progress& progress) : progress_(progress) {}
  bool works_behind_host() const override { return true; }
  void synchronize() override { progress_.known = progress_.posted; }
  std::unique_ptr<ScalarReader> make_scalar_reader() override {
    return std::make_unique<LateReader>();
  }
  void try_kernels(bool all) override { tries_kernels = all; }

  bool tries_kernels = true;

 private:
  Progress& progress_;
};

/// Sums by MPI. Operation n of a step is posted at 10 n seconds, done 4 s later and waited for 0.25
/// s.
class LateCommunicator : public AsynchronousCommunicator {
 public:
  explicit LateCommunicator(Progress& progress)
      : AsynchronousCommunicator({.name = "mpi", .size = world().size()}), progress_(progress) {}
  std::string algorithm() const override { return mpi_->algorithm(); }
  std::string transport() const override { return mpi_->transport(); }
  std::int64_t wire_bytes(std::int64_t bytes) const override { return mpi_->wire_bytes(bytes); }
  void begin_step(Stream) override { in_step_ = 0; }
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) override {
    progress_.known = std::max(progress_.known, ++progress_.posted - 2);
    return std::make_unique<Operation>(mpi_->start_allreduce(buffer, stream), progress_,
                                       10. * in_step_++);
  }
  std::unique_ptr<Pending> start_reduce_scatter(const Buffer& all, const Buffer& mine,
                                                Stream stream) override {
    return asynchronous(*mpi_).start_reduce_scatter(all, mine, stream);
  }
  std::unique_ptr<Pending> start_allgather(const Buffer& mine, const Buffer& all,
                                           const std::vector<std::size_t>& counts,
                                           Stream stream) override {
    return asynchronous(*mpi_).start_allgather(mine, all, counts, stream);
  }

 private:
  class Operation : public Pending {
   public:
    Operation(std::unique_ptr<Pending> sum, const Progress& progress, double posted)
        : sum_(std::move(sum)), progress_(progress), number_(progress.posted), posted_(posted) {}
    void wait() override { sum_->wait(); }
    std::optional<OperationTimes> times() override {
      if (number_ > progress_.known) return std::nullopt;
      return OperationTimes{posted_, posted_ + 4, posted_, posted_ + 0.25};
    }

   private:
    std::unique_ptr<Pending> sum_;
    const Progress& progress_;
    long number_;
    double posted_;
  };

  Progress& progress_;
  int in_step_ = 0;
  std::unique_ptr<Communicator> mpi_ = make_communicator(CommunicatorKind::mpi, world(), -1);
};

struct Measured {
  Samples samples;
  StepTraffic traffic;
};

Measured train(const ResolvedConfig& config, DeviceBackend& device, Communicator& communicator) {
  Trainer trainer(config, device, world(), plan_batch(config, world().size()));
  trainer.keep_initial_weights();
  Samples samples = trainer.measure(world(), communicator, nullptr);
  return {std::move(samples), trainer.last_traffic()};
}

ResolvedConfig several_buckets() {
  RunConfig config = small_config();
  config.first_bucket_mb = 0.02;
  return config;
}

TEST(LateDevice, ReportsTheTimesOfEveryStep) {
  Progress progress;
  LateDevice device(progress);
  LateCommunicator communicator(progress);
  const auto [samples, traffic] = train(several_buckets(), device, communicator);
  const auto buckets = static_cast<double>(traffic.messages);
  ASSERT_GT(buckets, 1);  // so that steps end before their times are known
  EXPECT_EQ(samples.wait_seconds, std::vector<double>(12, 0.25 * buckets));
  EXPECT_DOUBLE_EQ(samples.communication_seconds, 12 * (10 * (buckets - 1) + 4));
  EXPECT_EQ(samples.step_seconds.size(), 12u);
  EXPECT_EQ(samples.loss.size(), 12u);
}

TEST(LateDevice, LearnsWhatTheCpuLearns) {
  Progress progress;
  LateDevice late(progress);
  LateCommunicator communicator(progress);
  const auto cpu = make_device_backend(Device::cpu, 0);
  const auto mpi = make_communicator(CommunicatorKind::mpi, world(), -1);
  EXPECT_EQ(train(small_config(), late, communicator).samples.loss,
            train(small_config(), *cpu, *mpi).samples.loss);
}

/// How often `body` calls a convolution.
template <typename F>
long convolutions(F body) {
  OperatorRecorder recorder(0);
  body();
  RankTrace trace;
  recorder.take(trace);
  long calls = 0;
  for (const OperatorTotal& total : trace.operators)
    if (total.name == "aten::conv2d") calls += total.calls;
  return calls;
}

/// An energy meter around measure() would count the passes in which a GPU's libraries choose their
/// kernels, and no sample of them.
TEST(LateDevice, MeetsShapesOnceAndBeforeWhatIsMeasured) {
  Progress progress;
  LateDevice device(progress);
  LateCommunicator communicator(progress);
  const ResolvedConfig config = small_config();
  Trainer trainer(config, device, world(), plan_batch(config, world().size()));
  trainer.keep_initial_weights();
  const auto meet = [&] { trainer.meet_shapes(world(), communicator); };
  const auto measure = [&] { trainer.measure(world(), communicator, nullptr); };
  constexpr long kSteps = 2 + 12;
  const long of_a_pass = convolutions(meet);
  EXPECT_GT(of_a_pass, 0);
  EXPECT_EQ(convolutions(meet), 0);
  EXPECT_EQ(convolutions(measure), kSteps * of_a_pass);
  trainer.set_batch({2, 2L * world().size(), 2});  // whose shapes nobody has met
  EXPECT_EQ(convolutions(measure), (kSteps + 1) * of_a_pass);
}

/// The time of a trial is that of steps, and cuDNN tries nothing out meanwhile.
TEST(LateDevice, SearchesTheLargestBatchWithShapesMet) {
  Progress progress;
  LateDevice device(progress);
  LateCommunicator communicator(progress);
  RankGroup alone = *world().split(world().rank());
  Trainer trainer(small_config(), device, world(), {1, world().size(), 1});
  const long of_a_pass = convolutions([&] { trainer.meet_shapes(world(), communicator); });
  const auto found = find_largest_batch(device, world(), [&](std::int64_t batch) {
    EXPECT_FALSE(device.tries_kernels);
    if (batch > 4) throw std::runtime_error("CUDNN_STATUS_ALLOC_FAILED");
    const long steps_of_a_trial = 3;
    EXPECT_EQ(convolutions([&] { trainer.try_batch(alone, batch); }),
              (1 + steps_of_a_trial) * of_a_pass);
    return 1.;
  });
  EXPECT_TRUE(device.tries_kernels);
  EXPECT_EQ(found.largest, 4);
}

}  // namespace
}  // namespace scalemark::late_device_test

// A device that works behind the host, as a GPU does, with a communicator whose operations tell
// their times late: what a training reports of them is what they were, and no step is lost.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/mpi_support.hpp"
#include "tests/train/training_support.hpp"
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
class LateDevice : public DeviceBackend {
 public:
  explicit LateDevice(Progress& progress) : progress_(progress) {}
  bool works_behind_host() const override { return true; }
  void synchronize() override { progress_.known = progress_.posted; }
  std::unique_ptr<ScalarReader> make_scalar_reader() override {
    return std::make_unique<LateReader>();
  }
  at::Device device() const override { return cpu_->device(); }
  std::string name() const override { return cpu_->name(); }
  std::string uuid() const override { return cpu_->uuid(); }
  Stream stream() const override { return cpu_->stream(); }
  std::unique_ptr<StepClock> make_step_clock() override { return cpu_->make_step_clock(); }
  std::unique_ptr<PhaseClock> make_phase_clock() override { return cpu_->make_phase_clock(); }
  std::optional<std::int64_t> peak_memory_bytes() const override { return std::nullopt; }
  void reset_peak_memory() override {}
  void release_free_memory() override {}
  std::optional<std::int64_t> memory_left(int ranks) const override {
    return cpu_->memory_left(ranks);
  }
  at::Tensor pinned(const at::Tensor& host) const override { return host; }
  std::unique_ptr<BatchCopier> make_batch_copier() override { return cpu_->make_batch_copier(); }
  bool native(Precision precision) const override { return cpu_->native(precision); }
  void set_precision(Precision precision) override { cpu_->set_precision(precision); }

 private:
  Progress& progress_;
  std::unique_ptr<DeviceBackend> cpu_ = make_device_backend(Device::cpu, 0);
};

/// Sums by MPI. Operation n of a step is posted at 10 n seconds, done 4 s later and waited for 0.25
/// s.
class LateCommunicator : public Communicator {
 public:
  explicit LateCommunicator(Progress& progress) : progress_(progress) {}
  std::string_view name() const override { return mpi_->name(); }
  int size() const override { return mpi_->size(); }
  std::string algorithm() const override { return mpi_->algorithm(); }
  std::string transport() const override { return mpi_->transport(); }
  std::int64_t wire_bytes(std::int64_t bytes) const override { return mpi_->wire_bytes(bytes); }
  void begin_step(Stream) override { in_step_ = 0; }
  std::unique_ptr<Pending> start_allreduce(const Buffer& buffer, Stream stream) override {
    progress_.known = std::max(progress_.known, ++progress_.posted - 2);
    return std::make_unique<Operation>(mpi_->start_allreduce(buffer, stream), progress_,
                                       10. * in_step_++);
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

}  // namespace
}  // namespace scalemark::late_device_test

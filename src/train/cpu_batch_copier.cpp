// Implements the batch copier of the CPU. No copy is needed there, but the mechanism is the same as
// on a GPU.
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "measure/clock.hpp"
#include "train/batch_copier.hpp"

namespace scalemark {
namespace {

class CpuBatchCopier : public BatchCopier {
 public:
  CpuBatchCopier() : thread_([this] { run(); }) {}
  ~CpuBatchCopier() override {
    {
      const std::lock_guard lock(mutex_);
      leave_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void start(std::vector<TensorCopy> tensors) override {
    for (const TensorCopy& tensor : tensors)
      if (!tensor.from.is_non_overlapping_and_dense() ||
          tensor.from.strides() != tensor.to.strides() ||
          tensor.from.nbytes() != tensor.to.nbytes())
        throw std::logic_error("a batch is copied between tensors of one layout");
    {
      const std::lock_guard lock(mutex_);
      tensors_ = std::move(tensors);
      busy_ = true;
    }
    changed_.notify_all();
  }
  void wait() override {
    const double before = steady_seconds();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !busy_; });
    tensors_.clear();
    times_.wait_seconds += steady_seconds() - before;
    times_.copy_seconds += copied_seconds_;
    copied_seconds_ = 0;
  }
  CopyTimes times() override { return times_; }
  void restart() override { times_ = {}; }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return busy_ || leave_; });
      if (leave_) return;
      lock.unlock();
      const double before = steady_seconds();
      // start() and wait() do not change the tensors until they are copied.
      for (const TensorCopy& tensor : tensors_)
        std::memcpy(tensor.to.mutable_data_ptr(), tensor.from.const_data_ptr(),
                    tensor.from.nbytes());
      const double seconds = steady_seconds() - before;
      lock.lock();
      copied_seconds_ = seconds;
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TensorCopy> tensors_;
  bool busy_ = false, leave_ = false;
  double copied_seconds_ = 0;  ///< seconds of the copy that was not waited for yet
  CopyTimes times_;            ///< used by the caller's thread alone
  std::thread thread_;         ///< last: it uses the others
};

}  // namespace

std::unique_ptr<BatchCopier> make_cpu_batch_copier() { return std::make_unique<CpuBatchCopier>(); }

}  // namespace scalemark

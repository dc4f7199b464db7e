// Copies on a second stream. Events order the copy after the work that still reads the buffer, and
// the next step after the copy; the host never waits.
#include "train/cuda/batch_copier.hpp"

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <deque>

#include "comm/cuda/check.hpp"

namespace scalemark {
namespace {

using at::cuda::CUDAEvent;

class CudaBatchCopier : public BatchCopier {
 public:
  CudaBatchCopier() : stream_(c10::cuda::getStreamFromPool()) {}
  // The copy for a step that never comes may still read and write its buffers. A fault of the
  // device is reported by whoever works with it; it must not be thrown here.
  ~CudaBatchCopier() override {
    if (!unwinding_) cudaStreamSynchronize(stream_.stream());
  }

  void start(std::vector<TensorCopy> tensors) override {
    CUDAEvent asked_so_far;
    asked_so_far.record(c10::cuda::getCurrentCUDAStream());
    asked_so_far.block(stream_);
    const c10::cuda::CUDAStreamGuard guard(stream_);
    copy_.begin.record(stream_);
    for (const TensorCopy& tensor : tensors) {
      at::Tensor to = tensor.to;
      to.copy_(tensor.from, /*non_blocking=*/true);
    }
    copy_.end.record(stream_);
  }
  void wait() override {
    const auto compute = c10::cuda::getCurrentCUDAStream();
    Span waited;
    waited.begin.record(compute);
    copy_.end.block(compute);
    waited.end.record(compute);
    waits_.push_back(std::move(waited));
    copies_.push_back(std::move(copy_));
    copy_ = {};
    add_finished();
  }
  CopyTimes times() override {
    if (!waits_.empty()) waits_.back().end.synchronize();
    add_finished();
    return times_;
  }
  void restart() override {
    times();
    times_ = {};
  }

 private:
  struct Span {
    CUDAEvent begin{cudaEventDefault}, end{cudaEventDefault};  // with timing
  };

  /// A wait that has finished comes after its copy.
  void add_finished() {
    while (!waits_.empty() && waits_.front().end.query()) {
      times_.copy_seconds += copies_.front().begin.elapsed_time(copies_.front().end) * 1e-3;
      times_.wait_seconds += waits_.front().begin.elapsed_time(waits_.front().end) * 1e-3;
      copies_.pop_front();
      waits_.pop_front();
    }
  }

  Unwinding unwinding_;
  c10::cuda::CUDAStream stream_;
  Span copy_;                ///< the copy that was not waited for yet
  std::deque<Span> copies_;  ///< copies, in the same order as waits_
  std::deque<Span> waits_;
  CopyTimes times_;
};

}  // namespace

std::unique_ptr<BatchCopier> make_cuda_batch_copier() {
  return std::make_unique<CudaBatchCopier>();
}

}  // namespace scalemark

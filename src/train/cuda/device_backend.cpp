// Implements one GPU as a device, through LibTorch's streams, events and caching allocator, what
// launches its kernels, and the device factory and NCCL backend of c10d of a build with CUDA.
#define USE_C10D_NCCL  // the setting with which LibTorch was built, for its process group
#include "train/device_backend.hpp"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <vector>

#include "comm/cuda/runtime.hpp"
#include "error.hpp"
#include "models/triton/operators.hpp"
#include "platform/memory_limit.hpp"
#include "platform/platform.hpp"
#include "train/c10d/process_group.hpp"

namespace scalemark {

namespace {

using at::cuda::CUDAEvent;

/// Copies on a second stream. Events order the copy after the work that still reads the buffer, and
/// the next step after the copy; the host never waits. The times come from events.
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

/// Returns a host tensor like `like` (sizes, strides, type) in pinned memory with undefined values.
/// It must outlive the copies from and to it, since nothing waits for them. LibTorch's own pinned
/// tensors wait, by an event that is recorded while they are freed; after a fault of the device
/// that throws from a destructor, which ends the process before its record is written. Throws
/// CommError where the memory cannot be pinned.
at::Tensor pinned_tensor(const at::Tensor& like) {
  const auto memory = std::make_shared<PinnedMemory>(like.storage().nbytes());
  return at::from_blob(
      memory->data(), like.sizes(), like.strides(), [memory](void*) {},
      at::TensorOptions().dtype(like.dtype()));
}

/// Records an event at each mark. Their distances are read once the GPU has passed them.
class CudaClock : public StepClock {
 public:
  void mark() override {
    marks_.emplace_back(cudaEventDefault);  // with timing
    marks_.back().record(at::cuda::getCurrentCUDAStream());
  }
  void pause() override {
    seconds();
    marks_.clear();
  }
  const std::vector<double>& seconds() override {
    while (marks_.size() > 1 && marks_[1].query()) {
      seconds_.push_back(marks_[0].elapsed_time(marks_[1]) * 1e-3);
      marks_.pop_front();
    }
    return seconds_;
  }

 private:
  std::deque<at::cuda::CUDAEvent> marks_;
  std::vector<double> seconds_;
};

/// Records an event at each phase. Events are reused, since creating one takes as long as recording
/// it.
class CudaPhases : public PhaseClock {
 public:
  ~CudaPhases() override {
    if (ranged_) nvtxRangePop();
  }
  void enter(StepPhase phase) override {
    if (ranged_) nvtxRangePop();
    nvtxRangePushA(kStepPhases[static_cast<std::size_t>(phase)]);
    ranged_ = true;
    if (spare_.empty()) spare_.emplace_back(cudaEventDefault);
    marks_.push_back({phase, std::move(spare_.back())});
    spare_.pop_back();
    marks_.back().begin.record(at::cuda::getCurrentCUDAStream());
    if (phase == StepPhase::rest) read();  // once a step
  }
  void pause() override {
    enter(StepPhase::rest);  // ends the phase before
    at::cuda::getCurrentCUDAStream().synchronize();
    read();
    spare_.push_back(std::move(marks_.front().begin));
    marks_.clear();
    nvtxRangePop();
    ranged_ = false;
  }
  const PhaseSeconds& seconds() const override { return seconds_; }

 private:
  struct Mark {
    StepPhase phase;
    at::cuda::CUDAEvent begin;
  };
  void read() {
    while (marks_.size() > 1 && marks_[1].begin.query()) {
      Mark& first = marks_.front();
      seconds_[static_cast<std::size_t>(first.phase)] +=
          first.begin.elapsed_time(marks_[1].begin) * 1e-3;
      spare_.push_back(std::move(first.begin));
      marks_.pop_front();
    }
  }
  std::deque<Mark> marks_;
  std::vector<at::cuda::CUDAEvent> spare_;
  PhaseSeconds seconds_{};
  bool ranged_ = false;
};

/// Copies into two pinned slots alternately, and reads the one of the step before.
class CudaReader : public ScalarReader {
 public:
  CudaReader() {
    for (Slot& slot : slots_) slot.host = pinned_tensor(at::empty({1}, at::kFloat));
  }
  std::optional<double> exchange(const at::Tensor& scalar) override {
    Slot& slot = slots_[next_];
    slot.host.copy_(scalar.reshape({1}), /*non_blocking=*/true);
    slot.copied.record(at::cuda::getCurrentCUDAStream());
    next_ = 1 - next_;
    const bool first = !posted_;
    posted_ = true;
    return first ? std::nullopt : std::optional(read(slots_[next_]));
  }
  std::optional<double> finish() override {
    if (!posted_) return std::nullopt;
    posted_ = false;
    return read(slots_[1 - next_]);
  }

 private:
  struct Slot {
    at::Tensor host;
    at::cuda::CUDAEvent copied;
  };
  static double read(Slot& slot) {
    slot.copied.synchronize();
    return *slot.host.const_data_ptr<float>();
  }
  Slot slots_[2];
  int next_ = 0;
  bool posted_ = false;
};

/// Records CUDA graphs on a stream of its own, since the default one cannot be recorded. All share
/// the memory pool of the first.
class CudaRecorder : public WorkRecorder {
 public:
  void record(const std::function<void()>& work) override {
    c10::cuda::device_synchronize();
    const c10::cuda::CUDAStreamGuard guard(stream());
    at::cuda::getCurrentCUDABlasHandle();  // its workspace lies outside of the graph
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    // Other threads, as that which watches NCCL, may ask CUDA meanwhile.
    graph->capture_begin(graphs_.empty() ? c10::MempoolId_t{0, 0} : graphs_.front()->pool(),
                         cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      try {
        graph->capture_end();
      } catch (const c10::Error&) {  // follows from what `work` has thrown
      }
      throw;
    }
    graph->capture_end();
    graphs_.push_back(std::move(graph));
  }
  void repeat(std::size_t recording) override { graphs_.at(recording)->replay(); }

 private:
  /// Returns the same for all recorders: cuBLAS keeps a workspace for every stream.
  static c10::cuda::CUDAStream stream() {
    static const c10::cuda::CUDAStream it = c10::cuda::getStreamFromPool();
    return it;
  }
  std::vector<std::unique_ptr<at::cuda::CUDAGraph>> graphs_;
};

class CudaBackend : public DeviceBackend {
 public:
  explicit CudaBackend(int index) : index_(static_cast<c10::DeviceIndex>(index)) {
    c10::cuda::set_device(index_);
    // LibTorch must be initialised here, since its memory statistics may be read before there is a
    // tensor.
    at::globalContext().lazyInitDevice(at::kCUDA);
    CudaBackend::try_kernels(true);
    uuid_ = uuid_of_cuda(std::span<const char, 16>(properties().uuid.bytes), visible_gpus());
  }
  at::Device device() const override { return {at::kCUDA, index_}; }
  std::string name() const override { return properties().name; }
  std::string uuid() const override { return uuid_; }
  Stream stream() const override { return at::cuda::getCurrentCUDAStream(index_).stream(); }
  void synchronize() override { c10::cuda::device_synchronize(); }
  bool works_behind_host() const override { return true; }
  std::unique_ptr<StepClock> make_step_clock() override { return std::make_unique<CudaClock>(); }
  std::unique_ptr<PhaseClock> make_phase_clock() override { return std::make_unique<CudaPhases>(); }
  std::unique_ptr<ScalarReader> make_scalar_reader() override {
    return std::make_unique<CudaReader>();
  }
  std::optional<std::int64_t> peak_memory_bytes() const override {
    constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return c10::cuda::CUDACachingAllocator::getDeviceStats(index_).allocated_bytes[all].peak;
  }
  void reset_peak_memory() override { c10::cuda::CUDACachingAllocator::resetPeakStats(index_); }
  void release_free_memory() override {
    c10::cuda::CUDACachingAllocator::emptyCache();
    scalemark::release_free_memory();
  }
  /// Returns all free memory of the GPU, since the GPU belongs to this rank alone.
  std::optional<std::int64_t> memory_left(int) const override {
    std::size_t left = 0, total = 0;
    if (cudaMemGetInfo(&left, &total) != cudaSuccess) return std::nullopt;
    return static_cast<std::int64_t>(left);
  }
  at::Tensor pinned(const at::Tensor& host) const override {
    return pinned_tensor(host).copy_(host);
  }
  void try_kernels(bool all) override { at::globalContext().setBenchmarkCuDNN(all); }
  std::unique_ptr<BatchCopier> make_batch_copier() override {
    return std::make_unique<CudaBatchCopier>();
  }
  std::unique_ptr<WorkRecorder> make_work_recorder() override {
    return std::make_unique<CudaRecorder>();
  }
  bool native(Precision precision) const override {
    if (precision == Precision::fp32) return true;
    return properties().major >= (precision == Precision::fp16 ? 7 : 8);
  }
  void set_precision(Precision precision) override {
    const bool tf32 = precision == Precision::tf32;
    if (precision == Precision::int8)
      throw EnvironmentError(
          "--precision int8 is computed by the CPU's operators: use --device cpu, or fp16 or bf16 "
          "on a GPU");
    if (tf32 && !native(precision))
      throw EnvironmentError(fmt::format(
          "--precision tf32: {} has no tf32 (Ampere and later have); use fp32 or fp16", name()));
    at::globalContext().setAllowTF32CuBLAS(tf32);
    at::globalContext().setAllowTF32CuDNN(tf32);  // LibTorch's own default is true
  }

 private:
  const cudaDeviceProp& properties() const { return *at::cuda::getDeviceProperties(index_); }
  c10::DeviceIndex index_;
  std::string uuid_;
};

/// Launches the kernels that were compiled for this GPU's generation on the current stream.
class CudaLauncher : public KernelLauncher {
 public:
  explicit CudaLauncher(const cudaDeviceProp& gpu) : programs_(8 * gpu.multiProcessorCount) {
    for (const CompiledKernel& compiled : compiled_kernels())
      if (compiled.version / 10 == gpu.major && compiled.version % 10 <= gpu.minor)
        kernels_.insert_or_assign(compiled.name, load(compiled));
    if (kernels_.empty())
      throw EnvironmentError(fmt::format(
          "--kernels triton: this build has none for {}; build with cmake -DSCALEMARK_TRITON=ON "
          "-DSCALEMARK_TRITON_VERSIONS={}{}, or use --kernels scalemark",
          gpu.name, gpu.major, gpu.minor));
  }
  bool reaches(const at::Tensor& x) const override { return x.is_cuda(); }
  std::int64_t programs() const override { return programs_; }
  void launch(const KernelCall& call) const override {
    const Kernel& kernel = kernels_.at(call.name);
    if (kinds_of(call) != kernel.compiled->kinds)
      throw std::logic_error(fmt::format("kernel {} takes {}, not {}", call.name,
                                         kernel.compiled->kinds, kinds_of(call)));
    std::vector<Value> values(call.arguments.size() + kScratchPointers);
    std::vector<void*> places;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i < call.arguments.size())
        std::visit([&](const auto& argument) { put(values[i], argument); }, call.arguments[i]);
      places.push_back(&values[i]);
    }
    cudaLaunchConfig_t config{};
    config.gridDim = {static_cast<unsigned>(call.programs[0]),
                      static_cast<unsigned>(call.programs[1]), 1};
    config.blockDim = {static_cast<unsigned>(32 * kernel.compiled->warps), 1, 1};
    config.dynamicSmemBytes = kernel.compiled->shared_bytes;
    config.stream = at::cuda::getCurrentCUDAStream();
    C10_CUDA_CHECK(cudaLaunchKernelExC(&config, kernel.handle, places.data()));
  }

 private:
  /// The last two parameters of every kernel of Triton, of which ours have no need.
  static constexpr std::size_t kScratchPointers = 2;
  struct Kernel {
    const CompiledKernel* compiled;
    cudaKernel_t handle;
  };
  union Value {
    void* pointer = nullptr;
    std::int64_t integer;
    float real;
  };
  static void put(Value& value, const at::Tensor& tensor) { value.pointer = tensor.data_ptr(); }
  static void put(Value& value, std::int64_t integer) { value.integer = integer; }
  static void put(Value& value, float real) { value.real = real; }

  static Kernel load(const CompiledKernel& compiled) {
    cudaLibrary_t library{};
    Kernel kernel{&compiled, {}};
    C10_CUDA_CHECK(cudaLibraryLoadData(&library, compiled.binary, nullptr, nullptr, 0, nullptr,
                                       nullptr, 0));  // until the process ends
    C10_CUDA_CHECK(cudaLibraryGetKernel(&kernel.handle, library, compiled.symbol));
    return kernel;
  }

  std::int64_t programs_;
  std::map<std::string, Kernel> kernels_;
};

std::string version(int number) {  // CUDA's 13020 means 13.2
  return number == 0 ? "none" : fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

struct VisibleGpus {
  int count = 0;
  std::string reason;  ///< why none can be used, with the driver's and the runtime's version
};

VisibleGpus count_gpus() {
  int driver = 0, runtime = 0, count = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const cudaError_t error = cudaGetDeviceCount(&count);
  const std::string versions = fmt::format("the driver supports CUDA {}, this build needs CUDA {}",
                                           version(driver), version(runtime));
  if (error != cudaSuccess) {
    cudaGetLastError();  // clears it
    return {0, fmt::format("no usable GPU: {} ({})", cudaGetErrorString(error), versions)};
  }
  if (count == 0)
    return {0, fmt::format("no GPU is visible (CUDA_VISIBLE_DEVICES?); {}", versions)};
  return {count, ""};
}

}  // namespace

std::unique_ptr<DeviceBackend> make_device_backend(Device device, int local_rank) {
  if (device == Device::cpu) return make_cpu_backend();
  const VisibleGpus gpus = count_gpus();
  if (gpus.count == 0 && device == Device::automatic) return make_cpu_backend();
  if (gpus.count == 0)
    throw EnvironmentError("--device cuda: " + why_no_cuda() + ", or use --device cpu");
  // A launcher may give each task a GPU of its own; ranks on one UUID are refused later.
  if (gpus.count == 1) return std::make_unique<CudaBackend>(0);
  if (local_rank >= gpus.count)
    throw EnvironmentError(fmt::format(
        "local rank {} has no GPU of its own: {} visible; start at most {} ranks a host, or use "
        "--device cpu",
        local_rank, gpus.count, gpus.count));
  return std::make_unique<CudaBackend>(local_rank);
}

const OperatorSet& gpu_operators() {
  static const std::unique_ptr<OperatorSet> operators =
      triton_operators(c10::make_intrusive<CudaLauncher>(*at::cuda::getCurrentDeviceProperties()));
  return *operators;
}

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    int rank, int size, int cuda_device,
                                                    C10dTimeout timeout) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
  // This connects now, under the deadline of the start-up, and not in the first step.
  backend->eagerConnectSingleDevice({at::kCUDA, static_cast<c10::DeviceIndex>(cuda_device)});
  return backend;
}

std::string why_no_cuda() {
  const VisibleGpus gpus = count_gpus();
  return gpus.count > 0 ? "" : gpus.reason + "; update the driver";
}

}  // namespace scalemark

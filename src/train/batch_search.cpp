// Tries out batch sizes, detects lack of memory on every rank, and runs a few steps with a batch
// that may be too large.
#include "train/batch_search.hpp"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "config/keys.hpp"
#include "measure/clock.hpp"
#include "platform/memory_limit.hpp"
#include "platform/platform.hpp"
#include "train/inferencer.hpp"
#include "train/measured_loop.hpp"
#include "train/step_loop.hpp"

namespace scalemark {

namespace {

bool says_out_of_memory(std::string_view text) {
  // The CPU's allocator throws a plain c10::Error. oneDNN has its own errors; its "could not create
  // a primitive" is also the error for code that it may not map.
  constexpr std::array<std::string_view, 10> kWords{
      "can't allocate memory", "not enough memory", "out of memory", "out_of_memory", "bad_alloc",
      "could not create a primitive", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED",
      "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
      // cuDNN reports this where all its engines needed more work space than there was.
      "unable to find an engine to execute"};
  return std::ranges::any_of(kWords, [&](auto words) { return text.find(words) != text.npos; });
}

/// The rest is reserved for the growth of the heap from step to step, and for communication
/// buffers.
constexpr double kShareOfMemory = 0.7;

/// Refuses, during its lifetime, a tensor on the CPU for which the heap would grow beyond
/// `limit_bytes`, with std::bad_alloc. Other allocations are never refused, since not all libraries
/// below survive that. Pages count once the allocator holds them, before they are touched.
class HeapGuard : public c10::Allocator {
 public:
  explicit HeapGuard(std::int64_t limit_bytes) : limit_bytes_(limit_bytes) {
    c10::SetCPUAllocator(this);
  }
  ~HeapGuard() override { c10::SetCPUAllocator(inner_); }
  HeapGuard(const HeapGuard&) = delete;
  HeapGuard& operator=(const HeapGuard&) = delete;

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes < kLeastCheckedBytes) return inner_->allocate(bytes);
    const HeapUse before = heap_use();  // what cannot fit is not even requested
    if (before.held - before.free + static_cast<std::int64_t>(bytes) > limit_bytes_)
      throw std::bad_alloc();
    c10::DataPtr data = inner_->allocate(bytes);
    if (heap_use().held > limit_bytes_) throw std::bad_alloc();
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }

 private:
  static constexpr std::size_t kLeastCheckedBytes = 1 << 16;
  std::int64_t limit_bytes_;
  c10::Allocator* inner_ = c10::GetCPUAllocator();
};

/// Detects the warnings with which LibTorch continues without oneDNN where memory is short. Such a
/// trial fits only by chance.
class MemoryWarnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (says_out_of_memory(warning.msg()))
      heard_ = true;
    else
      c10::WarningHandler::process(warning);
  }
  bool heard() const { return heard_; }

 private:
  bool heard_ = false;
  c10::WarningUtils::WarningHandlerGuard guard_{this};
};

/// Returns the outcome of this rank. An error other than a lack of memory is agreed on and thrown.
BatchTrial try_here(DeviceBackend& device, RankGroup& group, std::int64_t batch,
                    std::optional<std::int64_t> limit_bytes,
                    const std::function<double(std::int64_t)>& step) {
  group.watchdog().enter("batch search");
  device.release_free_memory();
  device.reset_peak_memory();
  reset_peak_rss();
  BatchTrial trial{batch, true, 0, 0};
  const std::int64_t resident_before = peak_rss_bytes();
  const double begin = steady_seconds();
  group.agree_on([&] {
    std::optional<HeapGuard> guard;
    if (limit_bytes && device.device().is_cpu()) guard.emplace(heap_use().held + *limit_bytes);
    MemoryWarnings warnings;
    try {
      trial.seconds = step(batch);
      trial.fits = !warnings.heard();
      // Huge pages may hold more than the heap accounts for.
      if (guard && peak_rss_bytes() - resident_before > *limit_bytes) trial.fits = false;
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      trial.fits = false;
      trial.seconds = steady_seconds() - begin;
    }
  });
  trial.peak_bytes = device.peak_memory_bytes().value_or(peak_rss_bytes());
  return trial;
}

/// Returns the worst outcome over all ranks, or nullopt where one was asked to stop.
std::optional<BatchTrial> worst_of_all(RankGroup& group, BatchTrial trial) {
  const nlohmann::json mine{trial.fits, trial.seconds, trial.peak_bytes, stop_requested()};
  bool stop = false;
  for (const std::string& text : group.all_gather(mine.dump())) {
    const auto rank = nlohmann::json::parse(text);
    trial.fits = trial.fits && rank[0].get<bool>();
    trial.seconds = std::max(trial.seconds, rank[1].get<double>());
    trial.peak_bytes = std::max(trial.peak_bytes, rank[2].get<std::int64_t>());
    stop = stop || rank[3].get<bool>();
  }
  return stop ? std::nullopt : std::optional(trial);
}

/// Returns the least limit over ranks, or nullopt where no rank knows one.
std::optional<std::int64_t> least(RankGroup& group, std::optional<std::int64_t> mine) {
  std::optional<std::int64_t> found;
  for (const std::string& text : group.all_gather(mine ? std::to_string(*mine) : "")) {
    if (text.empty()) continue;
    const std::int64_t bytes = std::stoll(text);
    found = std::min(found.value_or(bytes), bytes);
  }
  return found;
}

/// Makes cuDNN use its first guess during its lifetime: trying kernels takes seconds at every batch
/// size, and their work space would count.
class FirstGuesses {
 public:
  explicit FirstGuesses(DeviceBackend& device) : device_(device) { device_.try_kernels(false); }
  ~FirstGuesses() { device_.try_kernels(true); }
  FirstGuesses(const FirstGuesses&) = delete;
  FirstGuesses& operator=(const FirstGuesses&) = delete;

 private:
  DeviceBackend& device_;
};

constexpr int kTrialSteps = 3;

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) ||
      dynamic_cast<const c10::OutOfMemoryError*>(&error))
    return true;
  return says_out_of_memory(error.what());
}

BatchSearch find_largest_batch(DeviceBackend& device, RankGroup& group,
                               const std::function<double(std::int64_t)>& step) {
  const FirstGuesses guesses(device);
  group.watchdog().enter("batch search");
  device.release_free_memory();
  group.barrier();  // all ranks hold their weights and nothing else
  const auto left = device.memory_left(group.local_size());
  group.barrier();  // no rank begins to try while another still reads
  std::optional<std::int64_t> limit = left;
  if (left && device.device().is_cpu())
    limit = static_cast<std::int64_t>(kShareOfMemory * static_cast<double>(*left));
  BatchSearch search = bisect_batch(kLargestBatchSize, [&](std::int64_t batch) {
    return worst_of_all(group, try_here(device, group, batch, limit, step));
  });
  search.limit_bytes = least(group, limit);
  group.watchdog().enter("batch search");
  device.release_free_memory();
  group.agree_on([&] {
    if (search.largest == 0 && search.limited_by == "memory")
      throw RunError(
          "--batch_size max: not even one sample a rank fits in memory: start fewer ranks on this "
          "host, or choose a smaller model, sequence or image");
  });
  return search;
}

double Trainer::try_batch(RankGroup& alone, std::int64_t batch_size) {
  Impl& trainer = *impl_;
  const auto let_go = [&trainer] {
    trainer.parameters->set_on_ready([](int) {});
    trainer.micro_batches.clear();
    trainer.batches.clear();
    trainer.plan = {};
  };
  let_go();  // the previous batch must not be held beside this one
  trainer.untouched = false;
  try {
    set_batch({batch_size, batch_size, batch_size});
    const auto communicator = make_communicator(CommunicatorKind::none, alone, -1);
    MeasuredLoop loop(trainer, alone, *communicator, InjectedFault());
    loop.meet_shapes();
    const double begin = steady_seconds();
    // Later steps also encounter the gaps that the first one has left in the heap.
    loop.run(kTrialSteps, "batch search", StoppingRule(std::nullopt, std::nullopt), nullptr);
    const double seconds = (steady_seconds() - begin) / kTrialSteps;
    let_go();
    return seconds;
  } catch (...) {
    let_go();
    throw;
  }
}

double Inferencer::try_batch(std::int64_t batch_size) {
  const c10::InferenceMode inference;
  queries_.clear();
  try {
    queries_ = make_queries(batch_size);
    if (device_.works_behind_host()) {  // the libraries choose their kernels
      model_->forward(queries_.front());
      device_.synchronize();
    }
    const double begin = steady_seconds();
    for (int i = 0; i < kTrialSteps; ++i) model_->forward(queries_.front());
    device_.synchronize();
    const double seconds = (steady_seconds() - begin) / kTrialSteps;
    queries_.clear();
    return seconds;
  } catch (...) {
    queries_.clear();
    throw;
  }
}

}  // namespace scalemark

// Records operators, where every thread writes to its own memory, which no other thread touches
// before the end; and kernels and copies through LibTorch's profiler.
#include "train/trace/recorders.hpp"

#include <ATen/ATen.h>
#if defined(_OPENMP)
#include <omp.h>
#endif
#include <fmt/format.h>
#include <kineto/ActivityType.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "measure/clock.hpp"

namespace scalemark {

/// What is known about the operators of one name.
struct OperatorName {
  std::string name;
  OperatorGroup group;
  const CountedOperator* counted;
  bool is_packed;  ///< has FLOPs, and weights whose shape cannot be seen
};

struct OperatorFrame;

/// The calls of one thread. The lock is for operators that are still running when the recording
/// ends.
struct ThreadCalls {
  explicit ThreadCalls(int thread) : number(thread) {}
  const int number;
  std::mutex mutex;
  OperatorFrame* open = nullptr;  ///< the innermost operator under way
  double seconds = 0;             ///< time in operators that no other operator had called
  std::unordered_map<std::size_t, OperatorName> names;     ///< names by hash
  std::unordered_map<std::size_t, std::uint32_t> indices;  ///< indices of labels, by hash
  std::vector<SpanLabel> labels;
  std::vector<Span> spans;
  std::map<std::pair<const OperatorName*, OperatorGroup>, OperatorTotal> totals;
};

struct OperatorRecorder::Recording {
  std::atomic<std::int64_t> spans_left;
  std::atomic<bool> in_optimizer{false};
  std::mutex mutex;  ///< guards `threads`
  std::vector<std::shared_ptr<ThreadCalls>> threads;

  explicit Recording(std::size_t most_spans) : spans_left(static_cast<std::int64_t>(most_spans)) {}
};

/// An operator that is running.
struct OperatorFrame : at::ObserverContext {
  std::shared_ptr<OperatorRecorder::Recording> recording;
  std::shared_ptr<ThreadCalls> calls;
  OperatorFrame* parent = nullptr;
  const OperatorName* named = nullptr;
  OperatorGroup group = OperatorGroup::other;
  std::uint32_t label = 0;
  bool within_counted = false;  ///< FLOPs are those of an operator outside of it
  std::optional<CountedCall> counted;
  double begin = 0, inner_seconds = 0;
};

namespace {

using Recording = OperatorRecorder::Recording;

// LibTorch's callbacks are plain functions, so the recording that they write to is found through a
// global variable.
std::mutex current_mutex;
std::shared_ptr<Recording> current;
std::atomic<std::uint64_t> current_number{
    0};  ///< number of the recording; changes whenever `current` does

struct OfThread {
  std::uint64_t number = 0;
  std::shared_ptr<Recording> recording;
  std::shared_ptr<ThreadCalls> calls;
};
thread_local OfThread of_thread;

/// Returns this thread's part of the current recording, or null where there is none.
OfThread* join_recording() {
  if (of_thread.number != current_number.load(std::memory_order_acquire)) {
    const std::lock_guard lock(current_mutex);
    of_thread = {current_number.load(), current, nullptr};
    if (current) {
      const std::lock_guard threads_lock(current->mutex);
      of_thread.calls =
          std::make_shared<ThreadCalls>(static_cast<int>(current->threads.size()) + 1);
      current->threads.push_back(of_thread.calls);
    }
  }
  return of_thread.calls ? &of_thread : nullptr;
}

void make_current(std::shared_ptr<Recording> recording) {
  const std::lock_guard lock(current_mutex);
  current = std::move(recording);
  ++current_number;
}

std::size_t mixed(std::size_t hash, std::size_t value) {
  return hash ^ (value + 0x9e3779b97f4a7c15U + (hash << 6) + (hash >> 2));
}

template <typename F>
void for_each_tensor(const at::RecordFunction& call, F f) {
  for (const c10::IValue& input : call.inputs())
    if (input.isTensor() && input.toTensor().defined()) f(input.toTensor());
}

std::string shapes_of(const at::RecordFunction& call) {
  std::string text;
  for_each_tensor(call, [&](const at::Tensor& tensor) {
    text += text.empty() ? "[" : ", [";
    for (std::int64_t i = 0; i < tensor.dim(); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : ", ", tensor.size(i));
    text += "]";
  });
  return text;
}

const OperatorName& named_of(ThreadCalls& calls, std::string_view name, std::size_t hash) {
  const auto [place, is_new] = calls.names.try_emplace(hash);
  if (is_new) {
    const bool packed = name.starts_with("quantized::") && name.find("prepack") == name.npos;
    const OperatorGroup group = group_of(name);
    place->second = {
        std::string(name), group, find_counted(name),
        packed && (group == OperatorGroup::convolution || group == OperatorGroup::matrix_product)};
  }
  return place->second;
}

std::uint32_t label_of(ThreadCalls& calls, const OperatorName& named, std::size_t hash,
                       const at::RecordFunction& call) {
  for_each_tensor(call, [&](const at::Tensor& tensor) {
    hash = mixed(hash, static_cast<std::size_t>(tensor.dim()));
    for (const std::int64_t size : tensor.sizes())
      hash = mixed(hash, static_cast<std::size_t>(size));
  });
  const auto [place, is_new] =
      calls.indices.try_emplace(hash, static_cast<std::uint32_t>(calls.labels.size()));
  if (is_new) {
    const bool node = call.scope() == at::RecordScope::BACKWARD_FUNCTION;
    calls.labels.push_back({named.name, node ? "autograd" : "operator", shapes_of(call),
                            named.counted ? "flops" : ""});
  }
  return place->second;
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& call) {
  const OfThread* const mine = join_recording();
  if (!mine) return nullptr;
  ThreadCalls& calls = *mine->calls;
  auto frame = std::make_unique<OperatorFrame>();
  frame->recording = mine->recording;
  frame->calls = mine->calls;
  const std::lock_guard lock(calls.mutex);
  const std::string_view name(call.name());
  const std::size_t hash = std::hash<std::string_view>{}(name);
  const OperatorName& named = named_of(calls, name, hash);
  frame->named = &named;
  frame->parent = calls.open;
  if (mine->recording->in_optimizer)
    frame->group = OperatorGroup::optimizer;
  else if (named.group != OperatorGroup::other || !frame->parent)
    frame->group = named.group;
  else
    frame->group = frame->parent->group;
  if (frame->parent)
    frame->within_counted = frame->parent->within_counted || frame->parent->counted.has_value();
  if (named.counted && !frame->within_counted) frame->counted.emplace(*named.counted, call);
  if (mine->recording->spans_left > 0) frame->label = label_of(calls, named, hash, call);
  calls.open = frame.get();
  frame->begin = steady_seconds();
  return frame;
}

/// Returns the number of threads of the parallel loop in which this thread calls operators, or 1
/// outside of such a loop.
int threads_at_once() {
#if defined(_OPENMP)
  return omp_get_num_threads();
#else
  return 1;
#endif
}

void on_end(const at::RecordFunction& call, at::ObserverContext* context) {
  const double end = steady_seconds();
  auto* const frame = dynamic_cast<OperatorFrame*>(context);
  if (!frame) return;
  ThreadCalls& calls = *frame->calls;
  const std::lock_guard lock(calls.mutex);
  const double seconds = end - frame->begin;
  calls.open = frame->parent;
  (frame->parent ? frame->parent->inner_seconds : calls.seconds) += seconds;
  const std::int64_t flops = frame->counted ? frame->counted->flops(call) : 0;
  OperatorTotal& total = calls.totals[{frame->named, frame->group}];
  ++total.calls;
  total.self_seconds += (seconds - frame->inner_seconds) / threads_at_once();
  if (frame->named->is_packed)
    total.flops.reset();
  else
    *total.flops += static_cast<double>(flops);
  if (frame->recording->spans_left-- > 0)
    calls.spans.push_back({frame->label, calls.number, frame->begin, end, flops});
}

/// Adds what a thread recorded. Labels get the numbers that they have in `trace`.
void add_thread(RankTrace& trace, ThreadCalls& calls,
                std::map<std::pair<std::string, std::string>, OperatorTotal>& totals) {
  const std::lock_guard lock(calls.mutex);
  const auto first = static_cast<std::uint32_t>(trace.labels.size());
  for (Span& span : calls.spans) span.label += first;
  trace.spans.insert(trace.spans.end(), calls.spans.begin(), calls.spans.end());
  trace.labels.insert(trace.labels.end(), calls.labels.begin(), calls.labels.end());
  calls.spans = {};  // frees the spans, since a thread may live as long as the process
  trace.threads[calls.number] =
      calls.number == 1 ? "steps" : fmt::format("operators {}", calls.number);
  for (const auto& [key, of_thread] : calls.totals) {
    const auto& [named, group] = key;
    const std::string word = kOperatorGroups[static_cast<std::size_t>(group)];
    OperatorTotal& total = totals[{named->name, word}];
    total.name = named->name;
    total.group = word;
    total.calls += of_thread.calls;
    total.self_seconds += of_thread.self_seconds;
    total.flops = total.flops && of_thread.flops ? std::optional(*total.flops + *of_thread.flops)
                                                 : std::nullopt;
  }
}

}  // namespace

OperatorRecorder::OperatorRecorder(std::size_t most_spans)
    : recording_(std::make_shared<Recording>(most_spans)) {
  make_current(recording_);
  join_recording();
  handle_ = at::addGlobalCallback(
      at::RecordFunctionCallback(on_start, on_end)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

OperatorRecorder::~OperatorRecorder() {
  if (handle_ == 0) return;
  at::removeCallback(handle_);
  make_current(nullptr);
}

void OperatorRecorder::set_optimizer(bool runs) { recording_->in_optimizer = runs; }

double OperatorRecorder::operator_seconds() const {
  ThreadCalls& calls = *of_thread.calls;
  const std::lock_guard lock(calls.mutex);
  return calls.seconds;
}

void OperatorRecorder::take(RankTrace& trace) {
  at::removeCallback(std::exchange(handle_, 0));
  make_current(nullptr);
  std::map<std::pair<std::string, std::string>, OperatorTotal> totals;
  const std::lock_guard lock(recording_->mutex);
  for (const auto& calls : recording_->threads) add_thread(trace, *calls, totals);
  trace.dropped_spans += std::max<std::int64_t>(0, -recording_->spans_left);
  for (auto& [key, total] : totals) trace.operators.push_back(std::move(total));
}

namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Returns an empty text for what takes no time of the device: events, ranges, synchronisation.
std::string category_of(const profiler::KinetoEvent& event) {
  switch (static_cast<libkineto::ActivityType>(event.activityType())) {
    case libkineto::ActivityType::CONCURRENT_KERNEL:
      return "kernel";
    case libkineto::ActivityType::GPU_MEMCPY:
    case libkineto::ActivityType::GPU_MEMSET:
      return "copy";
    case libkineto::ActivityType::CPU_OP:
      return "operator";
    default:
      return "";
  }
}

}  // namespace

KernelRecorder::KernelRecorder(std::size_t most_spans, bool of_host)
    : most_spans_(most_spans),
      of_host_(of_host),
      steady_minus_unix_(steady_seconds() - unix_seconds()) {
  const profiler::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set<ActivityType> activities{of_host ? ActivityType::CPU : ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  records_ = true;
}

KernelRecorder::~KernelRecorder() {
  try {
    if (records_) profiler::disableProfiler();
  } catch (const std::exception&) {  // what it recorded is wanted by nobody
  }
}

void KernelRecorder::take(RankTrace& trace) {
  records_ = false;
  const auto result = profiler::disableProfiler();
  const auto wanted = of_host_ ? c10::DeviceType::CPU : c10::DeviceType::CUDA;
  std::map<std::int64_t, int> streams;  // maps streams to threads
  std::map<std::pair<std::string, std::string>, std::uint32_t> labels;
  std::size_t kept = 0;
  for (const profiler::KinetoEvent& event : result->events()) {
    const std::string category = category_of(event);
    if (event.deviceType() != wanted || category.empty()) continue;
    if (kept++ >= most_spans_) {
      ++trace.dropped_spans;
      continue;
    }
    const int next = kFirstStream + static_cast<int>(streams.size());
    const auto [stream, is_new] = streams.emplace(event.deviceResourceId(), next);
    if (is_new) trace.threads[next] = fmt::format("GPU stream {}", stream->first);
    const auto [label, is_first] = labels.emplace(std::pair(event.name(), category),
                                                  static_cast<std::uint32_t>(trace.labels.size()));
    if (is_first) trace.labels.push_back({label->first.first, category, "", ""});
    const auto on_host = [&](std::uint64_t nanoseconds) {
      return 1e-9 * static_cast<double>(nanoseconds) + steady_minus_unix_;
    };
    trace.spans.push_back(
        {label->second, stream->second, on_host(event.startNs()), on_host(event.endNs()), 0});
  }
}

}  // namespace scalemark

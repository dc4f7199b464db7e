// Records kernels and copies through LibTorch's profiler.
#include "train/trace/kernel_recorder.hpp"

#include <fmt/format.h>
#include <kineto/ActivityType.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "measure/clock.hpp"

namespace scalemark {
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

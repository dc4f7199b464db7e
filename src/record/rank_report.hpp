// What each rank reports to rank 0 after a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/samples.hpp"
#include "platform/binding.hpp"
#include "platform/energy.hpp"
#include "platform/platform.hpp"
#include "record/describe.hpp"

namespace scalemark {

struct OperatorTotal;
struct RankTrace;

/// What each rank reports to rank 0 after a run.
struct RankReport {
  int rank = 0;
  std::string host;
  Affinity affinity;
  RequestedBinding affinity_requested;
  int cpus_of_host = 0;               ///< logical ones that are online; 0: unknown
  std::vector<int> near_cpus_of_gpu;  ///< empty: no GPU, or its place is unknown
  std::optional<int> gpu;
  std::string gpu_uuid;
  int threads = 1;
  Samples samples;
  NoiseEvidence noise;
  std::vector<MachineReading> readings;  ///< `at` from the loop's begin; of --window_seconds
  Energy energy;  ///< of its host where it is the host's first rank, and of its GPU
  bool energy_of_host = false;
  double communication_cpu_seconds = 0;  ///< CPU time of the communication thread during the loop
  std::int64_t peak_rss_bytes = 0;
  std::optional<std::int64_t> peak_gpu_bytes;
  std::int64_t gradient_buffer_bytes = 0;
  std::int64_t weight_bytes = 0, optimizer_state_bytes = 0, batch_bytes = 0;
  static void describe(Fields& fields);
};

template <>
struct Description<Samples> {
  static void of(Fields& fields);
};
/// Of a rank's trace rank 0 hears the sums, without the spans.
template <>
struct Description<OperatorTotal> {
  static void of(Fields& fields);
};
template <>
struct Description<RankTrace> {
  static void of(Fields& fields);
};

}  // namespace scalemark

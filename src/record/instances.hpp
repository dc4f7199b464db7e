// The instances record: jobs side by side, each alone and with neighbours.
#pragma once

#include "platform/slots.hpp"
#include "record/parts.hpp"

namespace scalemark {
namespace record {

/// Where ranks of one job run.
struct Place {
  SlotPlace::Kind kind = SlotPlace::Kind::cpu;
  std::string cpus;
  std::vector<int> numa;
  Known<std::string> gpu_uuid, gpu_name;
  std::string host;
  static void describe(Fields& fields);
};
/// Of one job.
struct Slot {
  SlotPlace::Kind kind = SlotPlace::Kind::cpu;
  Known<std::string> cpus;
  std::vector<int> numa;
  Known<std::string> gpu_uuid, gpu_name;
  std::size_t slot = 0;
  Known<std::vector<Place>> places;
  static void describe(Fields& fields);
};

/// Of steps or queries.
struct LatencyQuantiles {
  Known<double> p50, p90, p99;
  static void describe(Fields& fields);
};
/// One job of a launch.
struct LaunchedJob {
  std::size_t slot = 0;
  Known<std::string> run, path, log;
  Known<double> throughput, units;
  Known<Interval> window_seconds;
  Known<LatencyQuantiles> latency_seconds;
  static void describe(Fields& fields);
};
/// Jobs that were started together.
struct LaunchOfJobs {
  std::int64_t repeat = 1;
  Status status = Status::ok;
  std::string reason;
  Known<double> throughput, sum_of_rates, overlap;
  std::vector<LaunchedJob> instances;
  static void describe(Fields& fields);
};

/// A slot without neighbours.
struct SlotAlone {
  std::size_t slot = 0;
  Status status = Status::ok;
  std::string reason;
  Known<double> throughput;
  Known<LatencyQuantiles> latency_seconds;
  std::vector<LaunchOfJobs> repeats;
  static void describe(Fields& fields);
};

struct CumulativeRate {
  double mean = 0;
  Known<Interval> ci95;
  double sum_of_rates = 0;
  static void describe(Fields& fields);
};
/// A slot with neighbours.
struct SlotOfPoint {
  std::size_t slot = 0;
  double throughput = 0;
  Known<double> alone, ratio;
  LatencyQuantiles latency_seconds;
  Known<LatencyQuantiles> alone_latency_seconds;
  static void describe(Fields& fields);
};
struct InstancesPoint {
  std::size_t instances = 1;
  Status status = Status::ok;
  std::string reason;
  Known<CumulativeRate> cumulative;
  Known<double> speedup, efficiency, overlap;
  Known<bool> overlaps_enough;
  std::vector<SlotOfPoint> per_instance;
  std::vector<LaunchOfJobs> repeats;
  static void describe(Fields& fields);
};

}  // namespace record

struct InstancesResult : record::Envelope {
  std::string job, model, unit;
  Known<std::int64_t> ranks_per_instance;
  std::string repeat_unit = "launch";
  double least_overlap = 0;
  record::Settings config;
  std::string config_hash;
  std::vector<record::Slot> slots;
  std::vector<record::SlotAlone> alone;
  std::vector<record::InstancesPoint> points;
  record::System system;
  Entries<std::string> environment;
  static void describe(Fields& fields);
};

}  // namespace scalemark

// The run record: everything that one measured run says.
#pragma once

#include "record/measured.hpp"

namespace scalemark {
namespace record {

/// Of the steps of a run: per step the maximum over ranks.
struct Summary {
  Known<double> mean, p50, p90, p99;
  std::vector<double> samples;
  static void describe(Fields& fields);
};

struct Link {
  std::string host, link;
  double bytes_per_step = 0;
  static void describe(Fields& fields);
};
struct EmbeddingTable {
  std::string name;
  std::int64_t rows = 1, width = 1;
  bool tied = false;
  Known<double> rows_per_rank;
  static void describe(Fields& fields);
};
/// Gradients of embedding tables.
struct Embedding {
  std::string strategy, tied_gradient;
  std::vector<EmbeddingTable> tables;
  Known<double> rows_per_rank;
  std::int64_t buffer_bytes_per_rank = 0, wire_bytes_per_step = 0;
  Known<double> exchange_seconds, densify_seconds;
  static void describe(Fields& fields);
};
/// What one collective costs a step of a rank, mean.
struct CollectiveCost {
  std::string collective;
  double messages_per_step = 0, bytes_per_step = 0, wire_bytes_per_step = 0;
  double total_seconds = 0, wait_seconds = 0;
  static void describe(Fields& fields);
};
/// Per step and rank.
struct Communication {
  std::string communicator;
  Known<std::string> transport, algorithm;
  std::string reducer, wire_dtype, overlap;
  Known<std::string> shard;
  Known<std::int64_t> shard_ranks;
  Known<double> bucket_mb;
  std::int64_t bytes_per_step = 0, wire_bytes_per_step = 0;
  Known<double> nic_bytes_per_step;
  Known<std::vector<Link>> links;
  std::int64_t messages_per_step = 0;
  Known<double> total_seconds, exposed_seconds;
  Known<std::string> exposed_method;
  Known<double> overlap_fraction, baseline_throughput;
  Known<std::vector<CollectiveCost>> collectives;
  Known<Embedding> embedding;
  static void describe(Fields& fields);
};

struct Input {
  InputPlace place = InputPlace::device;
  std::int64_t bytes_per_step = 0;
  double copy_seconds = 0, wait_seconds = 0;
  static void describe(Fields& fields);
};

struct WriteSeconds {
  double mean = 0, max = 0;
  static void describe(Fields& fields);
};
struct FileRates {
  double mean = 0, min = 0, max = 0;
  static void describe(Fields& fields);
};
struct NodeFiles {
  std::string host;
  std::int64_t files = 1;
  double bytes_per_second = 0;
  static void describe(Fields& fields);
};
struct ProjectedCheckpoint {
  double storage_bytes_per_second = 0;
  std::int64_t interval_steps = 1;
  double overhead_fraction = 0;
  static void describe(Fields& fields);
};
struct Storage {
  double bytes_per_second = 0;
  Known<double> node_bytes_per_second;
  std::string limited_by;
  double seconds = 0, overhead_fraction = 0;
  static void describe(Fields& fields);
};
struct Checkpoint {
  std::int64_t every = 1;
  Known<std::string> writers;
  Known<std::int64_t> files, bytes;
  std::int64_t count = 0;
  Known<WriteSeconds> write_seconds;
  Known<double> bytes_per_second, step_overhead_fraction;
  Known<std::vector<ProjectedCheckpoint>> projected;
  Known<std::int64_t> total_bytes;
  Known<double> total_bytes_per_second;
  Known<FileRates> file_bytes_per_second;
  Known<std::vector<NodeFiles>> nodes;
  Known<Storage> storage;
  static void describe(Fields& fields);
};

struct RunRank : RankPlacement {
  Known<double> step_seconds_mean, wait_seconds_mean, units_per_step;
  Known<bool> straggler;
  static void describe(Fields& fields);
};

struct ScalingOfLoss {
  double initial = 1, last = 1;
  bool dynamic = false;
  std::int64_t skipped_steps = 0;
  static void describe(Fields& fields);
};
struct TargetLoss {
  double loss = 0;
  bool reached = false;
  Known<std::int64_t> steps;
  Known<double> seconds;
  static void describe(Fields& fields);
};
struct Loss {
  Known<double> first, last;
  std::vector<double> trace;
  std::int64_t trace_stride = 1;
  Known<ScalingOfLoss> scaling;
  bool diverged = false;
  Known<TargetLoss> target;
  static void describe(Fields& fields);
};

/// Of --length_distribution.
struct Lengths {
  LengthDistribution distribution = LengthDistribution::uniform;
  Known<double> median, sigma, longest, mean;
  double padding_fraction = 0, imbalance = 1;
  static void describe(Fields& fields);
};

struct RunMemory : Memory {
  Known<std::int64_t> gradient_buffer_bytes, weight_bytes, optimizer_state_bytes, batch_bytes;
  static void describe(Fields& fields);
};
struct EnergyUse {
  Known<double> joules_per_sample;
  Known<std::string> source;
  static void describe(Fields& fields);
};
struct RunNoise : Noise {
  Known<double> communication_cpu_seconds;
  static void describe(Fields& fields);
};

/// Slices of a run that was interleaved with another.
struct Interleaving {
  std::int64_t count = 0;
  double paused_seconds = 0;
  static void describe(Fields& fields);
};
/// By StepPhase.
struct PhaseValues {
  double input = 0, forward = 0, backward = 0;
  Known<double> communication;
  double optimizer = 0, checkpoint = 0, agreement = 0, rest = 0;
  static void describe(Fields& fields);
};
struct Phases {
  std::string clock;
  PhaseValues seconds, fractions;
  static void describe(Fields& fields);
};
struct RankSteps {
  std::int64_t steps_per_cell = 1;
  std::vector<std::vector<double>> compute_seconds;
  static void describe(Fields& fields);
};

}  // namespace record

struct RunResult : record::Measured {
  Known<std::int64_t> global_batch_size;
  Known<double> units_per_step;
  Scaling scaling = Scaling::weak;
  Known<record::Summary> step_seconds;
  Known<std::int64_t> steps;
  Known<record::Communication> communication;
  Known<record::Input> input;
  Known<record::Checkpoint> checkpoint;
  std::vector<record::RunRank> ranks;
  Known<record::Loss> loss;
  Known<record::Lengths> lengths;
  record::RunMemory memory;
  record::EnergyUse energy;
  record::RunNoise noise;
  Known<record::Interleaving> turns;
  Known<record::Phases> phases;
  Known<record::RankSteps> rank_steps;
  static void describe(Fields& fields);
};

}  // namespace scalemark

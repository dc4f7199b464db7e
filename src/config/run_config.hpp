// What to run: every setting of `run`, `scale`, `infer` and `preflight`, with its default.
// Built by config/load.hpp (defaults <- file <- SCALEMARK_* <- command line) from the key table in
// config/keys.hpp, which holds each key's type, range, role, help and commands.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace scalemark {

enum class Precision { fp32, tf32, bf16, fp16 };
enum class Device { automatic, cpu, cuda };
enum class Scaling { weak, strong };
enum class CommunicatorKind { automatic, mpi, nccl, none };
enum class Overlap { none, backward };
enum class WireDtype { fp32, bf16, fp16 };
enum class Reducer { scalemark, c10d };
/// Where a rank that has a GPU runs: near it, or where its launcher has put it.
enum class GpuBinding { near, launcher };
/// How gradients of embedding tables travel; docs/measurements.md has the bytes of each.
enum class EmbeddingGradients { dense, sparse, sparse_as_dense };
/// How the gradient of a projection that shares an embedding's table joins sparse ones.
enum class TiedGradient { dense, sparse };
enum class InputPlace { device, host };
enum class LengthDistribution { fixed, uniform, lognormal };
/// What a curve's efficiency counts.
enum class Resource { rank, node, core, gpu };
enum class Optimizer { sgd, momentum, adam, adamw, lamb, lars };
enum class SyntheticData { noise, learnable };
enum class DataFormat { channels_last, channels_first };
enum class Launcher { automatic, mpirun, srun };
enum class InferenceMode { batch, single_stream };
enum class Fused { on, off };

/// Subcommands whose flags come from the key table.
enum class Command { run, scale, infer, preflight };

/// Where the value of a key came from; written into the record as origin.
enum class Origin { standard, file, environment, command_line };

/// A deliberate fault or delay, `--inject KIND[:rank=R][:step=S][:milliseconds=M]`; recorded and
/// hashed. Kinds: nan_loss, corrupt_allreduce, exit_before_init, kill, stop, delay.
struct Injection {
  std::string kind;
  std::int64_t rank = -1;   ///< -1: every rank
  std::int64_t step = 0;    ///< first step (0-based, counted from the first warm-up step)
  double milliseconds = 0;  ///< delay and busy: per step
};

/// `--lr_schedule`; what each shape computes: config/learning_rate.hpp.
struct LearningRateSchedule {
  enum class Shape { constant, piecewise, polynomial, vaswani };
  Shape shape = Shape::constant;
  std::vector<double> rates = {};             ///< piecewise: one more than boundaries
  std::vector<std::int64_t> boundaries = {};  ///< piecewise: where the next rate begins, ascending
  bool in_steps = false;                      ///< their unit: steps, else epochs
};

struct RunConfig {
  // Model and batch
  std::string model = "resnet50";
  std::optional<std::int64_t> batch_size;  ///< samples per rank; unset: the catalog's default
  std::optional<std::int64_t> global_batch_size;    ///< samples over all ranks
  std::optional<std::int64_t> global_batch_tokens;  ///< target tokens over all ranks
  std::optional<std::int64_t> micro_batch_size;     ///< samples of a pass; unset: the rank's batch
  bool largest_batch = false;  ///< --batch_size max: batch_size is found before the run
  Scaling scaling = Scaling::weak;
  std::optional<std::int64_t> sequence_length;  ///< tokens; unset: the catalog's default
  std::optional<std::int64_t> image_size;       ///< pixels; unset: the catalog's default
  std::int64_t num_classes = 1000;
  SyntheticData data = SyntheticData::noise;
  LengthDistribution length_distribution = LengthDistribution::fixed;
  std::optional<double> length_median;  ///< tokens, of lognormal; unset: half of sequence_length
  double length_sigma = 0.5;            ///< of the logarithm of the length
  InputPlace input = InputPlace::device;
  // Steps and stopping
  std::int64_t num_batches = 100;
  std::int64_t num_warmup_batches = 10;
  std::int64_t display_every = 10;
  std::optional<double>
      target_ci;  ///< stop when the 95 % half-width falls below this fraction of the mean
  std::optional<double> max_seconds;  ///< stop the measured loop after this many seconds
  bool roofline = true;               ///< time matrix products before the steps
  std::optional<double> target_loss;  ///< stop when the loss has come down to this
  double timeout = 300;               ///< seconds that start-up, a step or a collective may take
  // Arithmetic
  Precision precision = Precision::fp32;
  DataFormat data_format = DataFormat::channels_last;
  std::optional<Optimizer> optimizer;        ///< unset: the catalog's default
  std::optional<double> init_learning_rate;  ///< unset: see default_rates() in run_config.cpp
  LearningRateSchedule lr_schedule;
  std::optional<std::int64_t> lr_warmup_steps;  ///< unset: 0, with vaswani 4000
  std::optional<std::int64_t> lr_decay_steps;   ///< of polynomial; unset: all steps of the run
  double lr_end = 0, lr_power = 1;              ///< of polynomial
  std::optional<double> clip_norm;              ///< unset: gradients are not clipped
  double fp16_loss_scale = 65536;               ///< at the start
  bool fp16_enable_auto_loss_scale = true;      ///< halve it on overflow, double it after a while
  std::int64_t fp16_inc_loss_scale_every_n = 2000;  ///< steps without overflow
  double momentum = 0.9;
  double adam_beta1 = 0.9;                         ///< of adam, adamw and lamb
  std::optional<double> adam_beta2, adam_epsilon;  ///< unset: as the learning rate
  std::optional<double> weight_decay;              ///< unset: as the learning rate
  double lars_trust_coefficient = 0.001;           ///< eta of You et al. 2017
  std::optional<double> dropout;                   ///< unset: the catalog's default
  double label_smoothing = 0.1;                    ///< of sequence models
  bool forward_only = false;
  std::int64_t seed = 1234;
  // Checkpoints
  std::int64_t checkpoint_every = 0;          ///< steps; 0: none
  std::optional<std::string> checkpoint_dir;  ///< unset: the system's temporary folder
  // Machine
  Device device = Device::automatic;
  std::optional<std::int64_t> num_intra_threads;  ///< per rank; unset: the achieved CPU mask
  std::optional<std::int64_t> num_inter_threads;  ///< per rank; unset: LibTorch's choice
  bool flush_denormals = true;                    ///< on the CPU, to zero
  GpuBinding gpu_binding = GpuBinding::near;
  CommunicatorKind communicator = CommunicatorKind::automatic;
  double bucket_mb = 8;            ///< MiB of gradients per bucket
  double first_bucket_mb = 1;      ///< of the first one, so that communication starts early
  std::optional<Overlap> overlap;  ///< unset: backward, without a backward pass none
  WireDtype wire_dtype = WireDtype::fp32;
  Reducer reducer = Reducer::scalemark;
  EmbeddingGradients embedding_gradients = EmbeddingGradients::dense;
  TiedGradient tied_gradient = TiedGradient::dense;
  // scale
  std::vector<std::int64_t>
      ranks;  ///< points of the curve; empty: powers of two that this machine holds
  std::vector<Precision> more_precisions;             ///< a curve each, after that of `precision`
  std::vector<std::int64_t> more_global_batch_sizes;  ///< a curve each
  std::int64_t repeats = 3;
  bool baseline = true;  ///< measure each point without communication too
  Resource resource = Resource::rank;
  std::optional<std::int64_t> solution_steps;       ///< steps to solution of the larger points
  std::optional<std::int64_t> base_solution_steps;  ///< of the base; unset: solution_steps
  std::optional<std::int64_t> base_batch_size;      ///< samples per rank of the base
  Launcher launcher = Launcher::automatic;
  std::optional<std::string> hostfile;
  // infer
  InferenceMode mode = InferenceMode::batch;
  Fused fused = Fused::on;
  // preflight
  std::vector<std::int64_t> sizes;        ///< bytes of the collectives; empty: 8 B to 64 MiB
  double seconds = 1;                     ///< of measuring, for each kind of check
  std::optional<std::string> scratch;     ///< folder; unset: the system's temporary folder
  double scratch_mb = 64;                 ///< MiB of the scratch file
  std::optional<std::string> rules;       ///< path; unset: the rules that need no baseline
  std::optional<std::string> make_rules;  ///< path of the rules that this measurement makes
  double rules_margin = 0.15;             ///< fraction between a measured number and its limit
  bool pinning = false;                   ///< where ranks run, and nothing else
  // Output
  std::optional<std::string> output;  ///< path of the record
  bool json = false;                  ///< the record on stdout, nothing else
  bool timestamps = false;            ///< a timestamp before every console line
  bool dry_run = false;               ///< print the plan and its memory, start nothing
  std::optional<std::string> label;
  std::optional<std::string> preflight;  ///< path of a preflight's record, which the record names
  std::optional<Injection> inject;
};

/// The configuration with the model's defaults in place of what is unset: image_size or
/// sequence_length, optimizer, learning rate and its schedule, beta 2, epsilon, weight decay,
/// dropout; and overlap.
RunConfig resolved(RunConfig config);

/// A RunConfig and what the record says of it.
struct LoadedConfig {
  RunConfig config;
  Command command = Command::run;
  std::map<std::string, Origin> origins;  ///< of every key
  std::vector<std::string> warnings;      ///< e.g. unknown SCALEMARK_* variables, for stderr
};

/// {"key": {"value": ..., "origin": "default"|"file"|"environment"|"command_line"}, ...}, every
/// key of the command; a run's are those of `scale` too.
nlohmann::ordered_json config_to_json(const LoadedConfig& loaded);

/// What config_hash() covers: every identity and measurement key that the command's records show,
/// with the model's defaults and the batch resolved for `world_size`, which stands in for `ranks`.
/// Two of these differ in the keys that make runs unlike.
nlohmann::json hashed_config(const RunConfig& config, std::int64_t world_size,
                             Command command = Command::run);

/// SHA-256 (hex) over the canonical JSON (sorted, compact) of hashed_config(). Build, host and
/// output keys are outside.
std::string config_hash(const RunConfig& config, std::int64_t world_size,
                        Command command = Command::run);

/// The points of `--ranks auto`: powers of two up to `largest`, and `largest`.
std::vector<std::int64_t> default_ranks(std::int64_t largest);

/// Samples of one point: over all ranks, of a rank, and of one forward and backward pass.
struct BatchPlan {
  std::int64_t batch_size_per_rank = 0;
  std::int64_t global_batch_size = 0;
  std::int64_t micro_batch_size = 0;
  std::int64_t micro_batches() const { return batch_size_per_rank / micro_batch_size; }
};

/// Resolves weak or strong scaling for `world_size` ranks.
/// Throws ConfigError with the nearest legal values where the keys are inconsistent or not
/// divisible.
BatchPlan plan_batch(const RunConfig& config, std::int64_t world_size);

}  // namespace scalemark

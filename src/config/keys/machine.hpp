// Defines the keys of the machine and of communication: device, threads, and how gradients travel.
#pragma once

#include "config/keys/arithmetic.hpp"
#include "config/keys/group.hpp"
#include "config/keys/model.hpp"
#include "config/keys/steps.hpp"

namespace scalemark {

enum class Device { automatic, cpu, cuda };
constexpr auto names_of(Device) { return Names{"auto", "cpu", "cuda"}; }

/// Says where a rank that has a GPU runs: near it, or where its launcher has placed it.
enum class GpuBinding { near, launcher };
constexpr auto names_of(GpuBinding) { return Names{"near", "launcher"}; }

enum class CommunicatorKind { automatic, mpi, nccl, none };
constexpr auto names_of(CommunicatorKind) { return Names{"auto", "mpi", "nccl", "none"}; }

enum class Overlap { none, backward, step };
constexpr auto names_of(Overlap) { return Names{"none", "backward", "step"}; }

/// Says what is divided among ranks, in the order of ZeRO's stages (Rajbhandari et al. 2020): the
/// optimizer's state and the fp32 weights, the gradients too, or the weights that layers read too.
enum class Shard { none, optimizer, gradients, parameters };
constexpr auto names_of(Shard) { return Names{"none", "optimizer", "gradients", "parameters"}; }

/// Says which collective of --shard is left out, as communicator `none` leaves out all of them:
/// what a step takes longer with it is what it costs.
enum class LeaveOut { none, reduce_scatter, allgather, allreduce };
constexpr auto names_of(LeaveOut) {
  return Names{"none", "reduce_scatter", "allgather", "allreduce"};
}

/// Says what the backward pass computes again in place of keeping it.
enum class Recompute { none, layer };
constexpr auto names_of(Recompute) { return Names{"none", "layer"}; }

/// Says whether a GPU is given the whole step of training as one CUDA graph. `automatic`: where
/// a step can be recorded.
enum class CudaGraph { automatic, on, off };
constexpr auto names_of(CudaGraph) { return Names{"auto", "on", "off"}; }

enum class WireDtype { fp32, bf16, fp16 };
constexpr auto names_of(WireDtype) { return Names{"fp32", "bf16", "fp16"}; }

enum class Reducer { scalemark, c10d };
constexpr auto names_of(Reducer) { return Names{"scalemark", "c10d"}; }

/// Says how gradients of embedding tables travel. docs/measurements.md states the bytes of each
/// way.
enum class EmbeddingGradients { dense, sparse, sparse_as_dense };
constexpr auto names_of(EmbeddingGradients) { return Names{"dense", "sparse", "sparse_as_dense"}; }

/// Says how the gradient of a projection that shares an embedding's table joins sparse ones.
enum class TiedGradient { dense, sparse };
constexpr auto names_of(TiedGradient) { return Names{"dense", "sparse"}; }

/// Returns the default size of a bucket. A bucket of PyTorch's size keeps a GPU busy, while a CPU
/// should begin earlier.
constexpr double default_bucket_mb(bool cuda) { return cuda ? 25 : 8; }

struct MachineSettings {
  Device device = Device::automatic;
  std::optional<std::int64_t> num_intra_threads;  ///< per rank; unset: the achieved CPU mask
  std::optional<std::int64_t> num_inter_threads;  ///< per rank; unset: LibTorch's choice
  bool flush_denormals = true;                    ///< on the CPU, to zero
  GpuBinding gpu_binding = GpuBinding::near;
  CommunicatorKind communicator = CommunicatorKind::automatic;
  /// The MiB of gradients per bucket; default_bucket_mb() where it is unset.
  std::optional<double> bucket_mb;
  double first_bucket_mb = 1;  ///< of the first one, so that communication starts early
  std::optional<Overlap> overlap;
  WireDtype wire_dtype = WireDtype::fp32;
  Reducer reducer = Reducer::scalemark;
  std::vector<Reducer> more_reducers;  ///< a curve each
  Shard shard = Shard::none;
  std::vector<Shard> more_shards;           ///< a curve each
  std::optional<std::int64_t> shard_ranks;  ///< of a group; unset: all
  LeaveOut leave_out = LeaveOut::none;
  Recompute recompute = Recompute::none;
  CudaGraph cuda_graph = CudaGraph::off;
  EmbeddingGradients embedding_gradients = EmbeddingGradients::dense;
  TiedGradient tied_gradient = TiedGradient::dense;

  static void describe(auto& rows) {
    using S = MachineSettings;
    rows.group("Machine and communication", Role::identity, kTraining);
    rows.add("device", &S::device, "DEVICE", "auto: cuda where a GPU is visible, else cpu")
        .of(kEverywhere)
        .is(Trait::found_by_run)
        .often_used();
    rows.add("num_intra_threads", &S::num_intra_threads, "N", "compute threads per rank")
        .in(1, 4096)
        .otherwise("the CPUs that the rank may run on")
        .of(kEverywhere)
        .is(Trait::found_by_run);
    rows.add("num_inter_threads", &S::num_inter_threads, "N",
             "threads per rank of LibTorch's pool for operators side by side")
        .in(1, 4096)
        .otherwise("LibTorch's own number")
        .of(kWithModel);
    rows.add("flush_denormals", &S::flush_denormals, "",
             "the CPU takes numbers below 1.2e-38 for zero; else steps of a model that has learnt "
             "its synthetic data get slower")
        .of(kWithModel);
    rows.add("gpu_binding", &S::gpu_binding, "PLACE",
             "CPUs of a rank that has a GPU: its share of the cores near it, or as launched")
        .of(kEverywhere);
    rows.add("communicator", &S::communicator, "NAME",
             "carries the gradients; auto: nccl on cuda, mpi on cpu, none for one rank")
        .is({Trait::found_by_run, Trait::varies_with_ranks})
        .often_used();
    rows.add("bucket_mb", &S::bucket_mb, "MIB", "gradients per bucket, in MiB")
        .in(1e-3, 65536)
        .otherwise("8 on a CPU, 25 on a GPU");
    rows.add("first_bucket_mb", &S::first_bucket_mb, "MIB",
             "gradients of the first bucket: a small one starts early")
        .in(1e-3, 65536);
    rows.add("overlap", &S::overlap, "WITH",
             "communicate after the backward pass, during it, or on into the next forward pass")
        .otherwise("backward; none with --forward_only");
    rows.add("wire_dtype", &S::wire_dtype, "TYPE", "of gradients between ranks; sums are fp32");
    rows.add("reducer", &S::reducer, "NAME,...",
             "sums the gradients; c10d: LibTorch's own Reducer over Gloo or NCCL, to compare with")
        .listed(&S::more_reducers);
    rows.add("shard", &S::shard, "WHAT,...",
             "divides among the ranks the optimizer's state (ZeRO-1), also the gradients (2), or "
             "also the parameters, gathered block by block (3, FSDP)")
        .listed(&S::more_shards);
    rows.add("shard_ranks", &S::shard_ranks, "N",
             "with --shard: divides among N consecutive ranks, as of a node, and keeps a replica "
             "in every N ranks (HSDP); points of fewer ranks divide among all theirs")
        .in(1, 1e6)
        .otherwise("all ranks");
    rows.add("leave_out", &S::leave_out, "WHAT",
             "of the collectives of --shard: ranks take their own blocks for the others', so that "
             "the time of a step tells what it costs; a curve does so by itself");
    rows.add("recompute", &S::recompute, "WHAT",
             "activations made again in the backward pass: layer keeps of each layer of a sequence "
             "model or a ViT its input alone");
    rows.add(
        "cuda_graph", &S::cuda_graph, "WHEN",
        "gives a GPU the whole step of training as one recorded graph, whose launches cost the "
        "host nothing, and of whose parts no times are known; auto: where a step can be "
        "recorded. No GPU has run this yet");
    rows.add("embedding_gradients", &S::embedding_gradients, "HOW",
             "of embedding tables: dense (allreduce), sparse (indices and rows, allgather), or "
             "sparse made dense before the allreduce");
    rows.add("tied_gradient", &S::tied_gradient, "HOW",
             "with sparse embedding gradients, of a projection that shares the table: dense, or "
             "carried as rows too, as some frameworks accumulate it");
  }

  static void resolve(auto& config, const auto&) {
    if (!config.overlap) config.overlap = config.forward_only ? Overlap::none : Overlap::backward;
  }

  static void check(const auto& whole) {
    const auto& config = whole.given;
    if (config.kernels == Kernels::triton) check_triton(whole);
    if (config.device == Device::cpu && config.communicator == CommunicatorKind::nccl)
      whole.refuse("--communicator nccl needs --device cuda; on the cpu it is mpi or none");
    if (config.forward_only && config.overlap && config.overlap != Overlap::none)
      whole.refuse("--overlap {} has no meaning with --forward_only: there is no backward pass",
                   to_string(*config.overlap));
    check_overlap_of_steps(whole);
    check_reducer(whole);
    check_recompute(whole);
    check_cuda_graph(whole);
    check_shard(whole);
    check_embedding(whole);
  }

  /// Returns the first setting beside which a step of training cannot be recorded, as it is given,
  /// or an empty text: the host takes part in such a step, or its parts differ from step to step.
  static std::string beside_graph(const auto& config) {
    if (config.device == Device::cpu) return "--device cpu";
    if (config.forward_only) return "--forward_only";
    if (config.input == InputPlace::host) return "--input host";
    if (config.communicator == CommunicatorKind::mpi) return "--communicator mpi";
    if (config.overlap == Overlap::step) return "--overlap step";
    if (config.reducer == Reducer::c10d) return "--reducer c10d";
    if (config.recompute != Recompute::none) return "--recompute " + to_string(config.recompute);
    if (config.shard != Shard::none) return "--shard " + to_string(config.shard);
    if (config.embedding_gradients != EmbeddingGradients::dense)
      return "--embedding_gradients " + to_string(config.embedding_gradients);
    return "";
  }

 private:
  static void check_triton(const auto& whole) {
    if (whole.command == Command::infer)
      whole.refuse("--kernels triton computes training; use --kernels scalemark");
    if (whole.given.device == Device::cpu)
      whole.refuse("--kernels triton computes on a GPU; use --device cuda, or --kernels scalemark");
    if (!has_triton_kernels())
      throw EnvironmentError(
          "--kernels triton: this build has no kernels for GPUs; use --kernels scalemark, or build "
          "with cmake -DSCALEMARK_TRITON=ON");
  }

  /// Checks --overlap step, with which a bucket is updated on its own when the next step needs it.
  static void check_overlap_of_steps(const auto& whole) {
    const auto& config = whole.given;
    if (config.overlap != Overlap::step) return;
    if (config.clip_norm)
      whole.refuse(
          "--overlap step updates a bucket before the others have come, and --clip_norm needs the "
          "norm of all; take --overlap backward");
    if (config.precision == Precision::fp16)
      whole.refuse(
          "--overlap step updates a bucket before the others have come, and --precision fp16 skips "
          "a step when any gradient has overflowed; take --overlap backward");
  }

  /// Checks --reducer c10d, which has its own communicator and a single way to sum.
  static void check_reducer(const auto& whole) {
    const auto& config = whole.given;
    if (config.reducer != Reducer::c10d) return;
    if (config.forward_only)
      whole.refuse("--reducer c10d has no meaning with --forward_only: there are no gradients");
    if (config.communicator != CommunicatorKind::automatic &&
        config.communicator != CommunicatorKind::nccl)
      whole.refuse(
          "--reducer c10d brings its own communicator, Gloo on the cpu and NCCL on cuda; leave out "
          "--communicator {}",
          to_string(config.communicator));
    if (config.overlap && config.overlap != Overlap::backward)
      whole.refuse("--reducer c10d communicates during the backward pass; leave out --overlap {}",
                   to_string(*config.overlap));
    if (config.wire_dtype != WireDtype::fp32)
      whole.refuse("--reducer c10d sends gradients as fp32; leave out --wire_dtype {}",
                   to_string(config.wire_dtype));
    if (config.embedding_gradients != EmbeddingGradients::dense)
      whole.refuse(
          "--reducer c10d sums dense gradients; leave out --embedding_gradients {}, or take "
          "--reducer scalemark",
          to_string(config.embedding_gradients));
  }

  /// Checks --recompute layer, for networks that are a row of like layers.
  static void check_recompute(const auto& whole) {
    const auto& config = whole.given;
    if (config.recompute == Recompute::none) return;
    if (config.forward_only)
      whole.refuse("--recompute has no meaning with --forward_only: there is no backward pass");
    if (config.reducer == Reducer::c10d)
      whole.refuse(
          "--recompute runs layers inside the backward pass, which c10d's Reducer does not "
          "take; leave out --recompute, or take --reducer scalemark");
    if (whole.facts.blocks == 0)
      whole.refuse(
          "--recompute layer: {} is no row of layers that could be run again; take a "
          "network such as llama_125m, bert_base or vit_b_16",
          whole.facts.name);
  }

  static void check_cuda_graph(const auto& whole) {
    if (whole.given.cuda_graph != CudaGraph::on) return;
    if (const std::string beside = beside_graph(whole.given); !beside.empty())
      whole.refuse(
          "--cuda_graph on records a whole step on a GPU, of which {} cannot be a part; leave out "
          "either, or take --cuda_graph auto",
          beside);
  }

  /// Checks --shard, whose gradients are scattered as soon as they are ready.
  static void check_shard(const auto& whole) {
    const auto& config = whole.given;
    if (config.shard == Shard::none && config.leave_out != LeaveOut::none)
      whole.refuse(
          "--leave_out {} is of --shard optimizer, gradients or parameters; to leave out all "
          "communication take --communicator none",
          to_string(config.leave_out));
    if (config.leave_out == LeaveOut::allreduce && !config.shard_ranks)
      whole.refuse(
          "--leave_out allreduce is of the groups of --shard_ranks; leave out reduce_scatter or "
          "allgather, or take --shard_ranks");
    if (config.shard_ranks && config.shard == Shard::none && config.more_shards.empty())
      whole.refuse(
          "--shard_ranks {} says among how many ranks --shard divides, which is none: take --shard "
          "optimizer, gradients or parameters, or leave out --shard_ranks",
          *config.shard_ranks);
    if (config.shard == Shard::none) return;
    for (const std::int64_t ranks : config.ranks) ranks_of_shards(config, ranks);
    const std::string given = "--shard " + to_string(config.shard);
    if (config.forward_only)
      whole.refuse(
          "{} divides what a backward pass and an optimizer need; leave out "
          "--forward_only",
          given);
    if (config.reducer == Reducer::c10d)
      whole.refuse("--reducer c10d sums whole gradients; take --reducer scalemark with {}", given);
    if (config.overlap == Overlap::step)
      whole.refuse(
          "--overlap step leaves sums to the next step, and {} gathers weights there; "
          "take --overlap backward",
          given);
    if (config.embedding_gradients != EmbeddingGradients::dense)
      whole.refuse("{} divides dense gradients; leave out --embedding_gradients {}", given,
                   to_string(config.embedding_gradients));
    if (whole.is_given("checkpoint_writers") &&
        config.checkpoint_writers != CheckpointWriters::rank)
      whole.refuse(
          "--checkpoint_writers {}: with {} every rank writes the part that it holds; leave it "
          "out, "
          "or give rank",
          to_string(config.checkpoint_writers), given);
  }

  /// Checks the strategies for gradients of embedding tables where there are no tables, or where
  /// they are impossible.
  static void check_embedding(const auto& whole) {
    const auto& config = whole.given;
    const bool dense = config.embedding_gradients == EmbeddingGradients::dense;
    if (config.tied_gradient == TiedGradient::sparse && dense)
      whole.refuse(
          "--tied_gradient sparse joins sparse gradients; add --embedding_gradients sparse");
    if (dense) return;
    const std::string given = "--embedding_gradients " + to_string(config.embedding_gradients);
    if (whole.facts.width == 0)
      whole.refuse(
          "{}: {} has no embedding table; leave it out, or take a sequence model such as "
          "transformer_base",
          given, whole.facts.name);
    if (config.forward_only)
      whole.refuse("{} has no meaning with --forward_only: there are no gradients", given);
    if (config.embedding_gradients == EmbeddingGradients::sparse &&
        config.wire_dtype != WireDtype::fp32)
      whole.refuse(
          "{} sends rows as fp32 only, not as --wire_dtype {}; use --wire_dtype fp32, or "
          "--embedding_gradients sparse_as_dense",
          given, to_string(config.wire_dtype));
  }
};

}  // namespace scalemark

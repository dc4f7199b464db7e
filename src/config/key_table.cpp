// The key table itself: one line a key.
#include "config/injection.hpp"
#include "config/make_key.hpp"
#include "config/text.hpp"
#include "models/catalog.hpp"

namespace scalemark {
namespace {

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelFacts& facts : kModels) names.emplace_back(facts.name);
  return names;
}

using C = RunConfig;

/// A number, or "max" until that number is found.
Key batch_size_key(Role role, const std::string& group) {
  Key made = key("batch_size", &C::batch_size, role, group, "N|max",
                 "samples per rank; what weak scaling fixes; max: the most that fit, found before "
                 "the run")
                 .in(1, static_cast<double>(kLargestBatchSize))
                 .or_words({"max"})
                 .otherwise("the model's default; 1 in a single stream");
  made.get = [](const C& config) {
    return config.largest_batch && !config.batch_size ? nlohmann::ordered_json("max")
                                                      : value_of(config.batch_size);
  };
  made.set = [](C& config, const nlohmann::ordered_json& value) {
    config.largest_batch = value == "max";
    assign(config.batch_size, config.largest_batch ? nlohmann::ordered_json() : value);
  };
  return made;
}

void add_model_keys(std::vector<Key>& keys) {
  const Role id = Role::identity;
  const std::string group = "Model and batch";
  keys.insert(
      keys.end(),
      {key("model", &C::model, id, group, "NAME", "network; `scalemark list models` describes them")
           .one_of(model_names()),
       batch_size_key(id, group),
       key("global_batch_size", &C::global_batch_size, &C::more_global_batch_sizes, id, group,
           "N[,N...]", "samples over all ranks; what strong scaling fixes")
           .in(1, 1e9)
           .otherwise("batch size x ranks"),
       key("global_batch_tokens", &C::global_batch_tokens, id, group, "N",
           "the same in target tokens, divided by --sequence_length")
           .in(1, 1e12)
           .otherwise("--global_batch_size"),
       key("micro_batch_size", &C::micro_batch_size, id, group, "N",
           "samples of one forward and backward pass; gradients are accumulated over a rank's "
           "batch")
           .in(1, 1e6)
           .otherwise("the batch of a rank"),
       key("scaling", &C::scaling, id, group, "MODE",
           "weak: batch per rank fixed; strong: global batch fixed"),
       key("image_size", &C::image_size, id, group, "PIXELS",
           "height and width of the synthetic images")
           .in(32, 4096)
           .otherwise("the model's default"),
       key("sequence_length", &C::sequence_length, id, group, "TOKENS",
           "tokens of every synthetic sequence, source and target")
           .in(1, 65536)
           .otherwise("the model's default"),
       key("num_classes", &C::num_classes, id, group, "N", "classes of the synthetic labels")
           .in(2, 1e6),
       key("data", &C::data, id, group, "KIND",
           "noise: one batch with random labels; learnable: a ring of batches of a task that a "
           "network can learn"),
       key("length_distribution", &C::length_distribution, id, group, "SHAPE",
           "of the Transformer's sequences: all of --sequence_length, or drawn up to it"),
       key("length_median", &C::length_median, id, group, "TOKENS", "of lognormal lengths")
           .in(1, 65536)
           .otherwise("half of --sequence_length"),
       key("length_sigma", &C::length_sigma, id, group, "VALUE",
           "standard deviation of the logarithm of lognormal lengths")
           .in(0.01, 10),
       key("input", &C::input, id, group, "PLACE",
           "where the prepared batches lie; host: copied to the device inside the clock, while the "
           "step before computes"),
       key("forward_only", &C::forward_only, id, group, "",
           "forward passes only: no gradients, no update"),
       key("seed", &C::seed, id, group, "N", "of weights and synthetic data")
           .in(0, 9007199254740991.)});
}

void add_step_keys(std::vector<Key>& keys) {
  const Role how = Role::measurement;
  const std::string group = "Steps and stopping";
  keys.insert(keys.end(),
              {key("num_batches", &C::num_batches, how, group, "N", "measured steps").in(1, 1e9),
               key("num_warmup_batches", &C::num_warmup_batches, how, group, "N",
                   "steps before the clock starts")
                   .in(0, 1e9),
               key("roofline", &C::roofline, how, group, "",
                   "time matrix products before the steps; without, a launch is 0.3 s shorter"),
               key("target_ci", &C::target_ci, how, group, "FRACTION",
                   "stop when the 95 % half-width falls below this fraction of the mean")
                   .in(1e-4, 0.5)
                   .otherwise("all --num_batches steps"),
               key("max_seconds", &C::max_seconds, how, group, "SECONDS",
                   "stop the measured loop after this long")
                   .in(1e-3, 1e7)
                   .otherwise("all --num_batches steps"),
               key("target_loss", &C::target_loss, how, group, "LOSS",
                   "stop when the loss (median of the last 5 steps) has come down to this")
                   .in(0, 1e9)
                   .otherwise("all --num_batches steps"),
               key("checkpoint_every", &C::checkpoint_every, how, group, "N",
                   "steps between two checkpoints; 0: none")
                   .in(0, 1e9),
               key("checkpoint_dir", &C::checkpoint_dir, Role::output, group, "DIR",
                   "where checkpoints are written and removed again")
                   .otherwise("TMPDIR, or /tmp"),
               key("timeout", &C::timeout, how, group, "SECONDS",
                   "deadline of start-up, of a step and of a collective; then exit code 5")
                   .in(1, 86400)});
}

void add_arithmetic_keys(std::vector<Key>& keys) {
  const Role id = Role::identity;
  const std::string group = "Arithmetic";
  keys.insert(
      keys.end(),
      {key("precision", &C::precision, &C::more_precisions, id, group, "TYPE[,TYPE...]",
           "compute type; in training weights and their update stay fp32"),
       key("data_format", &C::data_format, id, group, "FORMAT",
           "memory layout of images; NHWC is channels_last"),
       key("optimizer", &C::optimizer, id, group, "NAME", "update rule")
           .otherwise("the model's default"),
       key("init_learning_rate", &C::init_learning_rate, id, group, "RATE",
           "learning rate; with a schedule that at the end of its warm-up")
           .in(0, 1e6)
           .otherwise("0.1, with adam and adamw 0.0001, with lamb 0.000625; with vaswani (width x "
                      "warm-up)^-0.5"),
       key("momentum", &C::momentum, id, group, "FACTOR", "of --optimizer momentum and lars")
           .in(0, 1),
       key("adam_beta1", &C::adam_beta1, id, group, "FACTOR",
           "decay of the first moment (adam, adamw, lamb)")
           .in(0, 0.999999),
       key("adam_beta2", &C::adam_beta2, id, group, "FACTOR",
           "decay of the second moment (adam, adamw, lamb)")
           .in(0, 0.999999)
           .otherwise("0.98, with adamw and lamb 0.999"),
       key("adam_epsilon", &C::adam_epsilon, id, group, "VALUE",
           "added to the denominator (adam, adamw, lamb)")
           .in(0, 1)
           .otherwise("1e-9, with adamw and lamb 1e-6"),
       key("weight_decay", &C::weight_decay, id, group, "FACTOR",
           "L2 penalty; decoupled with adamw and lamb, which like lars spare biases and norms")
           .in(0, 1)
           .otherwise("0.00004, with adam 0, with adamw and lamb 0.01"),
       key("lars_trust_coefficient", &C::lars_trust_coefficient, id, group, "FACTOR",
           "of lars: a weight's step relative to its norm, at learning rate 1")
           .in(0, 1),
       key("dropout", &C::dropout, id, group, "PROBABILITY",
           "of sequence models: on embeddings, attention, residual and the Transformer's "
           "activation")
           .in(0, 0.99)
           .otherwise("the model's default"),
       key("label_smoothing", &C::label_smoothing, id, group, "SHARE",
           "of the Transformer: probability spread over the vocabulary")
           .in(0, 0.99)});
}

void add_schedule_keys(std::vector<Key>& keys) {
  const Role id = Role::identity;
  const std::string group = "Learning rate and clipping";
  keys.insert(
      keys.end(),
      {key("lr_schedule", &C::lr_schedule, id, group, "SCHEDULE",
           "learning rate of each step: constant; \"LR0;E1;LR1;...\", LR1 from epoch E1 (of "
           "1,281,167 images) on, or from step N where written Ns; polynomial decay; inverse "
           "square root (vaswani)"),
       key("lr_warmup_steps", &C::lr_warmup_steps, id, group, "N",
           "steps of linear increase, from the first warm-up step of the run on")
           .in(0, 1e9)
           .otherwise("0, with vaswani 4000"),
       key("lr_decay_steps", &C::lr_decay_steps, id, group, "N",
           "steps after which polynomial reaches --lr_end, its warm-up included")
           .in(1, 2e9)
           .otherwise("--num_warmup_batches + --num_batches"),
       key("lr_end", &C::lr_end, id, group, "RATE", "what polynomial decays to").in(0, 1e6),
       key("lr_power", &C::lr_power, id, group, "EXPONENT", "of polynomial; 1 is linear")
           .in(0.01, 100),
       key("clip_norm", &C::clip_norm, id, group, "NORM",
           "largest 2-norm of all gradients together; longer ones are scaled down to it")
           .in(1e-9, 1e9)
           .otherwise("no clipping"),
       key("fp16_loss_scale", &C::fp16_loss_scale, id, group, "FACTOR",
           "of --precision fp16: what the loss is multiplied with, at the start")
           .in(1, 16777216),
       key("fp16_enable_auto_loss_scale", &C::fp16_enable_auto_loss_scale, id, group, "",
           "halve the loss scale where gradients overflow, double it after a while"),
       key("fp16_inc_loss_scale_every_n", &C::fp16_inc_loss_scale_every_n, id, group, "N",
           "steps without an overflow after which the loss scale is doubled")
           .in(1, 1e9)});
}

void add_machine_keys(std::vector<Key>& keys) {
  const Role id = Role::identity;
  const std::string group = "Machine and communication";
  keys.insert(
      keys.end(),
      {key("device", &C::device, id, group, "DEVICE",
           "auto: cuda where a GPU is visible, else cpu"),
       key("num_intra_threads", &C::num_intra_threads, id, group, "N", "compute threads per rank")
           .in(1, 4096)
           .otherwise("the CPUs that the rank may run on"),
       key("num_inter_threads", &C::num_inter_threads, id, group, "N",
           "threads per rank of LibTorch's pool for operators side by side")
           .in(1, 4096)
           .otherwise("LibTorch's own number"),
       key("flush_denormals", &C::flush_denormals, id, group, "",
           "the CPU takes numbers below 1.2e-38 for zero; else steps of a model that has learnt "
           "its "
           "synthetic data get slower"),
       key("gpu_binding", &C::gpu_binding, id, group, "PLACE",
           "CPUs of a rank that has a GPU: its share of the cores near it, or as launched"),
       key("communicator", &C::communicator, id, group, "NAME",
           "carries the gradients; auto: nccl on cuda, mpi on cpu, none for one rank"),
       key("bucket_mb", &C::bucket_mb, id, group, "MIB", "gradients per bucket, in MiB")
           .in(1e-3, 65536),
       key("first_bucket_mb", &C::first_bucket_mb, id, group, "MIB",
           "gradients of the first bucket: a small one starts early")
           .in(1e-3, 65536),
       key("overlap", &C::overlap, id, group, "WITH",
           "communicate after the backward pass or during it")
           .not_yet({"step"})
           .otherwise("backward; none with --forward_only"),
       key("wire_dtype", &C::wire_dtype, id, group, "TYPE",
           "of gradients between ranks; sums are fp32"),
       key("reducer", &C::reducer, id, group, "NAME",
           "sums the gradients; c10d: LibTorch's own Reducer over Gloo or NCCL, to compare with"),
       key("embedding_gradients", &C::embedding_gradients, id, group, "HOW",
           "of embedding tables: dense (allreduce), sparse (indices and rows, allgather), or "
           "sparse "
           "made dense before the allreduce"),
       key("tied_gradient", &C::tied_gradient, id, group, "HOW",
           "with sparse embedding gradients, of a projection that shares the table: dense, or "
           "carried as rows too, as some frameworks accumulate it")});
}

void add_curve_keys(std::vector<Key>& keys) {
  const std::string group = "Curve (scale)";
  keys.insert(keys.end(),
              {key("ranks", &C::ranks, Role::measurement, group, "N,N,...|auto",
                   "points of the curve, ascending; auto: powers of two up to what the machine "
                   "holds, and that")
                   .in(1, 1e6)
                   .of_scale(),
               key("repeats", &C::repeats, Role::measurement, group, "N",
                   "measurements of every point, interleaved")
                   .in(1, 10000)
                   .of_scale(),
               key("baseline", &C::baseline, Role::measurement, group, "",
                   "measure every point without communication too")
                   .of_scale(),
               key("resource", &C::resource, Role::measurement, group, "NAME",
                   "what efficiency counts: ranks, nodes, cores or GPUs")
                   .of_scale(),
               key("solution_steps", &C::solution_steps, Role::measurement, group, "N",
                   "steps to solution: adds the time to solution of every point")
                   .in(1, 1e12)
                   .otherwise("no time to solution")
                   .of_scale(),
               key("base_solution_steps", &C::base_solution_steps, Role::measurement, group, "N",
                   "the same of the base, where it has another batch")
                   .in(1, 1e12)
                   .otherwise("--solution_steps")
                   .of_scale(),
               key("base_batch_size", &C::base_batch_size, Role::measurement, group, "N",
                   "samples per rank of the base, where they differ")
                   .in(1, 1e6)
                   .otherwise("as the other points")
                   .of_scale(),
               key("launcher", &C::launcher, Role::output, group, "NAME",
                   "starts the ranks; auto: srun in a Slurm allocation with PMIx, else mpirun")
                   .of_scale(),
               key("hostfile", &C::hostfile, Role::output, group, "FILE", "hosts for mpirun")
                   .otherwise("this machine, or the allocation")
                   .of_scale()});
}

void add_inference_keys(std::vector<Key>& keys) {
  const std::string group = "Inference (infer)";
  keys.insert(
      keys.end(),
      {key("mode", &C::mode, Role::identity, group, "MODE",
           "batch: throughput of batches; single_stream: one query after the other, the latency of "
           "each")
           .of_infer(),
       key("fused", &C::fused, Role::identity, group, "SWITCH",
           "fold batch normalisation into convolutions, and let oneDNN add and clip as it writes")
           .of_infer()});
}

void add_preflight_keys(std::vector<Key>& keys) {
  const Role how = Role::measurement, out = Role::output;
  const std::string group = "Checks (preflight)";
  keys.insert(
      keys.end(),
      {key("sizes", &C::sizes, how, group, "BYTES,...|auto",
           "of the collectives; auto: 8, 1024, 65536, 1048576, 16777216, 67108864")
           .in(4, 1 << 30)
           .of_preflight(),
       key("seconds", &C::seconds, how, group, "SECONDS",
           "of measuring, for each of GEMM, memory and noise; a tenth of it for each collective "
           "and size")
           .in(0.01, 3600)
           .of_preflight(),
       key("scratch", &C::scratch, out, group, "DIR",
           "where a scratch file is written, read and removed")
           .otherwise("TMPDIR, or /tmp")
           .of_preflight(),
       key("scratch_mb", &C::scratch_mb, how, group, "MIB", "of the scratch file, one a host")
           .in(1, 1048576)
           .of_preflight(),
       key("rules", &C::rules, out, group, "FILE", "limits that the measured numbers must keep")
           .otherwise("those that need no baseline")
           .of_preflight(),
       key("make_rules", &C::make_rules, out, group, "FILE",
           "write rules with the numbers of this measurement, of nodes known to be good")
           .otherwise("no file")
           .of_preflight(),
       key("rules_margin", &C::rules_margin, out, group, "FRACTION",
           "of --make_rules: between a measured number and its limit")
           .in(0, 0.99)
           .of_preflight(),
       key("pinning", &C::pinning, out, group, "",
           "only where ranks run: host, cores, NUMA node, GPU, binding")
           .of_preflight()});
}

void add_output_keys(std::vector<Key>& keys) {
  const Role out = Role::output;
  const std::string group = "Output";
  keys.insert(
      keys.end(),
      {key("output", &C::output, out, group, "FILE", "where the record is written")
           .otherwise("no file"),
       key("json", &C::json, out, group, "", "the record on stdout, nothing else"),
       key("display_every", &C::display_every, out, group, "N", "steps between two console lines")
           .in(1, 1e9),
       key("timestamps", &C::timestamps, out, group, "", "a timestamp before every console line"),
       key("dry_run", &C::dry_run, out, group, "",
           "print batches, memory and bytes of every point, and start nothing"),
       key("label", &C::label, out, group, "TEXT", "free text kept in the record")
           .otherwise("no label"),
       key("preflight", &C::preflight, out, group, "FILE",
           "record of a preflight of these nodes: the result names it, and says where it warned or "
           "failed")
           .otherwise("none is named"),
       key("inject", &C::inject, Role::identity, "Testing",
           "KIND[:rank=R][:step=S][:milliseconds=M]",
           "a deliberate fault: " + join(injection_kinds(), ", "))
           .otherwise("no fault")});
}

}  // namespace

std::vector<Key> make_key_table() {
  std::vector<Key> made;
  add_model_keys(made);
  add_step_keys(made);
  add_arithmetic_keys(made);
  add_schedule_keys(made);
  add_machine_keys(made);
  add_curve_keys(made);
  add_inference_keys(made);
  add_preflight_keys(made);
  add_output_keys(made);
  return made;
}

}  // namespace scalemark

// Makes a trainer: the same weights and the same bucket order on all ranks, a different batch on
// each.
#include "train/trainer.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "models/operator_flops.hpp"
#include "train/arithmetic.hpp"
#include "train/embedding_tables.hpp"
#include "train/input_pipeline.hpp"
#include "train/trainer_impl.hpp"

namespace scalemark {
namespace {

/// The number of prepared batches where steps have different ones. They are stored on the device,
/// since none is made inside the clock.
constexpr std::int64_t kBatches = 16;
/// The distance between the seeds of a rank's batches. It exceeds the number of ranks, and is below
/// 2^28, since LibTorch's CPU generator reads 32 bits of a seed.
constexpr std::uint64_t kSeedStride = 10'000'019;

/// Returns the content of a contiguous or channels_last CPU tensor in memory order.
std::string_view memory_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

/// Makes the weights equal on all ranks. The seed gives the same weights on equal machines; where
/// any rank's differ (another CPU type draws other normals), all take those of rank 0.
void share_weights(Model& model, RankGroup& group) {
  std::size_t hash = 0;
  for (const at::Tensor& weight : model.parameters())
    hash = hash * 31 + std::hash<std::string_view>{}(memory_of(weight));
  const auto hashes = group.all_gather(std::to_string(hash));
  if (std::all_of(hashes.begin(), hashes.end(), [&](const auto& h) { return h == hashes[0]; }))
    return;
  for (at::Tensor weight : model.parameters()) {
    const std::string bytes = group.broadcast(std::string(memory_of(weight)));
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(weight.data_ptr()));
  }
}

}  // namespace

std::shared_ptr<Model> build_model(const ResolvedConfig& config, RankGroup& group) {
  torch::manual_seed(static_cast<std::uint64_t>(config.seed));
  ModelOptions options;
  options.name = config.model;
  options.image_size = config.image_size.value_or(0);
  options.num_classes = config.num_classes;
  options.channels_last = config.data_format == DataFormat::channels_last;
  options.sequence_length = config.sequence_length.value_or(0);
  options.lengths = {config.length_distribution, config.length_median.value_or(0),
                     config.length_sigma};
  options.dropout = *config.dropout;
  options.label_smoothing = config.label_smoothing;
  options.operators = &operators_of(config);
  options.file = config.model_file.value_or("");
  options.library = config.model_library.value_or("");
  options.counts_tokens = config.model_unit == OwnUnit::tokens;
  options.input_shape = shape_of(config.input_shape.value_or(""));
  options.integer_inputs = config.input_dtype == InputDtype::int64;
  options.file_loss = static_cast<FileLoss>(config.loss);
  std::shared_ptr<Model> model = make_model(options);
  for (const auto& parameter : model->named_parameters())
    if (parameter.value().scalar_type() != at::kFloat)
      throw ConfigError(config.model + ": parameter " + parameter.key() +
                        " is not float32: save the network in float32, and choose --precision");
  share_weights(*model, group);
  return model;
}

double own_forward_flops(const ResolvedConfig& config, Model& model) {
  if (!config.brings_model() || config.model_flops) return 0;
  const bool training = model.is_training();
  const at::Device device = model.parameters().front().device();
  model.eval();
  const std::int64_t samples = model.possible_batch(1);
  const std::int64_t counted =
      count_forward_flops(model, model.synthetic_batch(samples, 0, device, at::kFloat));
  model.train(training);
  return static_cast<double>(counted) / static_cast<double>(samples);
}

namespace {

/// Returns rank 0's gradient-ready order, since all ranks must start their buckets in the same
/// order.
std::vector<int> agreed_order(Model& model, at::Device device, RankGroup& group) {
  std::ostringstream mine;
  for (const int parameter : gradient_ready_order(model, device)) mine << parameter << ' ';
  std::istringstream agreed(group.broadcast(mine.str()));
  return {std::istream_iterator<int>(agreed), {}};
}

/// A single rank has nothing to divide.
Division division_of(const ResolvedConfig& config, const RankGroup& group) {
  const auto ranks = static_cast<int>(ranks_of_shards(config, group.size()));
  if (ranks == 1) return {};
  return {config.shard, ranks, group.rank() % ranks};
}

}  // namespace

Trainer::Trainer(const ResolvedConfig& config, DeviceBackend& device, RankGroup& group,
                 const BatchPlan& batch) {
  const auto bytes = [](double mib) { return static_cast<std::int64_t>(mib * 1024 * 1024); };
  device.set_precision(config.precision);
  if (config.kernels == Kernels::triton && device.device().is_cpu())
    throw EnvironmentError(
        "--kernels triton computes on a GPU, and there is none: use --kernels scalemark");
  if (config.cuda_graph == CudaGraph::on && device.device().is_cpu())
    throw EnvironmentError("--cuda_graph on needs a GPU, and there is none: use --cuda_graph auto");
  auto model = build_model(config, group);
  model->to(device.device());
  const double flops = own_forward_flops(config, *model);
  auto optimizer = make_update_rule(
      config, device.works_behind_host() ? std::optional(device.device()) : std::nullopt);
  const auto probe = std::make_shared<UseProbe>();
  model->set_gate(probe);
  const std::vector<int> order = agreed_order(*model, device.device(), group);
  const FlatLayout layout{bytes(bucket_mb(config, device)),
                          bytes(config.first_bucket_mb),
                          optimizer->states(),
                          compute_dtype(config.precision),
                          with_strategy(probe->tables(*model), config),
                          probe->first_uses(*model),
                          division_of(config, group),
                          probe->blocks(*model),
                          probe->computed_with(*model)};
  auto parameters = std::make_shared<FlatParameters>(*model, order, layout);
  parameters->set_recomputes(config.recompute == Recompute::layer);
  model->set_gate(parameters);
  model->train(!config.forward_only);
  impl_.reset(new Impl{
      config, device, group.rank(), model, parameters, std::move(optimizer), {}, {}, {}, {}});
  impl_->counted_flops = flops;
  impl_->records_steps = config.cuda_graph != CudaGraph::off &&
                         MachineSettings::beside_graph(config).empty() &&
                         device.make_work_recorder();
  device.release_free_memory();  // memory of former weights and of the passes that found the order
  set_batch(batch);
}

Trainer::~Trainer() = default;

void Trainer::keep_initial_weights() {
  for (const Bucket& bucket : impl_->parameters->buckets())
    impl_->initial_weights.push_back(bucket.weights.clone());
}

void Trainer::Impl::restart() {
  const at::NoGradGuard no_grad;
  torch::manual_seed(static_cast<std::uint64_t>(config.seed) + 1 + rank);
  if (std::exchange(untouched, false)) return;
  if (initial_weights.empty())
    throw std::logic_error("a second measurement needs keep_initial_weights()");
  for (std::size_t i = 0; i < initial_weights.size(); ++i) {
    Bucket& bucket = parameters->buckets()[i];
    bucket.weights.copy_(initial_weights[i]);
    for (at::Tensor& state : bucket.state) state.zero_();
    if (bucket.shadow.defined()) bucket.shadow.copy_(bucket.weights);
  }
  optimizer->restart();
}

/// Makes the batches. Noise differs by rank. The learnable batches are slices of global ones, which
/// are the same for every number of ranks that share them.
std::vector<Batch> Trainer::Impl::prepare_batches() const {
  const auto seed = static_cast<std::uint64_t>(config.seed);
  const at::ScalarType dtype = compute_dtype(config.precision);
  const bool on_host = config.input == InputPlace::host;
  const at::Device place = on_host ? at::Device(at::kCPU) : device.device();
  const bool fixed = config.length_distribution == LengthDistribution::fixed;
  std::vector<Batch> made;
  if (config.data == SyntheticData::noise) {
    for (std::uint64_t i = 0; i < (fixed ? 1 : kBatches); ++i)
      made.push_back(model->synthetic_batch(plan.batch_size_per_rank,
                                            seed + 1 + rank + i * kSeedStride, place, dtype));
  } else {
    for (std::int64_t i = 0; i < kBatches; ++i) {
      const std::int64_t first = i * plan.global_batch_size + rank * plan.batch_size_per_rank;
      made.push_back(model->learnable_batch({first, plan.batch_size_per_rank}, seed, place, dtype));
    }
  }
  if (on_host)
    for (Batch& batch : made) pin(batch, device);
  return made;
}

void Trainer::set_batch(const BatchPlan& plan) {
  const BatchPlan before = std::exchange(impl_->plan, plan);
  const bool kept = before.batch_size_per_rank == plan.batch_size_per_rank &&
                    (impl_->config.data == SyntheticData::noise ||
                     before.global_batch_size == plan.global_batch_size);
  if (!kept) impl_->batches = impl_->prepare_batches();
  if (!kept || before.micro_batch_size != plan.micro_batch_size) impl_->shapes_met = false;
  impl_->micro_batches.clear();
  for (const Batch& batch : impl_->batches)
    impl_->micro_batches.push_back(split(batch, plan.micro_batch_size));
}

void Trainer::leave_out(LeaveOut what) { impl_->config.leave_out = what; }

void Trainer::open_checkpoints(const RankGroup& ranks) {
  const ResolvedConfig& config = impl_->config;
  const CheckpointWriters who = config.checkpoint_writers;
  const bool in_parts = config.shard != Shard::none;
  const int parts = impl_->parameters->division().ranks;
  const bool all = in_parts || who == CheckpointWriters::rank;
  // Of the groups of --shard_ranks the first one writes: the others hold the same.
  const bool writes = in_parts ? ranks.rank() < parts
                               : all || ranks.rank() == 0 ||
                                     (who == CheckpointWriters::node && ranks.local_rank() == 0);
  if (config.checkpoint_every == 0 || !writes || impl_->checkpoints) return;
  CheckpointWriter writer{ranks.rank(), !all && who == CheckpointWriters::root};
  if (all) writer.files_of_node = ranks.local_size();
  if (in_parts) {
    writer.parts = parts;
    writer.files_of_node = std::min(writer.files_of_node, parts);
  }
  impl_->checkpoints = std::make_unique<CheckpointFolder>(
      config.checkpoint_dir, checkpoint_tensor_bytes(*impl_->model, *impl_->parameters), writer);
}

void Trainer::check_data(Communicator& communicator, int rank, CheckTime when) {
  const auto& inject = impl_->config.inject;
  const bool corrupt = inject && inject->kind == "corrupt_allreduce" &&
                       (inject->rank < 0 || inject->rank == rank) &&
                       (when == CheckTime::after || inject->step == 0);
  check_gradient_buffers(communicator, *impl_->parameters, impl_->device, rank, corrupt);
}

std::int64_t Trainer::parameter_count() const { return impl_->parameters->parameter_count(); }
std::int64_t Trainer::gradient_buffer_bytes() const {
  const bool twice = impl_->config.reducer == Reducer::c10d && impl_->traffic.messages > 0;
  return impl_->parameters->gradient_bytes() + (twice ? impl_->traffic.bytes : 0);
}
double Trainer::counted_flops() const { return impl_->counted_flops; }
bool Trainer::records_steps() const { return impl_->records_steps; }
StepTraffic Trainer::last_traffic() const { return impl_->traffic; }
std::int64_t Trainer::batch_bytes() const { return bytes_of(impl_->batches); }

std::int64_t Trainer::weight_bytes() const {
  std::size_t bytes = 0;
  for (const Bucket& bucket : impl_->parameters->buckets())
    bytes += bucket.weights.nbytes() + (bucket.shadow.defined() ? bucket.shadow.nbytes() : 0);
  return static_cast<std::int64_t>(bytes);
}

std::int64_t Trainer::optimizer_state_bytes() const {
  std::size_t bytes = 0;
  for (const Bucket& bucket : impl_->parameters->buckets())
    for (const at::Tensor& state : bucket.state) bytes += state.nbytes();
  return static_cast<std::int64_t>(bytes);
}

double Trainer::units_per_step_of_rank() const {
  double units = 0;
  for (const Batch& batch : impl_->batches) units += batch.units;
  return units / static_cast<double>(impl_->batches.size());
}
FlatParameters& Trainer::parameters() { return *impl_->parameters; }

}  // namespace scalemark

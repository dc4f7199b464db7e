// Making a trainer: the same weights and the same bucket order on all ranks, a batch of its own on
// each.
#include "train/trainer.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "train/trainer_impl.hpp"

namespace scalemark {
namespace {

at::ScalarType compute_dtype(const RunConfig& config) {
  return config.precision == Precision::bf16 ? at::kBFloat16 : at::kFloat;
}

/// The bytes of a contiguous or channels_last CPU tensor, in memory order.
std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

/// The seed gives the same weights on like machines; where any rank's differ (another CPU type
/// draws other normals), all take rank 0's.
void share_weights(Model& model, RankGroup& group) {
  std::size_t hash = 0;
  for (const at::Tensor& weight : model.parameters())
    hash = hash * 31 + std::hash<std::string_view>{}(bytes_of(weight));
  const auto hashes = group.all_gather(std::to_string(hash));
  if (std::all_of(hashes.begin(), hashes.end(), [&](const auto& h) { return h == hashes[0]; }))
    return;
  for (at::Tensor weight : model.parameters()) {
    const std::string bytes = group.broadcast(std::string(bytes_of(weight)));
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(weight.data_ptr()));
  }
}

std::shared_ptr<Model> build_model(const RunConfig& config, RankGroup& group) {
  torch::manual_seed(static_cast<std::uint64_t>(config.seed));
  ModelOptions options;
  options.name = config.model;
  options.image_size = image_size_of(config);
  options.num_classes = config.num_classes;
  options.channels_last = config.data_format == DataFormat::channels_last;
  std::shared_ptr<Model> model = make_model(options);
  share_weights(*model, group);
  return model;
}

/// Rank 0's gradient-ready order, for all ranks must start their buckets in the same order.
std::vector<int> agreed_order(Model& model, at::Device device, RankGroup& group) {
  std::ostringstream mine;
  for (const int parameter : gradient_ready_order(model, device)) mine << parameter << ' ';
  std::istringstream agreed(group.broadcast(mine.str()));
  return {std::istream_iterator<int>(agreed), {}};
}

}  // namespace

Trainer::Trainer(const RunConfig& config, DeviceBackend& device, RankGroup& group,
                 std::int64_t batch_size_per_rank) {
  const bool momentum = config.optimizer == Optimizer::momentum;
  const auto bucket_bytes = static_cast<std::int64_t>(config.bucket_mb * 1024 * 1024);
  auto model = build_model(config, group);
  model->to(device.device());
  auto parameters =
      std::make_shared<FlatParameters>(*model, agreed_order(*model, device.device(), group),
                                       bucket_bytes, momentum, compute_dtype(config));
  model->set_gate(parameters);
  model->train(!config.forward_only);
  const SgdOptimizer optimizer(config.init_learning_rate, momentum ? config.momentum : 0,
                               config.weight_decay);
  impl_.reset(new Impl{config, device, group.rank(), model, parameters, optimizer, {}, {}});
  for (const Bucket& bucket : parameters->buckets())
    impl_->initial_weights.push_back(bucket.weights.clone());
  set_batch_size(batch_size_per_rank);
}

Trainer::~Trainer() = default;

void Trainer::Impl::restart() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < initial_weights.size(); ++i) {
    Bucket& bucket = parameters->buckets()[i];
    bucket.weights.copy_(initial_weights[i]);
    if (bucket.momentum.defined()) bucket.momentum.zero_();
    if (bucket.shadow.defined()) bucket.shadow.copy_(bucket.weights);
  }
}

void Trainer::set_batch_size(std::int64_t batch_size_per_rank) {
  if (impl_->batch.inputs.defined() && impl_->batch.inputs.size(0) == batch_size_per_rank) return;
  const auto seed = static_cast<std::uint64_t>(impl_->config.seed) + 1 + impl_->rank;
  impl_->batch = impl_->model->synthetic_batch(batch_size_per_rank, seed, impl_->device.device(),
                                               compute_dtype(impl_->config));
}

void Trainer::check_data(Communicator& communicator, int rank) {
  const auto& inject = impl_->config.inject;
  const bool corrupt =
      inject && inject->kind == "corrupt_allreduce" && (inject->rank < 0 || inject->rank == rank);
  check_gradient_buffers(communicator, *impl_->parameters, impl_->device, rank, corrupt);
}

std::int64_t Trainer::parameter_count() const { return impl_->parameters->parameter_count(); }
std::int64_t Trainer::gradient_buffer_bytes() const { return impl_->parameters->gradient_bytes(); }
double Trainer::units_per_step_of_rank() const { return impl_->batch.units; }
std::int64_t Trainer::bytes_per_step() const {
  return impl_->config.forward_only ? 0 : impl_->parameters->gradient_bytes();
}
std::int64_t Trainer::messages_per_step() const {
  return impl_->config.forward_only
             ? 0
             : static_cast<std::int64_t>(impl_->parameters->buckets().size());
}
FlatParameters& Trainer::parameters() { return *impl_->parameters; }

}  // namespace scalemark

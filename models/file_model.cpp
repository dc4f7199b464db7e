// Makes a model of a TorchScript module that the user provides. It is trained and used like those
// of the catalog.
#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/script.h>

#include <algorithm>

#include "error.hpp"
#include "models/layers.hpp"
#include "models/model.hpp"

namespace scalemark {
namespace {

/// Computes matrix products and convolutions in `dtype`, as torch.autocast does. The weights of the
/// module stay fp32.
class Autocast {
 public:
  Autocast(at::DeviceType device, at::ScalarType dtype)
      : device_(device), was_enabled_(at::autocast::is_autocast_enabled(device)) {
    at::autocast::set_autocast_enabled(device, dtype != at::kFloat);
    if (dtype != at::kFloat) at::autocast::set_autocast_dtype(device, dtype);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, was_enabled_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_;
};

/// Returns the last line of an error text; the lines before it are the code that led there.
std::string complaint(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \n") + 1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

torch::jit::Module read_module(const std::string& path) {
  try {
    return torch::jit::load(path, at::kCPU);
  } catch (const c10::Error& error) {
    throw ResultError(
        fmt::format("--model_file {} is no TorchScript module: {}; make one with "
                    "torch.jit.save(torch.jit.trace(net, example), path)",
                    path, complaint(error.what_without_backtrace())));
  }
}

class FileModel : public Model {
 public:
  explicit FileModel(const ModelOptions& options)
      : options_(options), module_(read_module(options.file)), path_(options.file) {
    for (const auto& parameter : module_.named_parameters()) take(parameter.name, parameter.value);
    if (parameters().empty())
      throw ConfigError(path_ + ": the module has no parameters that need gradients");
  }

  void train(bool on) override {
    Model::train(on);
    module_.train(on);
  }

  Batch synthetic_batch(std::int64_t batch_size, std::uint64_t seed, at::Device device,
                        at::ScalarType dtype) override {
    dtype_ = dtype;
    const at::Tensor like = outputs_of_two();
    auto generator = at::detail::createCPUGenerator(seed);
    Batch batch;
    batch.inputs = inputs(batch_size, generator).to(device);
    std::vector<std::int64_t> shape = like.sizes().vec();
    if (!shape.empty()) shape[0] = batch_size;
    batch.units = batch.loss_count = static_cast<double>(batch_size);
    if (options_.file_loss == FileLoss::cross_entropy) {
      const std::int64_t classes = shape.back();
      shape.pop_back();
      batch.targets = at::randint(classes, shape, generator, at::kLong).to(device);
      batch.loss_count = static_cast<double>(batch.targets.numel());
    } else if (options_.file_loss == FileLoss::mse) {
      batch.targets = at::randn(shape, generator, at::kFloat).to(device);
    } else {
      batch.targets = at::zeros({batch_size}, at::kLong).to(device);  // not used by the module
    }
    if (options_.counts_tokens) batch.units = batch.loss_count;
    batch.padded_units = batch.units;
    return batch;
  }

  at::Tensor forward(const Batch& batch) override {
    if (batch.inputs.device() != device_) {
      device_ = batch.inputs.device();
      module_.to(device_);  // moves what is neither parameter nor buffer
    }
    return to_fp32(call(batch.inputs));
  }

  at::Tensor loss_sum(const Batch& batch) override {
    const at::Tensor output = forward(batch);
    const auto samples = static_cast<double>(batch.inputs.size(0));
    switch (options_.file_loss) {
      case FileLoss::own:
        return output.reshape({}) * samples;
      case FileLoss::mse:
        return at::mse_loss(output, batch.targets, at::Reduction::Sum) *
               (samples / static_cast<double>(output.numel()));
      case FileLoss::cross_entropy:
        break;
    }
    return at::cross_entropy_loss(output.reshape({-1, output.size(-1)}), batch.targets.reshape(-1),
                                  {}, at::Reduction::Sum, -100, options_.label_smoothing);
  }

 private:
  /// Registers the same tensor as a parameter or buffer of this module, too.
  void take(std::string name, at::Tensor tensor) {
    std::ranges::replace(name, '.', '_');
    if (tensor.dim() == 4 && options_.channels_last)
      tensor.set_data(tensor.contiguous(at::MemoryFormat::ChannelsLast));
    if (tensor.requires_grad() && tensor.is_floating_point())
      register_parameter(fmt::format("{}_{}", parameters().size(), name), tensor);
  }

  at::Tensor inputs(std::int64_t batch_size, const at::Generator& generator) const {
    std::vector<std::int64_t> shape = options_.input_shape;
    shape.insert(shape.begin(), batch_size);
    if (options_.integer_inputs)
      return at::randint(options_.num_classes, shape, generator, at::kLong);
    const at::Tensor made = at::randn(shape, generator, at::kFloat);
    return shape.size() == 4 && options_.channels_last
               ? made.contiguous(at::MemoryFormat::ChannelsLast)
               : made;
  }

  at::Tensor call(const at::Tensor& input) {
    const Autocast cast(input.device().type(), dtype_);
    try {
      const c10::IValue output = module_.forward({input});
      if (output.isTensor()) return output.toTensor();
    } catch (const std::exception& error) {
      throw ConfigError(fmt::format("{}: forward() of a batch of shape {} fails: {}", path_,
                                    fmt::join(input.sizes(), "x"), complaint(error.what())));
    }
    throw ConfigError(path_ + ": forward() gives no tensor");
  }

  /// Returns the output for two samples, and reports errors of the network before anything is
  /// measured.
  at::Tensor outputs_of_two() {
    const at::NoGradGuard no_grad;
    const bool training = is_training();
    module_.eval();
    const at::Tensor made =
        call(inputs(2, at::detail::createCPUGenerator(0)).to(parameters().front().device()));
    module_.train(training);
    const bool scalar = made.numel() == 1;
    if (options_.file_loss == FileLoss::own ? !scalar : made.dim() < 1 || made.size(0) != 2)
      throw ConfigError(fmt::format("{}: forward() of 2 samples gives the shape [{}]; --loss {}",
                                    path_, fmt::join(made.sizes(), ", "),
                                    options_.file_loss == FileLoss::own
                                        ? "own needs one number, the mean loss"
                                        : "cross_entropy and mse need one row a sample"));
    if (options_.file_loss == FileLoss::cross_entropy && made.dim() < 2)
      throw ConfigError(path_ + ": --loss cross_entropy needs classes in the last dimension");
    return made;
  }

  ModelOptions options_;
  torch::jit::Module module_;
  std::string path_;
  at::ScalarType dtype_ = at::kFloat;
  at::Device device_ = at::kCPU;
};

}  // namespace

std::shared_ptr<Model> make_file_model(const ModelOptions& options) {
  return std::make_shared<FileModel>(options);
}

}  // namespace scalemark

// Makes a model of a network that the user provides as a file: a TorchScript module, or a graph of
// torch.export. It is trained and used like those of the catalog.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/script.h>

#include <algorithm>
#include <map>
#include <optional>

#include "error.hpp"
#include "models/exported_network.hpp"
#include "models/layers.hpp"
#include "models/model.hpp"

namespace scalemark {
namespace {

using Tensors = std::vector<at::Tensor>;

/// What a model needs of the network of a file.
class FileNetwork {
 public:
  virtual ~FileNetwork() = default;
  virtual std::vector<ExportedNetwork::Parameter> parameters() const = 0;
  virtual void train(bool on) = 0;
  /// Moves what is no parameter.
  virtual void to(at::Device device) = 0;
  /// Returns random inputs: rows of samples first, then tensors that all samples share.
  virtual Tensors inputs(std::int64_t batch_size, const at::Generator& generator) const = 0;
  /// The number of inputs that are rows of samples.
  virtual std::size_t batched_inputs() const { return 1; }
  virtual Tensors run(const Tensors& inputs) = 0;
  virtual std::int64_t possible_batch(std::int64_t wanted) const { return wanted; }
};

/// A module of TorchScript: one input, of the shape and type that options say, and one output.
class ScriptNetwork : public FileNetwork {
 public:
  explicit ScriptNetwork(const ModelOptions& options)
      : options_(options), module_(read(options.file)) {}
  std::vector<ExportedNetwork::Parameter> parameters() const override {
    std::vector<ExportedNetwork::Parameter> all;
    for (const auto& parameter : module_.named_parameters())
      all.push_back({parameter.name, parameter.value});
    return all;
  }
  void train(bool on) override { module_.train(on); }
  void to(at::Device device) override { module_.to(device); }
  Tensors inputs(std::int64_t batch_size, const at::Generator& generator) const override {
    std::vector<std::int64_t> shape = options_.input_shape;
    shape.insert(shape.begin(), batch_size);
    if (options_.integer_inputs)
      return {at::randint(options_.num_classes, shape, generator, at::kLong)};
    return {at::randn(shape, generator, at::kFloat)};
  }
  Tensors run(const Tensors& inputs) override {
    try {
      const c10::IValue output = module_.forward({inputs.front()});
      if (output.isTensor()) return {output.toTensor()};
    } catch (const std::exception& error) {
      throw ConfigError(fmt::format("{}: forward() of a batch of shape {} fails: {}", options_.file,
                                    fmt::join(inputs.front().sizes(), "x"),
                                    complaint(error.what())));
    }
    throw ConfigError(options_.file + ": forward() gives no tensor");
  }

 private:
  static torch::jit::Module read(const std::string& path) {
    try {
      return torch::jit::load(path, at::kCPU);
    } catch (const c10::Error& error) {
      throw ResultError(fmt::format(
          "--model_file {} is neither a network of torch.export nor a TorchScript module: {}; make "
          "one with torch.export.save(torch.export.export(net, (example,)), path)",
          path, complaint(error.what_without_backtrace())));
    }
  }

  const ModelOptions& options_;
  torch::jit::Module module_;
};

/// A graph of torch.export, which says the shapes and types of its inputs itself.
class GraphNetwork : public FileNetwork {
 public:
  GraphNetwork(const ModelOptions& options, std::unique_ptr<ExportedNetwork> network)
      : network_(std::move(network)) {
    for (const auto& [symbol, open] : network_->open_sizes()) sizes_[symbol] = open.example;
    const ExportedInput& first = network_->inputs().front();
    const std::vector<std::int64_t>& given = options.input_shape;
    if (!given.empty() && given.size() + 1 != first.shape.size())
      throw ConfigError(
          fmt::format("--input_shape {}: a sample of the first input of {} has the shape {}",
                      fmt::join(given, "x"), options.file,
                      fmt::join(first.shape.begin() + 1, first.shape.end(), "x")));
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!first.symbols[i + 1].empty())
        sizes_[first.symbols[i + 1]] = given[i];
      else if (given[i] != first.shape[i + 1])
        throw ConfigError(fmt::format(
            "--input_shape {}: {} was exported with {} in dimension {} of its first input: leave "
            "--input_shape out, or export it with dynamic_shapes",
            fmt::join(given, "x"), options.file, first.shape[i + 1], i + 1));
    }
    // Inputs whose first dimension counts samples come first in a batch.
    for (std::size_t i = 0; i < network_->inputs().size(); ++i)
      if (has_samples(network_->inputs()[i])) order_.push_back(i);
    batched_ = order_.size();
    for (std::size_t i = 0; i < network_->inputs().size(); ++i)
      if (!has_samples(network_->inputs()[i])) order_.push_back(i);
  }
  std::vector<ExportedNetwork::Parameter> parameters() const override {
    return network_->parameters();
  }
  void train(bool on) override { network_->train(on); }
  void to(at::Device device) override { network_->to(device); }
  std::size_t batched_inputs() const override { return batched_; }

  Tensors inputs(std::int64_t batch_size, const at::Generator& generator) const override {
    Tensors made;
    for (const std::size_t i : order_) {
      const ExportedInput& input = network_->inputs()[i];
      std::vector<std::int64_t> shape = input.shape;
      for (std::size_t d = 0; d < shape.size(); ++d)
        if (!input.symbols[d].empty()) shape[d] = sizes_.at(input.symbols[d]);
      if (made.size() < batched_) shape[0] = batch_size;
      if (at::isFloatingType(input.dtype) || at::isComplexType(input.dtype))
        made.push_back(at::randn(shape, generator, at::kFloat).to(input.dtype));
      else if (input.below > 0)
        made.push_back(at::randint(input.below, shape, generator, input.dtype));
      else  // a mask that hides nothing
        made.push_back(at::ones(shape, input.dtype));
    }
    return made;
  }

  Tensors run(const Tensors& inputs) override {
    Tensors ordered(inputs.size());
    for (std::size_t i = 0; i < order_.size(); ++i) ordered[order_[i]] = inputs[i];
    try {
      return network_->run(ordered);
    } catch (const ConfigError& error) {
      const std::string_view why = error.what();
      if (why.find("view size is not compatible") == std::string_view::npos) throw;
      throw ConfigError(fmt::format(
          "{}; the file was exported with another order of dimensions in memory: try --data_format "
          "channels_first",
          why));
    }
  }

  std::int64_t possible_batch(std::int64_t wanted) const override {
    if (network_->batch().empty()) return network_->inputs().front().shape.front();
    const OpenSize& open = network_->open_sizes().at(network_->batch());
    return std::clamp(wanted, open.least, std::max(open.least, open.most));
  }

 private:
  bool has_samples(const ExportedInput& input) const {
    const ExportedInput& first = network_->inputs().front();
    return !input.shape.empty() && input.symbols.front() == first.symbols.front() &&
           (!first.symbols.front().empty() || input.shape.front() == first.shape.front());
  }

  std::unique_ptr<ExportedNetwork> network_;
  std::map<std::string, std::int64_t> sizes_;  ///< of open dimensions
  std::vector<std::size_t> order_;
  std::size_t batched_ = 0;
};

std::unique_ptr<FileNetwork> read_network(const ModelOptions& options) {
  if (auto exported = read_exported(options.file))
    return std::make_unique<GraphNetwork>(options, std::move(exported));
  return std::make_unique<ScriptNetwork>(options);
}

class FileModel : public Model {
 public:
  explicit FileModel(const ModelOptions& options)
      : options_(options), network_(read_network(options_)), path_(options.file) {
    for (const auto& parameter : network_->parameters()) take(parameter.name, parameter.tensor);
    if (parameters().empty())
      throw ConfigError(path_ + ": the module has no parameters that need gradients");
    network_->train(is_training());
  }

  void train(bool on) override {
    Model::train(on);
    network_->train(on);
  }

  std::int64_t possible_batch(std::int64_t wanted) const override {
    return network_->possible_batch(wanted);
  }

  Batch synthetic_batch(std::int64_t batch_size, std::uint64_t seed, at::Device device,
                        at::ScalarType dtype) override {
    dtype_ = dtype;
    const at::Tensor like = outputs_of_few();
    auto generator = at::detail::createCPUGenerator(seed);
    Batch batch;
    Tensors inputs = inputs_of(batch_size, generator, device);
    batch.inputs = inputs.front();
    for (std::size_t i = 1; i < network_->batched_inputs(); ++i)
      batch.more_inputs.push_back(inputs[i]);
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
      batch.targets = at::zeros({batch_size}, at::kLong).to(device);  // not used by the network
    }
    if (options_.counts_tokens) batch.units = batch.loss_count;
    batch.padded_units = batch.units;
    return batch;
  }

  at::Tensor forward(const Batch& batch) override {
    move_to(batch.inputs.device());
    Tensors inputs{batch.inputs};
    inputs.insert(inputs.end(), batch.more_inputs.begin(), batch.more_inputs.end());
    return to_fp32(call(std::move(inputs)));
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

  /// Moves what is no parameter.
  void move_to(at::Device device) {
    if (device_ == device) return;
    device_ = device;
    network_->to(device);
    const Tensors all = inputs_of(1, at::detail::createCPUGenerator(0), device);
    shared_.assign(all.begin() + static_cast<std::ptrdiff_t>(network_->batched_inputs()),
                   all.end());
  }

  Tensors inputs_of(std::int64_t batch_size, const at::Generator& generator, at::Device device) {
    Tensors made = network_->inputs(batch_size, generator);
    for (at::Tensor& input : made) {
      if (input.dim() == 4 && options_.channels_last && input.is_floating_point())
        input = input.contiguous(at::MemoryFormat::ChannelsLast);
      input = input.to(device);
    }
    return made;
  }

  /// Returns the output for inputs that are rows of samples: the first, or with --loss own the
  /// first that is one number.
  at::Tensor call(Tensors inputs) {
    inputs.insert(inputs.end(), shared_.begin(), shared_.end());
    const Autocast cast(device_->type(), dtype_);
    const Tensors outputs = network_->run(inputs);
    if (options_.file_loss == FileLoss::own)
      for (const at::Tensor& output : outputs)
        if (output.numel() == 1) return output;
    if (outputs.empty()) throw ConfigError(path_ + ": the network gives no tensor");
    return outputs.front();
  }

  /// Returns the output for two samples, or as few as the network takes, and reports its errors
  /// before anything is measured.
  at::Tensor outputs_of_few() {
    const at::NoGradGuard no_grad;
    const bool training = is_training();
    const std::int64_t samples = possible_batch(2);
    network_->train(false);
    const at::Device device = parameters().front().device();
    move_to(device);
    Tensors inputs = inputs_of(samples, at::detail::createCPUGenerator(0), device);
    inputs.resize(network_->batched_inputs());
    const at::Tensor made = call(std::move(inputs));
    network_->train(training);
    const bool scalar = made.numel() == 1;
    if (options_.file_loss == FileLoss::own ? !scalar : made.dim() < 1 || made.size(0) != samples)
      throw ConfigError(fmt::format("{}: forward() of {} samples gives the shape [{}]; --loss {}",
                                    path_, samples, fmt::join(made.sizes(), ", "),
                                    options_.file_loss == FileLoss::own
                                        ? "own needs one number, the mean loss"
                                        : "cross_entropy and mse need one row a sample"));
    if (options_.file_loss == FileLoss::cross_entropy && made.dim() < 2)
      throw ConfigError(path_ + ": --loss cross_entropy needs classes in the last dimension");
    return made;
  }

  const ModelOptions options_;
  std::unique_ptr<FileNetwork> network_;
  std::string path_;
  Tensors shared_;  ///< inputs that are no rows of samples
  at::ScalarType dtype_ = at::kFloat;
  std::optional<at::Device> device_;
};

}  // namespace

std::shared_ptr<Model> make_file_model(const ModelOptions& options) {
  return std::make_shared<FileModel>(options);
}

}  // namespace scalemark

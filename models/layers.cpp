// Implements layers with torch's functional operators.
#include "models/layers.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "models/frozen.hpp"

namespace scalemark {
namespace {

constexpr double kNormMomentum = 0.1;  // torch's

thread_local bool shapes_only = false;

at::MemoryFormat memory_format(bool channels_last) {
  return channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

at::Tensor linear_weight(LinearInit init, std::int64_t in, std::int64_t out) {
  if (init == LinearInit::bert) return truncated_normal({out, in});
  if (init == LinearInit::normal) return normal_parameter({out, in}, 0.02);
  const double bound = init == LinearInit::xavier ? std::sqrt(6. / static_cast<double>(in + out))
                                                  : 1 / std::sqrt(static_cast<double>(in));
  return uniform_parameter({out, in}, bound);
}

at::Tensor linear_bias(LinearInit init, std::int64_t in, std::int64_t out) {
  if (init != LinearInit::torch) return new_parameter({out}).zero_();
  return uniform_parameter({out}, 1 / std::sqrt(static_cast<double>(in)));
}

/// Mixes a number by SplitMix64 (Steele, Lea and Flood 2014), so that neighbouring numbers give
/// unrelated seeds.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// The number of elements that share a generator, beside which making it takes no time.
constexpr std::int64_t kDrawnTogether = 1 << 18;

/// Returns a new parameter, pieces of which are drawn in parallel by draw(piece, generator).
template <typename Draw>
at::Tensor drawn(at::IntArrayRef shape, const Draw& draw) {
  const at::Tensor values = new_parameter(shape);
  if (values.is_meta()) return values;
  const auto seed =
      static_cast<std::uint64_t>(at::empty({1}, at::kLong).random_().item<std::int64_t>());
  const at::Tensor flat = values.view(-1);
  const std::int64_t pieces = (flat.numel() + kDrawnTogether - 1) / kDrawnTogether;
  at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;
    for (std::int64_t piece = begin; piece < end; ++piece)
      draw(flat.slice(0, piece * kDrawnTogether, (piece + 1) * kDrawnTogether),
           numbered_generator(seed, piece));
  });
  return values;
}

/// Frees the memory of a parameter whose frozen form is in use.
void release(at::Tensor& parameter) {
  if (parameter.defined()) parameter.set_data(at::empty({0}, parameter.options()));
}

/// What a block needs to run again: its layers, and the random numbers that dropout drew.
struct Rerun : torch::CustomClassHolder {
  explicit Rerun(std::function<at::Tensor(const std::vector<at::Tensor>&)> of)
      : layers(std::move(of)) {}
  std::function<at::Tensor(const std::vector<at::Tensor>&)> layers;
  at::Tensor random_state;
};

at::Generator generator_of(const at::Device& device) {
  return at::globalContext().defaultGenerator(device);
}

/// A block that keeps its inputs alone. The weights get their gradients through the gate while the
/// backward pass runs the block again.
class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& first,
                            const std::optional<at::Tensor>& second,
                            const c10::intrusive_ptr<Rerun>& rerun) {
    std::vector<at::Tensor> inputs{first};
    if (second) inputs.push_back(*second);
    rerun->random_state = generator_of(inputs.front().device()).get_state();
    context->save_for_backward(inputs);
    context->saved_data["rerun"] = c10::IValue::make_capsule(rerun);
    return rerun->layers(inputs);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto rerun =
        c10::static_intrusive_pointer_cast<Rerun>(context->saved_data["rerun"].toCapsule());
    std::vector<at::Tensor> inputs;
    for (const at::Tensor& saved : context->get_saved_variables()) {
      inputs.push_back(saved.detach());
      inputs.back().set_requires_grad(context->needs_input_grad(inputs.size() - 1));
    }
    at::Generator generator = generator_of(inputs.front().device());
    const at::Tensor now = generator.get_state();
    generator.set_state(rerun->random_state);
    {
      const at::AutoGradMode with_graph(true);
      torch::autograd::backward({rerun->layers(inputs)}, {gradients.front()});
    }
    generator.set_state(now);
    torch::autograd::variable_list of_inputs;
    for (const at::Tensor& input : inputs) of_inputs.push_back(input.grad());
    of_inputs.resize(3);  // a second input that is none, and what runs
    return of_inputs;
  }
};

}  // namespace

at::Tensor run_block(const LayerGate& holder, const std::vector<at::Tensor>& inputs,
                     const std::function<at::Tensor(const std::vector<at::Tensor>&)>& layers) {
  ParameterGate& gate = *holder->gate;
  gate.begin_block();
  const bool anew = gate.recomputes() && at::GradMode::is_enabled();
  const auto second = inputs.size() > 1 ? std::optional(inputs[1]) : std::nullopt;
  const at::Tensor output =
      anew ? Recomputed::apply(inputs[0], second, c10::make_intrusive<Rerun>(layers))
           : layers(inputs);
  gate.end_block(output);
  return output;
}

ShapesOnly::ShapesOnly() { shapes_only = true; }
ShapesOnly::~ShapesOnly() { shapes_only = false; }

at::Tensor new_parameter(at::IntArrayRef shape) {
  return at::empty(shape, shapes_only ? at::kMeta : at::kCPU);
}

at::Tensor uniform_parameter(at::IntArrayRef shape, double bound) {
  return drawn(shape, [&](at::Tensor piece, const at::Generator& generator) {
    piece.uniform_(-bound, bound, generator);
  });
}

at::Tensor normal_parameter(at::IntArrayRef shape, double deviation) {
  return drawn(shape, [&](at::Tensor piece, const at::Generator& generator) {
    piece.normal_(0, deviation, generator);
  });
}

at::Generator numbered_generator(std::uint64_t seed, std::int64_t number) {
  return at::make_generator<at::CPUGeneratorImpl>(
      mixed(mixed(seed) + static_cast<std::uint64_t>(number) + 1));
}

at::Tensor max_pool(const LayerGate& gate, const at::Tensor& x, std::int64_t size,
                    std::int64_t stride, std::int64_t padding) {
  return gate->operators->max_pool(x, {size, stride, padding});
}

Conv2d::Conv2d(LayerGate gate, std::int64_t in, std::int64_t out, const ConvOptions& options)
    : gate_(std::move(gate)), options_(options) {
  // For the variance of gradients (He et al. 2015). The weight is drawn in row-major order: this
  // gives the same values in both memory formats, and the fast path of normal_.
  const std::int64_t height = options.kernel->at(0), width = options.kernel->at(1);
  const at::Tensor weight = normal_parameter(
      {out, in, height, width}, std::sqrt(2 / static_cast<double>(out * height * width)));
  weight_ = register_parameter("weight", weight.contiguous(memory_format(options.channels_last)));
  if (options.bias) bias_ = register_parameter("bias", new_parameter({out}).zero_());
}

at::Tensor Conv2d::forward(const at::Tensor& x, Activation activation) {
  if (frozen_) return frozen_->forward(x, activation);
  ParameterGate& gate = *gate_->gate;
  if (bias_.defined())
    gate.before_use({weight_, bias_});
  else
    gate.before_use(weight_);
  const std::vector<std::int64_t> stride(2, options_.stride);
  return gate_->operators->conv2d(x, gate.compute_weight(weight_), bias_like(bias_, x), stride,
                                  options_.padding, activation);
}

std::shared_ptr<FrozenConv> Conv2d::frozen(at::ScalarType dtype, const at::Tensor& scale,
                                           const at::Tensor& shift) {
  const at::Tensor weight = weight_.to(at::kDouble) * scale.view({-1, 1, 1, 1});
  const at::Tensor bias = bias_.defined() ? bias_.to(at::kDouble) * scale + shift : shift;
  release(weight_);
  release(bias_);
  return std::make_shared<FrozenConv>(*gate_->operators, weight, bias, options_, dtype);
}

void Conv2d::freeze(at::ScalarType dtype) {
  const auto of_outputs = weight_.options().dtype(at::kDouble);
  frozen_ = frozen(dtype, at::ones({weight_.size(0)}, of_outputs),
                   at::zeros({weight_.size(0)}, of_outputs));
}

void Conv2d::quantize() { frozen_->quantize(); }

BatchNorm2d::BatchNorm2d(LayerGate gate, std::int64_t channels, double epsilon)
    : gate_(std::move(gate)), epsilon_(epsilon) {
  weight_ = register_parameter("weight", new_parameter({channels}).fill_(1));
  bias_ = register_parameter("bias", new_parameter({channels}).zero_());
  running_mean_ = register_buffer("running_mean", at::zeros({channels}));
  running_var_ = register_buffer("running_var", at::ones({channels}));
}

at::Tensor BatchNorm2d::forward(const at::Tensor& x, Activation activation,
                                const at::Tensor& residual) {
  gate_->gate->before_use({weight_, bias_});
  return gate_->operators->batch_norm(x, {weight_, bias_, running_mean_, running_var_},
                                      {kNormMomentum, epsilon_, is_training()}, activation,
                                      residual);
}

std::pair<at::Tensor, at::Tensor> BatchNorm2d::scale_and_shift() const {
  const auto exact = [](const at::Tensor& x) { return x.to(at::kDouble); };
  const at::Tensor scale = exact(weight_) / at::sqrt(exact(running_var_) + epsilon_);
  return {scale, exact(bias_) - exact(running_mean_) * scale};
}

ConvNorm::ConvNorm(const LayerGate& gate, std::int64_t in, std::int64_t out,
                   const ConvOptions& options, double epsilon) {
  conv_ = register_module("conv", std::make_shared<Conv2d>(gate, in, out, options));
  norm_ = register_module("norm", std::make_shared<BatchNorm2d>(gate, out, epsilon));
}

at::Tensor ConvNorm::forward(const at::Tensor& x, Activation activation) {
  if (frozen_) return frozen_->forward(x, activation);
  return norm_->forward(conv_->forward(x), activation);
}

at::Tensor ConvNorm::add_relu(const at::Tensor& x, const at::Tensor& residual) {
  if (frozen_) return frozen_->add_relu(x, residual);
  return norm_->forward(conv_->forward(x), Activation::relu, residual);
}

void ConvNorm::freeze(at::ScalarType dtype) {
  const auto [scale, shift] = norm_->scale_and_shift();
  frozen_ = conv_->frozen(dtype, scale, shift);
}

void ConvNorm::quantize() { frozen_->quantize(); }

bool ConvNorm::is_quantized() const { return frozen_ && frozen_->is_quantized(); }

Linear::Linear(LayerGate gate, std::int64_t in, std::int64_t out, const LinearOptions& options)
    : gate_(std::move(gate)) {
  at::Tensor weight = linear_weight(options.init, in, out);
  if (options.gain != 1) weight.mul_(options.gain);
  weight_ = register_parameter("weight", weight);
  if (options.bias) bias_ = register_parameter("bias", linear_bias(options.init, in, out));
}

void Linear::pass_gate() {
  if (bias_.defined())
    gate_->gate->before_use({weight_, bias_});
  else
    gate_->gate->before_use(weight_);
}

at::Tensor Linear::forward(const at::Tensor& x, Activation activation) {
  if (frozen_) return frozen_->forward(x, activation);
  pass_gate();
  return activated_anew(gate_->operators->linear(x, weight_, bias_like(bias_, x), gate_),
                        activation);
}

at::Tensor Linear::forward_of(const at::Tensor& x, Activation activation) {
  pass_gate();
  return gate_->operators->linear(x, weight_, bias_like(bias_, x), gate_, activation);
}

void Linear::freeze(at::ScalarType dtype) {
  frozen_ = std::make_shared<FrozenLinear>(weight_, bias_, dtype);
  release(weight_);
  release(bias_);
}

void Linear::quantize() { frozen_->quantize(); }

at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels,
                             double label_smoothing) {
  return cross_entropy_sum(torch_operators(), logits, labels, label_smoothing);
}

at::Tensor cross_entropy_sum(const OperatorSet& operators, const at::Tensor& logits,
                             const at::Tensor& labels, double label_smoothing) {
  return operators.cross_entropy(logits, labels, kIgnoredLabel, label_smoothing);
}

at::Tensor Model::dropout(const at::Tensor& x, double probability) const {
  return operators().dropout(x, probability);
}

at::Tensor truncated_normal(at::IntArrayRef shape) {
  // This applies the inverse of the distribution function to uniform values between its values at
  // two standard deviations.
  const double bound = std::erf(std::sqrt(2.));
  return drawn(shape, [&](at::Tensor piece, const at::Generator& generator) {
    piece.uniform_(-bound, bound, generator).erfinv_().mul_(0.02 * std::sqrt(2.));
  });
}

at::Tensor bias_like(const at::Tensor& bias, const at::Tensor& x) {
  return bias.defined() ? bias.to(x.scalar_type()) : bias;
}

at::Tensor to_fp32(const at::Tensor& logits) {
  return logits.to(at::promote_types(logits.scalar_type(), at::kFloat));
}

}  // namespace scalemark

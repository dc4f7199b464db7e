// Runs the instructions of an exported network and checks what it is called with.
#include "models/exported_network.hpp"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "error.hpp"

namespace scalemark {

Autocast::Autocast(at::DeviceType device, at::ScalarType dtype)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      dtype_before_(at::autocast::get_autocast_dtype(device)) {
  at::autocast::set_autocast_enabled(device, dtype != at::kFloat);
  if (dtype != at::kFloat) at::autocast::set_autocast_dtype(device, dtype);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, dtype_before_);
}

std::string complaint(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \n") + 1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

namespace {

/// Returns the first line of an error of an operator, without the frames of the stack after it.
std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

/// Calls `visit` with each instruction, those of bodies included.
template <typename Visit>
void for_each_instruction(std::vector<Instruction>& instructions, const Visit& visit) {
  for (Instruction& instruction : instructions) {
    visit(instruction);
    for_each_instruction(instruction.body, visit);
  }
}

at::Tensor wrapped(const c10::IValue& number) {
  at::Tensor tensor = at::scalar_to_tensor(number.toScalar());
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

c10::IValue value_of(const Operand& operand, std::vector<c10::IValue>& slots) {
  if (operand.element) {
    c10::impl::GenericList list(operand.element);
    list.reserve(operand.items.size());
    for (const Operand& item : operand.items) list.push_back(value_of(item, slots));
    return list;
  }
  if (operand.slot < 0) return operand.constant;
  c10::IValue& slot = slots[static_cast<std::size_t>(operand.slot)];
  if (operand.wraps) return wrapped(slot);
  return operand.last ? std::move(slot) : slot;
}

/// Throws where a value has another type than the operator expects. LibTorch's own
/// functions trust their callers in this.
void check_types(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    c10::TypePtr type = argument.type();
    if (const auto optional = type->cast<c10::OptionalType>()) {
      if (values[i].isNone()) continue;
      type = optional->getElementType();
    }
    const bool fits = type->kind() == c10::TypeKind::NumberType
                          ? values[i].isScalar()
                          : values[i].type()->isSubtypeOf(*type);
    if (!fits)
      throw std::runtime_error(fmt::format("its argument {} is {}, and must be {}", argument.name(),
                                           values[i].type()->repr_str(), type->repr_str()));
  }
}

}  // namespace

void ExportedNetwork::train(bool on) {
  bool trained_in_file = false;
  for_each_instruction(instructions_, [&](const Instruction& instruction) {
    trained_in_file |= instruction.flag_in_file || instruction.probability_in_file > 0;
  });
  for_each_instruction(instructions_, [&](Instruction& instruction) {
    if (instruction.flag >= 0)
      instruction.operands[instruction.flag].constant =
          on && (instruction.flag_in_file || !trained_in_file);
    if (instruction.probability >= 0)
      instruction.operands[instruction.probability].constant =
          on ? instruction.probability_in_file : 0.0;
  });
}

void ExportedNetwork::to(at::Device device) {
  device_ = device.type();
  for (at::Tensor& value : values_) value.set_data(value.to(device));
  for_each_instruction(instructions_, [&](Instruction& instruction) {
    for (const int operand : instruction.devices) instruction.operands[operand].constant = device;
  });
}

void ExportedNetwork::check(const std::vector<at::Tensor>& inputs) const {
  const auto refuse = [&](std::size_t input, const std::string& why) {
    throw ConfigError(fmt::format("{}: input {} of shape {}: {}", path_, inputs_[input].name,
                                  fmt::join(inputs[input].sizes(), "x"), why));
  };
  std::map<std::string_view, std::int64_t> sizes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ExportedInput& expected = inputs_[i];
    if (inputs[i].dim() != static_cast<std::int64_t>(expected.shape.size()))
      refuse(i, fmt::format("the file was exported with the shape {}",
                            fmt::join(expected.shape, "x")));
    for (std::size_t d = 0; d < expected.shape.size(); ++d) {
      const std::int64_t size = inputs[i].size(static_cast<std::int64_t>(d));
      const std::string& symbol = expected.symbols[d];
      if (symbol.empty() && size != expected.shape[d])
        refuse(i, d == 0 ? fmt::format(
                               "the file was exported with a fixed batch of {0}: use --batch_size "
                               "{0}, or export it with dynamic_shapes, a torch.export.Dim for "
                               "dimension 0",
                               expected.shape[d])
                         : fmt::format("the file was exported with {} in dimension {}: leave "
                                       "--input_shape out, or export it with dynamic_shapes",
                                       expected.shape[d], d));
      if (symbol.empty()) continue;
      const OpenSize& open = open_sizes_.at(symbol);
      if (size < open.least || size > open.most)
        refuse(i, fmt::format("the file allows {} to {} in dimension {}{}", open.least, open.most,
                              d, d == 0 ? ": see --batch_size" : ""));
      if (sizes.try_emplace(symbol, size).first->second != size)
        refuse(i, fmt::format("dimension {} differs from that of another input, to which the file "
                              "ties it",
                              d));
    }
  }
}

void ExportedNetwork::call(const Instruction& instruction, std::vector<c10::IValue>& slots) {
  stack_.clear();
  for (const Operand& operand : instruction.operands) stack_.push_back(value_of(operand, slots));
  if (instruction.kind == Instruction::Kind::symbolic) {
    c10::IValue value = instruction.symbolic(stack_);
    if (const int slot = instruction.outputs[0][0]; slot >= 0) slots[slot] = std::move(value);
    return;
  }
  if (!checked_) check_types(instruction.op->schema(), stack_);
  instruction.op->callBoxed(stack_);
  const auto store = [&](int slot, c10::IValue value) {
    if (slot >= 0) slots[slot] = std::move(value);
  };
  if (instruction.returns_list) {
    const auto& names = instruction.outputs[0];
    const c10::List<c10::IValue> list = stack_[0].toList();
    if (list.size() != names.size())
      throw std::runtime_error(
          fmt::format("it gives {} tensors, and {} in the file", list.size(), names.size()));
    for (std::size_t i = 0; i < names.size(); ++i) store(names[i], list.get(i));
  } else {
    for (std::size_t i = 0; i < instruction.outputs.size(); ++i)
      store(instruction.outputs[i][0], std::move(stack_[i]));
  }
}

void ExportedNetwork::execute(const std::vector<Instruction>& instructions,
                              std::vector<c10::IValue>& slots) {
  for (const Instruction& instruction : instructions) {
    if (instruction.kind == Instruction::Kind::set_gradients) {
      const c10::AutoGradMode mode(instruction.has_gradients && c10::GradMode::is_enabled());
      execute(instruction.body, slots);
    } else if (instruction.kind == Instruction::Kind::autocast) {
      const Autocast cast(device_, instruction.cast.value_or(at::kFloat));
      execute(instruction.body, slots);
    } else {
      current_ = &instruction;
      call(instruction, slots);
    }
  }
}

std::vector<at::Tensor> ExportedNetwork::run(const std::vector<at::Tensor>& inputs) {
  check(inputs);
  std::vector<c10::IValue> slots = initial_;
  for (std::size_t i = 0; i < inputs.size(); ++i) slots[input_slots_[i]] = inputs[i];
  try {
    execute(instructions_, slots);
    checked_ = true;
    for (const auto& [from, buffer] : written_back_) {
      const at::NoGradGuard no_grad;
      slots[buffer].toTensor().copy_(slots[from].toTensor());
    }
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    const auto* torch = dynamic_cast<const c10::Error*>(&error);
    throw ConfigError(
        fmt::format("{}: {} fails: {}", path_, current_ ? current_->place : "the network",
                    first_line(torch ? torch->what_without_backtrace() : error.what())));
  }
  stack_.clear();
  std::vector<at::Tensor> outputs;
  for (const int slot : output_slots_)
    if (slots[slot].isTensor()) outputs.push_back(slots[slot].toTensor());
  return outputs;
}

}  // namespace scalemark

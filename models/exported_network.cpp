// Reads the parts of a file of torch.export, runs its instructions and checks what they are called
// with.
#include "models/exported_network.hpp"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ScalarOps.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

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

namespace {

using Values = std::vector<c10::IValue>;

bool both_integers(const Values& values) {
  return std::ranges::all_of(values, [](const c10::IValue& v) { return v.isInt() || v.isBool(); });
}
std::int64_t integer_of(const c10::IValue& value) {
  return value.isBool() ? static_cast<std::int64_t>(value.toBool()) : value.toInt();
}
double number_of(const c10::IValue& value) {
  return value.isDouble() ? value.toDouble() : static_cast<double>(integer_of(value));
}

[[noreturn]] void refuse_sizes() {
  throw std::runtime_error("sizes that no integer of 64 bits holds, or a division by zero");
}
std::int64_t integer_from(double value) {
  if (!(std::abs(value) < 9e18)) refuse_sizes();
  return static_cast<std::int64_t>(value);
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) refuse_sizes();
  return sum;
}
std::int64_t minus(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) refuse_sizes();
  return difference;
}
std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) refuse_sizes();
  return product;
}
/// Rounds towards minus infinity, as Python does.
std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) refuse_sizes();
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
std::int64_t power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0 || exponent > 64) refuse_sizes();
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) result = times(result, base);
  return result;
}
std::int64_t shift(std::int64_t a, std::int64_t by) { return times(a, power(2, by)); }

template <auto OfIntegers, auto OfNumbers>
c10::IValue arithmetic(const Values& v) {
  if (both_integers(v)) return OfIntegers(integer_of(v[0]), integer_of(v[1]));
  return OfNumbers(number_of(v[0]), number_of(v[1]));
}
template <typename Compare>
c10::IValue compared(const Values& v) {
  if (both_integers(v)) return Compare()(integer_of(v[0]), integer_of(v[1]));
  return Compare()(number_of(v[0]), number_of(v[1]));
}

/// Operators of Python on sizes: _SYM_OPS in torch/_export/serde/serialize.py.
constexpr std::array kSymbolic{
    SymbolicOperator{"eq", 2, &compared<std::equal_to<>>},
    SymbolicOperator{"ne", 2, &compared<std::not_equal_to<>>},
    SymbolicOperator{"le", 2, &compared<std::less_equal<>>},
    SymbolicOperator{"ge", 2, &compared<std::greater_equal<>>},
    SymbolicOperator{"lt", 2, &compared<std::less<>>},
    SymbolicOperator{"gt", 2, &compared<std::greater<>>},
    SymbolicOperator{"add", 2, &arithmetic<&plus, +[](double a, double b) { return a + b; }>},
    SymbolicOperator{"sub", 2, &arithmetic<&minus, +[](double a, double b) { return a - b; }>},
    SymbolicOperator{"mul", 2, &arithmetic<&times, +[](double a, double b) { return a * b; }>},
    SymbolicOperator{
        "floordiv", 2,
        &arithmetic<&floor_divide, +[](double a, double b) { return std::floor(a / b); }>},
    SymbolicOperator{"mod", 2,
                     &arithmetic<+[](std::int64_t a, std::int64_t b) {
                       return minus(a, times(floor_divide(a, b), b));
                     },
                                 +[](double a, double b) { return a - std::floor(a / b) * b; }>},
    SymbolicOperator{"pow", 2,
                     &arithmetic<&power, +[](double a, double b) { return std::pow(a, b); }>},
    SymbolicOperator{"sym_max", 2,
                     &arithmetic<+[](std::int64_t a, std::int64_t b) { return std::max(a, b); },
                                 +[](double a, double b) { return std::max(a, b); }>},
    SymbolicOperator{"sym_min", 2,
                     &arithmetic<+[](std::int64_t a, std::int64_t b) { return std::min(a, b); },
                                 +[](double a, double b) { return std::min(a, b); }>},
    SymbolicOperator{
        "truediv", 2,
        [](const Values& v) { return c10::IValue(number_of(v[0]) / number_of(v[1])); }},
    SymbolicOperator{"neg", 1,
                     [](const Values& v) {
                       return v[0].isDouble() ? c10::IValue(-v[0].toDouble())
                                              : c10::IValue(minus(0, integer_of(v[0])));
                     }},
    SymbolicOperator{"pos", 1, [](const Values& v) { return v[0]; }},
    SymbolicOperator{
        "trunc", 1,
        [](const Values& v) { return c10::IValue(integer_from(std::trunc(number_of(v[0])))); }},
    SymbolicOperator{"sym_int", 1,
                     [](const Values& v) {
                       return c10::IValue(v[0].isDouble() ? integer_from(v[0].toDouble())
                                                          : integer_of(v[0]));
                     }},
    SymbolicOperator{"sym_float", 1, [](const Values& v) { return c10::IValue(number_of(v[0])); }},
    SymbolicOperator{"sym_sqrt", 1,
                     [](const Values& v) { return c10::IValue(std::sqrt(number_of(v[0]))); }},
    SymbolicOperator{"sym_not", 1,
                     [](const Values& v) { return c10::IValue(number_of(v[0]) == 0); }},
    SymbolicOperator{"sym_ite", 3,
                     [](const Values& v) { return number_of(v[0]) != 0 ? v[1] : v[2]; }},
    SymbolicOperator{"and_", 2,
                     [](const Values& v) {
                       if (v[0].isBool() && v[1].isBool())
                         return c10::IValue(v[0].toBool() && v[1].toBool());
                       return c10::IValue(integer_of(v[0]) & integer_of(v[1]));
                     }},
    SymbolicOperator{"or_", 2,
                     [](const Values& v) {
                       if (v[0].isBool() && v[1].isBool())
                         return c10::IValue(v[0].toBool() || v[1].toBool());
                       return c10::IValue(integer_of(v[0]) | integer_of(v[1]));
                     }},
    SymbolicOperator{
        "lshift", 2,
        [](const Values& v) { return c10::IValue(shift(integer_of(v[0]), integer_of(v[1]))); }},
    SymbolicOperator{"rshift", 2,
                     [](const Values& v) {
                       return c10::IValue(
                           floor_divide(integer_of(v[0]), power(2, integer_of(v[1]))));
                     }},
};

}  // namespace

const SymbolicOperator* find_symbolic(std::string_view name) {
  const auto known = std::ranges::find(kSymbolic, name, &SymbolicOperator::name);
  return known == kSymbolic.end() ? nullptr : known;
}

namespace {

namespace pt2 = torch::_export;

constexpr int kDeepest = 64;  // of JSON; graphs in graphs are about 10 each

}  // namespace

at::ScalarType scalar_type_of(pt2::ScalarType type) {
  using Theirs = pt2::ScalarType;
  switch (type) {
    case Theirs::BYTE:
      return at::kByte;
    case Theirs::CHAR:
      return at::kChar;
    case Theirs::SHORT:
      return at::kShort;
    case Theirs::INT:
      return at::kInt;
    case Theirs::LONG:
      return at::kLong;
    case Theirs::HALF:
      return at::kHalf;
    case Theirs::FLOAT:
      return at::kFloat;
    case Theirs::DOUBLE:
      return at::kDouble;
    case Theirs::COMPLEXHALF:
      return at::kComplexHalf;
    case Theirs::COMPLEXFLOAT:
      return at::kComplexFloat;
    case Theirs::COMPLEXDOUBLE:
      return at::kComplexDouble;
    case Theirs::BOOL:
      return at::kBool;
    case Theirs::BFLOAT16:
      return at::kBFloat16;
    case Theirs::UINT16:
      return at::kUInt16;
    case Theirs::FLOAT8E4M3FN:
      return at::kFloat8_e4m3fn;
    case Theirs::FLOAT8E5M2:
      return at::kFloat8_e5m2;
    case Theirs::FLOAT8E4M3FNUZ:
      return at::kFloat8_e4m3fnuz;
    case Theirs::FLOAT8E5M2FNUZ:
      return at::kFloat8_e5m2fnuz;
    default:
      throw std::runtime_error(fmt::format("data type {} is unknown", static_cast<int>(type)));
  }
}

at::MemoryFormat memory_format_of(pt2::MemoryFormat format) {
  using Theirs = pt2::MemoryFormat;
  switch (format) {
    case Theirs::ContiguousFormat:
      return at::MemoryFormat::Contiguous;
    case Theirs::ChannelsLast:
      return at::MemoryFormat::ChannelsLast;
    case Theirs::ChannelsLast3d:
      return at::MemoryFormat::ChannelsLast3d;
    case Theirs::PreserveFormat:
      return at::MemoryFormat::Preserve;
    default:
      throw std::runtime_error("a memory format is unknown");
  }
}

std::string ExportedArchive::text_of(const std::string& name) {
  // LibTorch does not compress: what claims to be larger than the file would only fill memory.
  if (record_.getRecordSize(name) > std::filesystem::file_size(path_))
    throw std::runtime_error(name + " is compressed");
  const auto [data, size] = record_.getRecord(name);
  return {static_cast<const char*>(data.get()), size};
}

nlohmann::json ExportedArchive::json_of(const std::string& name) {
  if (!record_.hasRecord(name)) throw std::runtime_error(name + " is missing");
  const auto depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kDeepest) throw std::runtime_error(name + " is nested too deeply");
    return true;
  };
  return nlohmann::json::parse(text_of(name), depth);
}

std::string ExportedArchive::name_of_network() {
  std::vector<std::string> names;
  bool compiled = false;
  for (const std::string& record : record_.getAllRecords()) {
    compiled |= record.starts_with("data/aotinductor/");
    if (record.starts_with("models/") && record.ends_with(".json"))
      names.push_back(record.substr(7, record.size() - 12));
  }
  if (names.size() == 1) return names.front();
  if (names.empty() && compiled)
    throw ConfigError(fmt::format(
        "--model_file {}: a package of AOTInductor is compiled code, which has no gradients: {}",
        path_, kExportRemedy));
  if (names.empty()) throw std::runtime_error("it has no models/*.json");
  throw ConfigError(fmt::format("--model_file {}: it has the networks {}, and one is measured: {}",
                                path_, fmt::join(names, ", "), kExportRemedy));
}

at::Tensor ExportedArchive::tensor_of(const std::string& folder, const std::string& name,
                                      const Config& config) {
  const auto found = config.find(name);
  if (found == config.end()) throw std::runtime_error("weight " + name + " is missing");
  const pt2::PayloadMeta& about = found->second;
  if (about.get_use_pickle() || !about.get_tensor_meta())
    throw ConfigError(fmt::format(
        "--model_file {}: {} is a subclass of torch.Tensor, which only Python can read: {}", path_,
        name, kExportRemedy));
  const pt2::TensorMeta& meta = *about.get_tensor_meta();
  if (meta.get_layout() != pt2::Layout::Strided)
    throw ConfigError(
        fmt::format("--model_file {}: {} is sparse, which is not trained here", path_, name));
  const auto numbers = [&](const std::vector<pt2::SymInt>& from) {
    std::vector<std::int64_t> to;
    for (const pt2::SymInt& one : from) {
      to.push_back(one.get_as_int());
      if (to.back() < 0) throw std::runtime_error("weight " + name + " has a negative size");
    }
    return to;
  };
  const std::vector<std::int64_t> sizes = numbers(meta.get_sizes());
  const std::vector<std::int64_t> strides = numbers(meta.get_strides());
  const std::int64_t offset = numbers({meta.get_storage_offset()}).front();
  if (sizes.size() != strides.size())
    throw std::runtime_error("weight " + name + " has sizes and strides of different lengths");
  const at::ScalarType type = scalar_type_of(meta.get_dtype());
  const std::string path = fmt::format("data/{}/{}", folder, about.get_path_name());
  // Weights that several names share are one tensor.
  at::Tensor& known = tensors_[fmt::format("{} {} {} {} {}", path, static_cast<int>(type), offset,
                                           fmt::join(sizes, "x"), fmt::join(strides, "x"))];
  if (known.defined()) return known;
  const auto options = at::TensorOptions().dtype(type);
  if (std::ranges::count(sizes, 0) > 0) return known = at::empty(sizes, options);
  if (!record_.hasRecord(path)) throw std::runtime_error(path + " is missing");
  if (record_.getRecordSize(path) > std::filesystem::file_size(path_))
    throw std::runtime_error(path + " is compressed");
  const std::size_t needed = at::detail::computeStorageNbytes(
      sizes, strides, c10::elementSize(type), static_cast<std::size_t>(offset));
  auto [data, bytes] = record_.getRecord(path);
  if (bytes < needed)
    throw std::runtime_error(fmt::format("weight {} of shape {} needs {} bytes, and {} has {}",
                                         name, fmt::join(sizes, "x"), needed, path, bytes));
  const c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, std::move(data), nullptr,
                             false);
  const at::Tensor whole = at::empty({0}, options).set_(storage, offset, sizes, strides);
  return known = whole.contiguous().clone();
}

std::string line_of(const torch::_export::Node& node) {
  const auto found = node.get_metadata().find("stack_trace");
  if (found == node.get_metadata().end()) return {};
  const std::string& trace = found->second;
  const std::size_t file = trace.rfind("File \"");
  if (file == std::string::npos) return {};
  const std::size_t end = trace.find("\", line ", file);
  if (end == std::string::npos) return {};
  const std::string path = trace.substr(file + 6, end - file - 6);
  const std::size_t number = end + 8;
  return fmt::format(", line {} of {}",
                     trace.substr(number, trace.find_first_not_of("0123456789", number) - number),
                     path.substr(path.rfind('/') + 1));
}

}  // namespace scalemark

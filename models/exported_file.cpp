// Compiles the graph of a file of torch.export.save into instructions.
#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <unordered_map>

#include "error.hpp"
#include "models/exported_network.hpp"

namespace scalemark {
namespace {

namespace pt2 = torch::_export;

constexpr std::int64_t kSchemaMajor = 8;  // torch/_export/serde/schema.py

/// Calls `visit` with the name of each value that an argument is or has.
template <typename Visit>
void for_each_name(const pt2::Argument& argument, const Visit& visit) {
  using Tag = pt2::Argument::Tag;
  const auto symbol = [&](const auto& one) {
    if (one.tag() == std::decay_t<decltype(one)>::Tag::AS_NAME) visit(one.get_as_name());
  };
  switch (argument.tag()) {
    case Tag::AS_TENSOR:
      return visit(argument.get_as_tensor().get_name());
    case Tag::AS_TENSORS:
      for (const auto& tensor : argument.get_as_tensors()) visit(tensor.get_name());
      return;
    case Tag::AS_SYM_INT:
      return symbol(argument.get_as_sym_int());
    case Tag::AS_SYM_BOOL:
      return symbol(argument.get_as_sym_bool());
    case Tag::AS_SYM_FLOAT:
      return symbol(argument.get_as_sym_float());
    case Tag::AS_OPTIONAL_TENSOR:
      if (argument.get_as_optional_tensor().tag() == pt2::OptionalTensorArgument::Tag::AS_TENSOR)
        visit(argument.get_as_optional_tensor().get_as_tensor().get_name());
      return;
    default:
      return;
  }
}

/// Operators that index a table of their argument `table` with integers of their argument `index`;
/// the rows are its dimension `rows`.
struct Lookup {
  std::string_view name;
  std::size_t table, index, rows;
};
constexpr std::array kLookups{
    Lookup{"aten::embedding", 0, 1, 0},   Lookup{"aten::embedding_bag", 0, 1, 0},
    Lookup{"aten::nll_loss", 0, 1, 1},    Lookup{"aten::cross_entropy_loss", 0, 1, 1},
    Lookup{"aten::nll_loss_nd", 0, 1, 1}, Lookup{"aten::nll_loss_forward", 0, 1, 1},
    Lookup{"aten::nll_loss2d", 0, 1, 1},  Lookup{"aten::index_select", 0, 2, 0},
};
/// Operators whose result has the integers of their first argument.
constexpr std::array<std::string_view, 20> kSameIntegers{
    "aten::view",    "aten::reshape",    "aten::slice",  "aten::to",      "aten::clone",
    "aten::permute", "aten::contiguous", "aten::select", "aten::flatten", "aten::transpose",
    "aten::expand",  "aten::_to_copy",   "aten::detach", "aten::alias",   "aten::unsqueeze",
    "aten::squeeze", "aten::unflatten",  "aten::t",      "aten::narrow",  "aten::_unsafe_view"};

}  // namespace

/// Makes an ExportedNetwork of a file.
class ExportedReader {
 public:
  ExportedReader(const std::string& path, ExportedArchive& archive)
      : path_(path), archive_(archive) {
    network_->path_ = path;
  }

  std::unique_ptr<ExportedNetwork> read() {
    const std::string name = archive_.name_of_network();
    const auto program = archive_.read_json<pt2::ExportedProgram>("models/" + name + ".json");
    if (const auto version = program.get_schema_version(); version.get_major() != kSchemaMajor)
      throw ResultError(fmt::format(
          "--model_file {}: its schema has the version {}.{}, and this program reads {}: save it "
          "again with the LibTorch of this program ({})",
          path_, version.get_major(), version.get_minor(), kSchemaMajor, TORCH_VERSION));
    if (archive_.has("byteorder") && archive_.text_of("byteorder") != "little")
      throw ResultError(fmt::format("--model_file {}: its weights are not little-endian", path_));
    weights_ =
        archive_
            .read_json<pt2::PayloadConfig>(fmt::format("data/weights/{}_weights_config.json", name))
            .get_config();
    constants_ = archive_
                     .read_json<pt2::PayloadConfig>(
                         fmt::format("data/constants/{}_constants_config.json", name))
                     .get_config();
    const pt2::GraphModule& module = program.get_graph_module();
    // The types of LibTorch take what is missing as empty.
    if (module.get_graph().get_nodes().empty()) throw std::runtime_error("it has no operators");
    Scope scope{module.get_graph(), {}};
    read_inputs(module, program.get_range_constraints(), scope);
    compile(module.get_graph(), scope, network_->instructions_);
    read_outputs(module, scope);
    find_last_uses();
    return std::move(network_);
  }

 private:
  struct Scope {
    const pt2::Graph& graph;
    std::unordered_map<std::string, int> slots;
  };

  [[noreturn]] void refuse(const std::string& why) const {
    throw ConfigError(fmt::format("--model_file {}: {} cannot be run: {}", path_, place_, why));
  }

  // What the network is called with, and its weights.

  int new_slot(c10::IValue initial = {}) {
    network_->initial_.push_back(std::move(initial));
    return static_cast<int>(network_->initial_.size()) - 1;
  }

  int slot_of(const std::string& name, const Scope& scope) const {
    const auto found = scope.slots.find(name);
    if (found == scope.slots.end())
      throw std::runtime_error(fmt::format("{} needs \"{}\", which nothing gives", place_, name));
    return found->second;
  }

  void read_inputs(const pt2::GraphModule& module,
                   const std::unordered_map<std::string, pt2::RangeConstraint>& ranges,
                   Scope& scope) {
    const auto& specs = module.get_signature().get_input_specs();
    std::set<const c10::TensorImpl*> seen;
    place_ = "the network";
    for (const pt2::InputSpec& spec : specs) {
      using Tag = pt2::InputSpec::Tag;
      at::Tensor value;
      std::string name;
      switch (spec.tag()) {
        case Tag::USER_INPUT: {
          const pt2::Argument& argument = spec.get_user_input().get_arg();
          if (argument.tag() == pt2::Argument::Tag::AS_TENSOR)
            read_input(argument.get_as_tensor().get_name(), ranges, scope);
          else if (argument.tag() == pt2::Argument::Tag::AS_SYM_INT)
            refuse("one of its inputs is a number whose value is open; export it with a constant");
          continue;
        }
        case Tag::CONSTANT_INPUT:  // its value is part of the graph
          continue;
        case Tag::PARAMETER: {
          const std::string& parameter = spec.get_parameter().get_parameter_name();
          value = archive_.tensor_of("weights", parameter, weights_);
          name = spec.get_parameter().get_arg().get_name();
          const bool trains = weights_.at(parameter).get_tensor_meta()->get_requires_grad();
          if (trains && value.is_floating_point()) {
            if (seen.insert(value.unsafeGetTensorImpl()).second)
              network_->parameters_.push_back({parameter, value.set_requires_grad(true)});
            scope.slots[name] = new_slot(value);
            continue;
          }
          break;
        }
        case Tag::BUFFER: {
          const auto& buffer = spec.get_buffer();
          value = buffer.get_persistent()
                      ? archive_.tensor_of("weights", buffer.get_buffer_name(), weights_)
                      : archive_.tensor_of("constants", buffer.get_buffer_name(), constants_);
          name = buffer.get_arg().get_name();
          buffers_[buffer.get_buffer_name()] = static_cast<int>(network_->initial_.size());
          break;
        }
        case Tag::TENSOR_CONSTANT: {
          const auto& constant = spec.get_tensor_constant();
          value = archive_.tensor_of("constants", constant.get_tensor_constant_name(), constants_);
          name = constant.get_arg().get_name();
          break;
        }
        default:
          refuse("one of its inputs is an object of a class of its own (torchbind), or a token");
      }
      scope.slots[name] = new_slot(value);
      if (seen.insert(value.unsafeGetTensorImpl()).second) network_->values_.push_back(value);
    }
    if (network_->inputs_.empty() || network_->inputs_.front().shape.empty())
      refuse("its first input is no tensor with a dimension for samples");
  }

  void read_input(const std::string& name,
                  const std::unordered_map<std::string, pt2::RangeConstraint>& ranges,
                  Scope& scope) {
    const pt2::TensorMeta& meta = scope.graph.get_tensor_values().at(name);
    ExportedInput input;
    input.name = name;
    input.dtype = scalar_type_of(meta.get_dtype());
    for (const pt2::SymInt& size : meta.get_sizes()) {
      input.symbols.emplace_back();
      if (size.tag() == pt2::SymInt::Tag::AS_INT) {
        input.shape.push_back(size.get_as_int());
        continue;
      }
      const pt2::SymExpr& expression = size.get_as_expr();
      const auto& hint = expression.get_hint();
      // Symbol('s77', positive=True, integer=True); of an expression, such as 8 times one, the size
      // of the example is taken.
      const std::string& text = expression.get_expr_str();
      const std::size_t end = text.find('\'', 8);
      const bool plain = text.starts_with("Symbol('") && end != std::string::npos &&
                         text.find(')') == text.size() - 1;
      OpenSize open;
      if (plain) {
        const std::string symbol = text.substr(8, end - 8);
        if (const auto range = ranges.find(symbol); range != ranges.end()) {
          open.least = range->second.get_min_val().value_or(0);
          open.most = range->second.get_max_val().value_or(std::numeric_limits<int64_t>::max());
        } else {
          open.most = std::numeric_limits<std::int64_t>::max();
        }
        open.least = std::max<std::int64_t>(open.least, 1);
        open.example = hint ? hint->get_as_int() : std::max<std::int64_t>(open.least, 2);
        input.symbols.back() = symbol;
        network_->open_sizes_.try_emplace(symbol, open);
      }
      if (!plain && !hint) refuse("input " + name + " has a size that is not known");
      input.shape.push_back(plain ? open.example : hint->get_as_int());
    }
    for (const std::int64_t size : input.shape)
      if (size < 0) throw std::runtime_error("input " + name + " has a negative size");
    const int slot = new_slot();
    scope.slots[name] = slot;
    integers_of_[slot] = network_->inputs_.size();
    network_->input_slots_.push_back(slot);
    network_->inputs_.push_back(std::move(input));
  }

  void read_outputs(const pt2::GraphModule& module, const Scope& scope) {
    place_ = "the network";
    for (const pt2::OutputSpec& spec : module.get_signature().get_output_specs()) {
      using Tag = pt2::OutputSpec::Tag;
      switch (spec.tag()) {
        case Tag::USER_OUTPUT:
          for_each_name(spec.get_user_output().get_arg(), [&](const std::string& name) {
            network_->output_slots_.push_back(slot_of(name, scope));
          });
          break;
        case Tag::LOSS_OUTPUT:
          network_->output_slots_.push_back(
              slot_of(spec.get_loss_output().get_arg().get_name(), scope));
          break;
        case Tag::BUFFER_MUTATION: {
          const auto& mutation = spec.get_buffer_mutation();
          network_->written_back_.emplace_back(slot_of(mutation.get_arg().get_name(), scope),
                                               buffers_.at(mutation.get_buffer_name()));
          break;
        }
        case Tag::USER_INPUT_MUTATION:  // a batch is used again
          break;
        default:
          refuse("it gives gradients, tokens or new values of its parameters");
      }
    }
    if (network_->output_slots_.empty()) refuse("it gives no tensor");
  }

  // Its operators.

  void compile(const pt2::Graph& graph, Scope& scope, std::vector<Instruction>& into) {
    for (const pt2::Node& node : graph.get_nodes()) {
      const std::string& target = node.get_target();
      std::string name;
      for (const pt2::Argument& output : node.get_outputs())
        for_each_name(output, [&](const std::string& one) {
          if (name.empty()) name = one;
        });
      place_ = fmt::format("{} ({}{})", target,
                           name.empty() ? "a node without output" : "node " + name, line_of(node));
      if (target.starts_with("torch.ops.higher_order."))
        into.push_back(scope_of(node, scope));
      else if (target.starts_with("torch.ops."))
        add_call(node, scope, into);
      else
        into.push_back(symbolic_of(node, scope));
    }
  }

  void add_call(const pt2::Node& node, Scope& scope, std::vector<Instruction>& into) {
    const std::string_view target = std::string_view(node.get_target()).substr(10);
    const std::size_t first = target.find('.'), last = target.rfind('.');
    if (first == std::string_view::npos || first == last)
      throw std::runtime_error(place_ + " has no name of the form torch.ops.aten.relu.default");
    const std::string name =
        fmt::format("{}::{}", target.substr(0, first), target.substr(first + 1, last - first - 1));
    std::string overload(target.substr(last + 1));
    if (overload == "default") overload.clear();
    // Asserts what was so in the export: dtypes differ in bf16, and devices on a GPU.
    if (name == "aten::_assert_tensor_metadata") return;
    Instruction made;
    made.place = place_;
    made.op = c10::Dispatcher::singleton().findSchema({name, overload});
    if (!made.op) refuse("this LibTorch has no such operator");
    const c10::FunctionSchema& schema = made.op->schema();
    for (const c10::Argument& argument : schema.arguments())
      made.operands.push_back(operand_of(argument, node, scope));
    if (schema.arguments().size() < node.get_inputs().size())
      throw std::runtime_error(place_ + " has more arguments than its operator");
    note_flags(made, schema);
    note_integers(made, name, node, scope);
    add_outputs(made, schema, node, scope);
    if (std::ranges::find(kSameIntegers, name) != kSameIntegers.end() && !made.operands.empty())
      if (const auto from = integers_of_.find(made.operands[0].slot);
          from != integers_of_.end() && !made.outputs.empty() && !made.outputs[0].empty())
        integers_of_[made.outputs[0][0]] = from->second;
    into.push_back(std::move(made));
  }

  Operand operand_of(const c10::Argument& argument, const pt2::Node& node, const Scope& scope) {
    const auto& inputs = node.get_inputs();
    const auto given = std::ranges::find(inputs, argument.name(),
                                         [](const auto& input) { return input.get_name(); });
    if (given != inputs.end())
      return operand_of(argument.type(), argument.N(), given->get_arg(), scope);
    Operand operand;
    if (argument.default_value())
      operand.constant = *argument.default_value();
    else
      throw std::runtime_error(fmt::format("{} lacks its argument {}", place_, argument.name()));
    return operand;
  }

  Operand list_of(const c10::TypePtr& type, std::vector<Operand> items) const {
    Operand list;
    list.element = type;
    list.items = std::move(items);
    const bool constant = std::ranges::all_of(
        list.items, [](const Operand& item) { return item.slot < 0 && !item.element; });
    if (!constant) return list;
    c10::impl::GenericList values(type);
    for (const Operand& item : list.items) values.push_back(item.constant);
    return {.constant = values};
  }

  /// The argument `given` for an operator that takes `type`. `count`: of a list of fixed length,
  /// for which one number may stand.
  Operand operand_of(c10::TypePtr type, std::optional<int> count, const pt2::Argument& given,
                     const Scope& scope) {
    using Tag = pt2::Argument::Tag;
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    const auto list = type->cast<c10::ListType>();
    const c10::TypePtr element = list ? list->getElementType() : nullptr;
    const auto constant = [&](c10::IValue value) -> Operand {
      if (list && count && *count > 0 && value.isScalar())
        return list_of(element, std::vector<Operand>(static_cast<std::size_t>(*count),
                                                     number(element, std::move(value))));
      return number(type, std::move(value));
    };
    const auto slot = [&](const std::string& name) -> Operand {
      return {.slot = slot_of(name, scope)};
    };
    const auto symbol = [&](const std::string& name, const c10::TypePtr& taken) {
      Operand operand = slot(name);
      operand.wraps = taken->kind() == c10::TypeKind::TensorType;
      return operand;
    };
    const auto items = [&](const auto& values, const auto& make) {
      if (!list) throw std::runtime_error(place_ + " has a list where its operator takes none");
      std::vector<Operand> made;
      for (const auto& value : values) made.push_back(make(value));
      return list_of(element, std::move(made));
    };
    switch (given.tag()) {
      case Tag::AS_NONE:
        return {};
      case Tag::AS_TENSOR:
        return slot(given.get_as_tensor().get_name());
      case Tag::AS_TENSORS:
        return items(given.get_as_tensors(), [&](const auto& one) { return slot(one.get_name()); });
      case Tag::AS_OPTIONAL_TENSOR: {
        const auto& one = given.get_as_optional_tensor();
        if (one.tag() == pt2::OptionalTensorArgument::Tag::AS_NONE) return {};
        return slot(one.get_as_tensor().get_name());
      }
      case Tag::AS_OPTIONAL_TENSORS:
        return items(given.get_as_optional_tensors(), [&](const auto& one) -> Operand {
          if (one.tag() == pt2::OptionalTensorArgument::Tag::AS_NONE) return {};
          return slot(one.get_as_tensor().get_name());
        });
      case Tag::AS_INT:
        return constant(given.get_as_int());
      case Tag::AS_FLOAT:
        return constant(given.get_as_float().get());
      case Tag::AS_BOOL:
        return constant(given.get_as_bool());
      case Tag::AS_STRING:
        return {.constant = given.get_as_string()};
      case Tag::AS_COMPLEX:
        return {.constant = c10::complex<double>(given.get_as_complex().get_real().get(),
                                                 given.get_as_complex().get_imag().get())};
      case Tag::AS_INTS:
        return items(given.get_as_ints(), [&](std::int64_t one) { return number(element, one); });
      case Tag::AS_FLOATS:
        return items(given.get_as_floats(),
                     [&](const pt2::F64& one) { return number(element, one.get()); });
      case Tag::AS_BOOLS:
        return items(given.get_as_bools(), [&](bool one) { return number(element, one); });
      case Tag::AS_STRINGS:
        return items(given.get_as_strings(),
                     [&](const std::string& one) -> Operand { return {.constant = one}; });
      case Tag::AS_SYM_INT:
        if (given.get_as_sym_int().tag() == pt2::SymIntArgument::Tag::AS_INT)
          return constant(given.get_as_sym_int().get_as_int());
        return symbol(given.get_as_sym_int().get_as_name(), type);
      case Tag::AS_SYM_FLOAT:
        if (given.get_as_sym_float().tag() == pt2::SymFloatArgument::Tag::AS_FLOAT)
          return constant(given.get_as_sym_float().get_as_float().get());
        return symbol(given.get_as_sym_float().get_as_name(), type);
      case Tag::AS_SYM_BOOL:
        if (given.get_as_sym_bool().tag() == pt2::SymBoolArgument::Tag::AS_BOOL)
          return constant(given.get_as_sym_bool().get_as_bool());
        return symbol(given.get_as_sym_bool().get_as_name(), type);
      case Tag::AS_SYM_INTS:
        return items(given.get_as_sym_ints(), [&](const pt2::SymIntArgument& one) {
          return one.tag() == pt2::SymIntArgument::Tag::AS_INT ? number(element, one.get_as_int())
                                                               : slot(one.get_as_name());
        });
      case Tag::AS_SYM_FLOATS:
        return items(given.get_as_sym_floats(), [&](const pt2::SymFloatArgument& one) {
          return one.tag() == pt2::SymFloatArgument::Tag::AS_FLOAT
                     ? number(element, one.get_as_float().get())
                     : slot(one.get_as_name());
        });
      case Tag::AS_SYM_BOOLS:
        return items(given.get_as_sym_bools(), [&](const pt2::SymBoolArgument& one) {
          return one.tag() == pt2::SymBoolArgument::Tag::AS_BOOL
                     ? number(element, one.get_as_bool())
                     : slot(one.get_as_name());
        });
      case Tag::AS_SCALAR_TYPE:
        return {.constant = static_cast<std::int64_t>(scalar_type_of(given.get_as_scalar_type()))};
      case Tag::AS_MEMORY_FORMAT:
        return {.constant =
                    static_cast<std::int64_t>(memory_format_of(given.get_as_memory_format()))};
      case Tag::AS_LAYOUT:
        if (given.get_as_layout() != pt2::Layout::Strided) refuse("it makes a sparse tensor");
        return {.constant = static_cast<std::int64_t>(at::kStrided)};
      case Tag::AS_DEVICE:
        return {.constant = c10::Device(given.get_as_device().get_type())};
      default:
        refuse("one of its arguments is a graph, an object or a list of lists");
    }
  }

  /// A number for an operator that takes `type`: integers stand for floating point, too, and a
  /// number for a tensor, which then does not decide what type the result has.
  static Operand number(const c10::TypePtr& type, c10::IValue value) {
    const auto kind = type->kind();
    if (kind == c10::TypeKind::FloatType && value.isInt())
      value = static_cast<double>(value.toInt());
    if (kind == c10::TypeKind::TensorType) {
      at::Tensor tensor = at::scalar_to_tensor(value.toScalar());
      tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
      value = tensor;
    }
    return {.constant = std::move(value)};
  }

  static void note_flags(Instruction& made, const c10::FunctionSchema& schema) {
    const bool of_tensors = std::ranges::any_of(schema.arguments(), [](const auto& argument) {
      return argument.type()->kind() == c10::TypeKind::TensorType;
    });
    bool without_statistics = false;
    for (int i = 0; i < static_cast<int>(schema.arguments().size()); ++i) {
      const std::string& name = schema.arguments()[i].name();
      const Operand& operand = made.operands[i];
      const bool constant = operand.slot < 0 && !operand.element;
      // A norm that keeps no statistics computes them in inference, too.
      without_statistics |= name == "running_mean" && constant && operand.constant.isNone();
      if ((name == "train" || name == "training") && constant && operand.constant.isBool()) {
        made.flag = i;
        made.flag_in_file = operand.constant.toBool();
      } else if (name == "dropout_p" && constant && operand.constant.isDouble()) {
        made.probability = i;
        made.probability_in_file = operand.constant.toDouble();
      } else if (name == "device" && constant &&
                 (operand.constant.isDevice() || (operand.constant.isNone() && !of_tensors))) {
        made.devices.push_back(i);
      }
    }
    if (without_statistics) {
      made.flag = -1;
      made.flag_in_file = false;
    }
  }

  /// Notes the rows of a table that is indexed with the integers of an input.
  void note_integers(const Instruction& made, std::string_view name, const pt2::Node& node,
                     const Scope& scope) {
    const auto note = [&](int index, std::int64_t rows) {
      const auto from = integers_of_.find(index);
      if (from == integers_of_.end() || rows <= 0) return;
      std::int64_t& below = network_->inputs_[from->second].below;
      below = below == 0 ? rows : std::min(below, rows);
    };
    const auto sizes = [&](std::size_t argument) {
      std::vector<std::int64_t> known;
      if (argument >= node.get_inputs().size()) return known;
      for_each_name(node.get_inputs()[argument].get_arg(), [&](const std::string& tensor) {
        const auto found = scope.graph.get_tensor_values().find(tensor);
        if (found == scope.graph.get_tensor_values().end()) return;
        for (const pt2::SymInt& size : found->second.get_sizes())
          known.push_back(size.tag() == pt2::SymInt::Tag::AS_INT ? size.get_as_int() : 0);
      });
      return known;
    };
    for (const Lookup& lookup : kLookups) {
      if (lookup.name != name || lookup.index >= made.operands.size()) continue;
      const std::vector<std::int64_t> table = sizes(lookup.table);
      if (!table.empty())
        note(made.operands[lookup.index].slot, table[std::min(lookup.rows, table.size() - 1)]);
    }
    if (name == "aten::one_hot" && made.operands.size() > 1 && made.operands[1].constant.isInt())
      note(made.operands[0].slot, made.operands[1].constant.toInt());
    if (name == "aten::index" && made.operands.size() > 1) {
      const std::vector<std::int64_t> table = sizes(0);
      for (std::size_t i = 0; i < std::min(table.size(), made.operands[1].items.size()); ++i)
        note(made.operands[1].items[i].slot, table[i]);
    }
  }

  void add_outputs(Instruction& made, const c10::FunctionSchema& schema, const pt2::Node& node,
                   Scope& scope) {
    const auto& outputs = node.get_outputs();
    const auto& returns = schema.returns();
    made.returns_list = returns.size() == 1 && returns[0].type()->kind() == c10::TypeKind::ListType;
    for (const pt2::Argument& output : outputs) {
      std::vector<int>& slots = made.outputs.emplace_back();
      for_each_name(output, [&](const std::string& name) {
        slots.push_back(scope.slots[name] = new_slot());
      });
      if (!made.returns_list && slots.size() > 1) refuse("one of the values it gives is a list");
      if (!made.returns_list && slots.empty()) slots.push_back(-1);
    }
    if (outputs.empty()) {
      made.returns_list = false;
      return;
    }
    if (outputs.size() > returns.size())
      throw std::runtime_error(fmt::format("{} gives {} values, and its operator {}", place_,
                                           outputs.size(), returns.size()));
  }

  Instruction symbolic_of(const pt2::Node& node, Scope& scope) {
    std::string_view name = node.get_target();
    name = name.substr(name.rfind('.') + 1);
    if (name.starts_with("_sym_")) name = name.substr(1);
    const SymbolicOperator* known = find_symbolic(name);
    if (known == nullptr) refuse("it is no operator on sizes that this program knows");
    if (node.get_inputs().size() != known->operands || node.get_outputs().size() != 1)
      throw std::runtime_error(fmt::format("{} takes {} arguments", place_, known->operands));
    Instruction made;
    made.kind = Instruction::Kind::symbolic;
    made.symbolic = known->function;
    made.place = place_;
    for (const pt2::NamedArgument& input : node.get_inputs()) {
      made.operands.push_back(
          operand_of(c10::NumberType::get(), std::nullopt, input.get_arg(), scope));
      const Operand& operand = made.operands.back();
      if (operand.element || (operand.slot < 0 && !operand.constant.isScalar()))
        throw std::runtime_error(place_ + " has an argument that is no number");
    }
    std::vector<int>& slots = made.outputs.emplace_back();
    for_each_name(node.get_outputs()[0],
                  [&](const std::string& one) { slots.push_back(scope.slots[one] = new_slot()); });
    if (slots.size() != 1) throw std::runtime_error(place_ + " gives no number");
    return made;
  }

  /// A part of the network under torch.no_grad() or torch.autocast(): a graph in the graph.
  Instruction scope_of(const pt2::Node& node, Scope& scope) {
    const auto& inputs = node.get_inputs();
    Instruction made;
    made.place = place_;
    std::size_t graph_at = 0;
    if (node.get_target().ends_with(".wrap_with_set_grad_enabled")) {
      made.kind = Instruction::Kind::set_gradients;
      made.has_gradients = inputs.at(0).get_arg().get_as_bool();
      graph_at = 1;
    } else if (node.get_target().ends_with(".wrap_with_autocast")) {
      made.kind = Instruction::Kind::autocast;
      const pt2::Argument& type = inputs.at(1).get_arg();
      if (inputs.at(2).get_arg().get_as_bool())
        made.cast = type.tag() == pt2::Argument::Tag::AS_SCALAR_TYPE
                        ? scalar_type_of(type.get_as_scalar_type())
                        : at::kBFloat16;
      graph_at = 4;
    } else {
      refuse(
          "a graph in the graph runs only under no_grad and autocast; export the network without "
          "this control flow");
    }
    const pt2::Graph& body = *inputs.at(graph_at).get_arg().get_as_graph().get_graph();
    const auto& taken = body.get_inputs();
    if (taken.size() != inputs.size() - graph_at - 1)
      throw std::runtime_error(place_ + " and its graph have different inputs");
    Scope inner{body, {}};
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const Operand value =
          operand_of(c10::AnyType::get(), std::nullopt, inputs[graph_at + 1 + i].get_arg(), scope);
      for_each_name(taken[i], [&](const std::string& name) {
        inner.slots[name] = value.slot >= 0 ? value.slot : new_slot(value.constant);
      });
    }
    const std::string place = place_;
    compile(body, inner, made.body);
    place_ = place;
    // The values that it gives are those of its graph.
    std::vector<int> given;
    for (const pt2::Argument& output : body.get_outputs())
      for_each_name(output,
                    [&](const std::string& name) { given.push_back(slot_of(name, inner)); });
    std::size_t next = 0;
    for (const pt2::Argument& output : node.get_outputs())
      for_each_name(output, [&](const std::string& name) { scope.slots[name] = given.at(next++); });
    return made;
  }

  // When values are freed.

  void find_last_uses() {
    std::set<int> used(network_->output_slots_.begin(), network_->output_slots_.end());
    for (const auto& [from, buffer] : network_->written_back_) used.insert({from, buffer});
    find_last_uses(network_->instructions_, used);
    // Training is told what gets a gradient: not what no operator reads.
    std::set<const c10::TensorImpl*> read;
    for (const int slot : used)
      if (const c10::IValue& value = network_->initial_[slot]; value.isTensor())
        read.insert(value.toTensor().unsafeGetTensorImpl());
    std::erase_if(network_->parameters_, [&](const auto& parameter) {
      return !read.contains(parameter.tensor.unsafeGetTensorImpl());
    });
  }

  static void find_last_uses(std::vector<Instruction>& instructions, std::set<int>& used) {
    for (auto one = instructions.rbegin(); one != instructions.rend(); ++one) {
      find_last_uses(one->body, used);
      for (std::vector<int>& slots : one->outputs)
        for (int& slot : slots)
          if (!used.contains(slot)) slot = -1;
      for (auto operand = one->operands.rbegin(); operand != one->operands.rend(); ++operand) {
        for (auto item = operand->items.rbegin(); item != operand->items.rend(); ++item)
          if (item->slot >= 0) item->last = used.insert(item->slot).second;
        if (operand->slot >= 0) operand->last = used.insert(operand->slot).second;
      }
    }
  }

  std::string path_, place_ = "the file";
  ExportedArchive& archive_;
  std::unique_ptr<ExportedNetwork> network_ = std::make_unique<ExportedNetwork>();
  ExportedArchive::Config weights_, constants_;
  std::map<std::string, int> buffers_;
  std::map<int, std::size_t> integers_of_;  ///< the input whose integers a slot has
};

std::unique_ptr<ExportedNetwork> read_exported(const std::string& path) {
  std::unique_ptr<ExportedArchive> archive;
  try {
    archive = std::make_unique<ExportedArchive>(path);
    if (archive->has("serialized_exported_program.json"))
      throw ResultError(
          fmt::format("--model_file {}: torch.export.save of a LibTorch before 2.8 wrote it: save "
                      "it again with "
                      "{}",
                      path, TORCH_VERSION));
    if (!archive->has("archive_format")) return nullptr;
  } catch (const c10::Error&) {
    return nullptr;  // no zip: the reader of TorchScript says so
  }
  try {
    return ExportedReader(path, *archive).read();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    const auto* torch = dynamic_cast<const c10::Error*>(&error);
    throw ResultError(fmt::format("--model_file {} is damaged: {}; {}", path,
                                  torch ? complaint(torch->what_without_backtrace()) : error.what(),
                                  kExportRemedy));
  }
}

}  // namespace scalemark

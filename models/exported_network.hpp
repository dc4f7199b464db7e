// Runs the graph of operators that torch.export.save has written: compiled once into instructions,
// which then go through LibTorch's dispatcher, with autograd.
#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <torch/csrc/utils/generated_serialization_types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace scalemark {

/// Computes matrix products and convolutions in `dtype`, as torch.autocast does; with fp32 nothing
/// is cast. Weights stay as they are.
class Autocast {
 public:
  Autocast(at::DeviceType device, at::ScalarType dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_;
  at::ScalarType dtype_before_;
};

/// Returns the last line of an error text; the lines before it are the code that led there.
std::string complaint(std::string_view text);

/// A size of an input that the file leaves open, and the sizes that it may have.
struct OpenSize {
  std::int64_t example = 2, least = 0, most = 0;
};

/// A tensor that the network is called with.
struct ExportedInput {
  std::string name;
  std::vector<std::int64_t> shape;   ///< of the example that the network was exported with
  std::vector<std::string> symbols;  ///< the open size of each dimension; empty: fixed
  at::ScalarType dtype = at::kFloat;
  std::int64_t below =
      0;  ///< rows of the smallest table that its integers index; 0: they index none
};

/// An argument of an instruction: a constant, the value of a slot or a list of such.
struct Operand {
  c10::IValue constant = {};
  int slot = -1;              ///< -1: none
  bool last = false;          ///< nothing reads the slot afterwards
  bool wraps = false;         ///< a number that the operator takes as a tensor
  c10::TypePtr element = {};  ///< of a list: the type of its items; null: no list
  std::vector<Operand> items = {};
};

using SymbolicFunction = c10::IValue (*)(const std::vector<c10::IValue>&);

/// An operator of Python on sizes, such as "floordiv".
struct SymbolicOperator {
  std::string_view name;
  std::size_t operands;
  SymbolicFunction function;
};
/// Returns the operator of this name, or null.
const SymbolicOperator* find_symbolic(std::string_view name);

struct Instruction {
  enum class Kind { call, symbolic, set_gradients, autocast };
  Kind kind = Kind::call;
  std::optional<c10::OperatorHandle> op = {};
  SymbolicFunction symbolic = nullptr;
  std::vector<Operand> operands = {};
  /// The slots of each value that it returns; a list has one for each item. -1: nobody reads it.
  std::vector<std::vector<int>> outputs = {};
  bool returns_list = false;  ///< the one value is a list
  std::string place = {};     ///< operator, node and line of Python, for errors
  // Of operators that differ between training and inference: the operands that say so, and what the
  // file has there.
  int flag = -1, probability = -1;
  bool flag_in_file = false;
  double probability_in_file = 0;
  std::vector<int> devices = {};            ///< operands that are a device
  bool has_gradients = false;               ///< of set_gradients
  std::optional<at::ScalarType> cast = {};  ///< of autocast; none: off
  std::vector<Instruction> body = {};       ///< of set_gradients and autocast
};

class ExportedNetwork {
 public:
  /// A parameter that is trained. One that has several names in the file is one tensor.
  struct Parameter {
    std::string name;
    at::Tensor tensor;
  };

  const std::vector<ExportedInput>& inputs() const { return inputs_; }
  const std::map<std::string, OpenSize>& open_sizes() const { return open_sizes_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// The open size that counts samples: the first dimension of the first input. Empty: fixed.
  const std::string& batch() const { return inputs_.front().symbols.front(); }

  /// Sets the flags of dropout and batch normalisation: in training, those of the file, or all of
  /// them where it was exported in eval mode.
  void train(bool on);
  /// Moves buffers and constants, and makes tensors there that the graph makes. Parameters are
  /// moved by who owns them.
  void to(at::Device device);
  /// Returns the outputs that are tensors. Throws ConfigError where the inputs have other shapes
  /// than the file allows, and where an operator fails.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

 private:
  friend class ExportedReader;
  void check(const std::vector<at::Tensor>& inputs) const;
  void execute(const std::vector<Instruction>& instructions, std::vector<c10::IValue>& slots);
  void call(const Instruction& instruction, std::vector<c10::IValue>& slots);

  std::string path_;
  std::vector<ExportedInput> inputs_;
  std::map<std::string, OpenSize> open_sizes_;
  std::vector<Parameter> parameters_;
  std::vector<Instruction> instructions_;
  std::vector<c10::IValue> initial_;  ///< of each slot: weights and constants
  std::vector<int> input_slots_, output_slots_;
  std::vector<std::pair<int, int>> written_back_;  ///< a slot, and that of the buffer it updates
  std::vector<at::Tensor> values_;                 ///< buffers and constants
  at::DeviceType device_ = at::kCPU;
  bool checked_ = false;                  ///< all types fit their operators
  const Instruction* current_ = nullptr;  ///< what runs now, for errors
  std::vector<c10::IValue> stack_;
};

/// Reads a file of torch.export.save, or returns null where the file is not one. Throws ResultError
/// where the file is damaged or of another version, and ConfigError where it has what cannot be
/// run.
std::unique_ptr<ExportedNetwork> read_exported(const std::string& path);

// The file: a zip with JSON, whose types LibTorch ships, and weights as bytes.

inline constexpr std::string_view kExportRemedy =
    "make one with torch.export.save(torch.export.export(net, example), path)";

at::ScalarType scalar_type_of(torch::_export::ScalarType type);
at::MemoryFormat memory_format_of(torch::_export::MemoryFormat format);
/// Returns ", line 12 of net.py" for the innermost line of Python that made a node, or nothing.
std::string line_of(const torch::_export::Node& node);

/// Reads parts of the file. All throw std::runtime_error where it is damaged, and ConfigError where
/// it has what is not run here.
class ExportedArchive {
 public:
  using Config = std::unordered_map<std::string, torch::_export::PayloadMeta>;

  /// Throws c10::Error where the file is no zip.
  explicit ExportedArchive(const std::string& path) : path_(path), record_(path) {}

  bool has(const std::string& name) { return record_.hasRecord(name); }
  std::string text_of(const std::string& name);
  template <typename T>
  T read_json(const std::string& name) {
    const nlohmann::json json = json_of(name);
    try {
      return json.template get<T>();
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{}: {}", name, error.what()));
    }
  }
  /// Returns the name of its one network.
  std::string name_of_network();
  /// Returns a weight or constant. Those that several names share are one tensor.
  at::Tensor tensor_of(const std::string& folder, const std::string& name, const Config& config);

 private:
  nlohmann::json json_of(const std::string& name);

  std::string path_;
  caffe2::serialize::PyTorchStreamReader record_;
  std::map<std::string, at::Tensor> tensors_;
};

}  // namespace scalemark

// Operators for a GPU from the Triton kernels of this folder (--kernels triton). What launches a
// kernel is given from outside: CUDA on a GPU, Triton's interpreter in a test.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "models/operator_set.hpp"

namespace scalemark {

/// A kernel by its name in variants.py, with its arguments in order but for the constants.
struct KernelCall {
  std::string name;
  std::array<std::int64_t, 2> programs;  ///< the grid
  std::vector<std::variant<at::Tensor, std::int64_t, float>> arguments;
};

/// Returns the letters of the arguments' types, as in CompiledKernel.
std::string kinds_of(const KernelCall& call);

class KernelLauncher : public torch::CustomClassHolder {
 public:
  /// Returns whether kernels can read the tensor where it lies.
  virtual bool reaches(const at::Tensor& x) const = 0;
  virtual void launch(const KernelCall& call) const = 0;
  /// Returns into how many programs work is divided that any number could do.
  virtual std::int64_t programs() const = 0;
};

/// Returns LibTorch's operators, but for those that these kernels compute in bf16: batch
/// normalisation of training over channels_last activations, layer normalisation of a sum of at
/// most 1,024 elements a row, dropout(relu(x)), and the cross-entropy of logits, each where the
/// number of channels, of elements of a row or in all, or of classes is a multiple of 16.
std::unique_ptr<OperatorSet> triton_operators(c10::intrusive_ptr<KernelLauncher> launcher);

/// A kernel in the machine code of a generation of GPUs.
struct CompiledKernel {
  const char *name, *symbol;
  int version;         ///< 90: sm_90, which GPUs of compute capability 9.x run
  const char* binary;  ///< a cubin
  int warps;
  std::size_t shared_bytes;
  const char* kinds;  ///< of the arguments: p: pointer, n: int64, f: fp32
};

/// Returns those that the build has compiled: none without SCALEMARK_TRITON.
std::span<const CompiledKernel> compiled_kernels();

}  // namespace scalemark

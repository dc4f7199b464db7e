// Declares what a shared library with a user's own model exports, for --model_library
// (docs/adding_a_model.md): derive from Model, and name the class in SCALEMARK_MODEL.
#pragma once

#include <torch/version.h>

#include <memory>

#include "models/model.hpp"

/// Both sides must have been compiled with this: the headers of models/ and LibTorch.
#define SCALEMARK_MODEL_INTERFACE "interface 6, LibTorch " TORCH_VERSION

/// Write it once in a library, outside namespaces. `Network` is constructed from a const
/// scalemark::ModelOptions&.
#define SCALEMARK_MODEL(Network)                                                           \
  extern "C" const char* scalemark_model_interface() { return SCALEMARK_MODEL_INTERFACE; } \
  extern "C" void scalemark_make_model(const scalemark::ModelOptions& options,             \
                                       std::shared_ptr<scalemark::Model>& model) {         \
    model = std::make_shared<Network>(options);                                            \
  }

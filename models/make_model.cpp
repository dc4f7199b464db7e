// Makes a network by its name with the factories that the entries of the catalog name, or with the
// code of a shared library that the user provides. From then on both are used alike.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "error.hpp"
#include "models/catalog.hpp"
#include "models/library.hpp"
#include "models/model.hpp"

namespace scalemark {

#define MODEL(factory, ...) std::shared_ptr<Model> factory(const ModelOptions&);
#include "models/catalog.inc"
#undef MODEL

std::shared_ptr<Model> make_file_model(const ModelOptions& options);  // file_model.cpp

namespace {

using Factory = std::shared_ptr<Model> (*)(const ModelOptions&);

constexpr std::array<Factory, kModels.size()> kFactories{
#define MODEL(factory, ...) &factory,
#include "models/catalog.inc"
#undef MODEL
};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw ResultError(fmt::format("--model_library {}: {}", path, why));
}

/// Returns a symbol that SCALEMARK_MODEL defines.
template <typename Function>
Function* find(void* library, const char* name, const std::string& path) {
  auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
  if (found == nullptr)
    refuse(path, fmt::format("it lacks {}; name the class of your model in SCALEMARK_MODEL "
                             "(models/library.hpp)",
                             name));
  return found;
}

std::shared_ptr<Model> make_library_model(const ModelOptions& options) {
  const std::string path = std::filesystem::absolute(options.library).string();
  // The library stays loaded, since it contains the code of the model.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse(options.library, std::string("cannot be loaded: ") + dlerror());
  const char* const made_with =
      find<const char*()>(library, "scalemark_model_interface", options.library)();
  if (std::strcmp(made_with, SCALEMARK_MODEL_INTERFACE) != 0)
    refuse(options.library,
           fmt::format("compiled against {}, and this program is {}: compile it again", made_with,
                       SCALEMARK_MODEL_INTERFACE));
  std::shared_ptr<Model> model;
  find<void(const ModelOptions&, std::shared_ptr<Model>&)>(library, "scalemark_make_model",
                                                           options.library)(options, model);
  if (model->parameters().empty())
    throw ConfigError(options.library + ": the model has no parameters (register_parameter)");
  return model;
}

std::shared_ptr<Model> make_plain_model(const ModelOptions& options) {
  if (!options.file.empty()) return make_file_model(options);
  if (!options.library.empty()) return make_library_model(options);
  std::string names;
  for (std::size_t i = 0; i < kModels.size(); ++i) {
    if (kModels[i].name == options.name) return kFactories[i](options);
    names += (i ? ", " : "") + std::string(kModels[i].name);
  }
  throw std::invalid_argument(
      fmt::format("unknown model '{}'; the catalog has {}", options.name, names));
}

}  // namespace

std::shared_ptr<Model> make_model(const ModelOptions& options) {
  std::shared_ptr<Model> model = make_plain_model(options);
  model->set_operators(*options.operators);
  return model;
}

}  // namespace scalemark

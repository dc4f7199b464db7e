// Makes a model of a shared library that the user provides. Its own code makes it; then it is used
// like those of the catalog.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "error.hpp"
#include "models/library.hpp"

namespace scalemark {
namespace {

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

}  // namespace

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

}  // namespace scalemark

// Makes a network by its name with the factories that the entries of the catalog name.
#include <fmt/format.h>

#include <stdexcept>

#include "models/catalog.hpp"
#include "models/model.hpp"

namespace scalemark {

#define MODEL(factory, ...) std::shared_ptr<Model> factory(const ModelOptions&);
#include "models/catalog.inc"
#undef MODEL

std::shared_ptr<Model> make_file_model(const ModelOptions& options);     // file_model.cpp
std::shared_ptr<Model> make_library_model(const ModelOptions& options);  // library_model.cpp

namespace {

using Factory = std::shared_ptr<Model> (*)(const ModelOptions&);

constexpr std::array<Factory, kModels.size()> kFactories{
#define MODEL(factory, ...) &factory,
#include "models/catalog.inc"
#undef MODEL
};

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

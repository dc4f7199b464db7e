// Records the uses of parameters in a forward pass.
#include "train/use_probe.hpp"

namespace scalemark {
namespace {

/// Returns "word_embedding" for "word_embedding.weight".
std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

}  // namespace

void UseProbe::before_use(at::TensorList parameters) {
  for (const at::Tensor& leaf : parameters) {
    Uses& uses = uses_[leaf.unsafeGetTensorImpl()];
    if (uses.first < 0) uses.first = announced_++;
  }
}

at::Tensor UseProbe::compute_weight(const at::Tensor& leaf) {
  ++uses_[leaf.unsafeGetTensorImpl()].all;
  return leaf;
}

bool UseProbe::takes_rows(const at::Tensor& leaf) {
  ++uses_[leaf.unsafeGetTensorImpl()].lookups;
  return false;
}

std::vector<EmbeddingTable> UseProbe::tables(const Model& model) const {
  std::vector<EmbeddingTable> tables;
  int parameter = 0;
  for (const auto& leaf : model.named_parameters()) {
    const auto found = uses_.find(leaf.value().unsafeGetTensorImpl());
    if (found != uses_.end() && found->second.lookups > 0)
      tables.push_back({parameter, layer_of(leaf.key()), leaf.value().size(0), leaf.value().size(1),
                        found->second.all > found->second.lookups});
    ++parameter;
  }
  return tables;
}

std::vector<int> UseProbe::first_uses(const Model& model) const {
  std::vector<int> first;
  for (const at::Tensor& leaf : model.parameters()) {
    const auto found = uses_.find(leaf.unsafeGetTensorImpl());
    first.push_back(found == uses_.end() ? -1 : found->second.first);
  }
  return first;
}

}  // namespace scalemark

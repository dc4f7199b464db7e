// See embedding_tables.hpp.
#include "train/embedding_tables.hpp"

namespace scalemark {
namespace {

TableGradient gradient_of(const EmbeddingTable& table, const ResolvedConfig& config) {
  switch (config.embedding_gradients) {
    case EmbeddingGradients::dense:
      break;
    case EmbeddingGradients::sparse:
      return table.tied && config.tied_gradient == TiedGradient::dense ? TableGradient::beside
                                                                       : TableGradient::gathered;
    case EmbeddingGradients::sparse_as_dense:
      return TableGradient::converted;
  }
  return TableGradient::dense;
}

/// "word_embedding" of "word_embedding.weight".
std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

}  // namespace

at::Tensor TableProbe::compute_weight(const at::Tensor& leaf) {
  ++uses_[leaf.unsafeGetTensorImpl()].all;
  return leaf;
}

bool TableProbe::takes_rows(const at::Tensor& leaf) {
  ++uses_[leaf.unsafeGetTensorImpl()].lookups;
  return false;
}

std::vector<EmbeddingTable> TableProbe::tables(const Model& model) const {
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

std::vector<EmbeddingTable> with_strategy(std::vector<EmbeddingTable> tables,
                                          const ResolvedConfig& config) {
  for (EmbeddingTable& table : tables) table.how = gradient_of(table, config);
  return tables;
}

}  // namespace scalemark

// Selects how the gradient of each embedding table is communicated.
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

}  // namespace

std::vector<EmbeddingTable> with_strategy(std::vector<EmbeddingTable> tables,
                                          const ResolvedConfig& config) {
  for (EmbeddingTable& table : tables) table.how = gradient_of(table, config);
  return tables;
}

}  // namespace scalemark

// Which parameters of a network are embedding tables, and how the gradient of each travels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "models/model.hpp"

namespace scalemark {

/// What becomes of a table's gradient. "Lookups" are those of table_rows(), "dense" is what a
/// projection that shares the table contributes.
enum class TableGradient {
  dense,     ///< all of it is summed in the table's slice, which travels in its bucket
  beside,    ///< lookups are collected as rows and gathered; dense goes to the slice as ever
  gathered,  ///< all of it is collected as rows and gathered; the slice does not travel
  converted  ///< all of it is collected as rows, added up in the slice, which travels in its bucket
};

struct EmbeddingTable {
  int parameter;             ///< index into Model::parameters()
  std::string name;          ///< of the layer
  std::int64_t rows, width;  ///< V x d
  bool tied;                 ///< used for more than lookups
  TableGradient how = TableGradient::dense;

  bool collects() const { return how != TableGradient::dense; }
  /// The slice travels in an allreduced bucket.
  bool reduced() const { return how != TableGradient::gathered; }
  bool gathered() const { return how == TableGradient::gathered || how == TableGradient::beside; }
  /// The dense gradient is carried as V rows.
  bool carries_dense() const {
    return tied && (how == TableGradient::gathered || how == TableGradient::converted);
  }
};

/// The same tables as `--embedding_gradients` and `--tied_gradient` ask. sparse_as_dense collects a
/// dense gradient as rows too, as the published accumulation does (docs/measurements.md).
std::vector<EmbeddingTable> with_strategy(std::vector<EmbeddingTable> tables,
                                          const ResolvedConfig& config);

}  // namespace scalemark

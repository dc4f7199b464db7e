// Describes which parameters of a network are embedding tables, and how the gradient of each is
// communicated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "models/model.hpp"

namespace scalemark {

/// How the gradient of a table is communicated. "Lookups" are those of table_rows(); "dense" is the
/// contribution of a projection that shares the table.
enum class TableGradient {
  dense,     ///< all of it is summed in the table's slice, which travels in its bucket
  beside,    ///< lookups are collected as rows and gathered; dense goes to the slice as ever
  gathered,  ///< all of it is collected as rows and gathered; the slice does not travel
  converted  ///< all of it is collected as rows, added up in the slice, which travels in its bucket
};

/// An embedding table of a network and how its gradient is communicated.
struct EmbeddingTable {
  int parameter;             ///< index into Model::parameters()
  std::string name;          ///< name of the layer
  std::int64_t rows, width;  ///< V x d
  bool tied;                 ///< used for more than lookups
  TableGradient how = TableGradient::dense;

  bool collects() const { return how != TableGradient::dense; }
  /// Returns whether the slice is part of an allreduced bucket.
  bool reduced() const { return how != TableGradient::gathered; }
  bool gathered() const { return how == TableGradient::gathered || how == TableGradient::beside; }
  /// Returns whether the dense gradient is sent as V rows.
  bool carries_dense() const {
    return tied && (how == TableGradient::gathered || how == TableGradient::converted);
  }
};

/// Returns the tables with the strategy of `--embedding_gradients` and `--tied_gradient`. With
/// sparse_as_dense, a dense gradient is collected as rows too, as in the published accumulation
/// (docs/measurements.md).
std::vector<EmbeddingTable> with_strategy(std::vector<EmbeddingTable> tables,
                                          const ResolvedConfig& config);

}  // namespace scalemark

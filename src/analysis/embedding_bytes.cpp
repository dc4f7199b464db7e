// See embedding_bytes.hpp.
#include "analysis/embedding_bytes.hpp"

#include "measure/bus_bandwidth.hpp"

namespace scalemark {

EmbeddingBytes embedding_bytes(const std::vector<TableLookups>& tables, EmbeddingGradients strategy,
                               TiedGradient tied_gradient, std::int64_t ranks) {
  const bool sparse = strategy == EmbeddingGradients::sparse;
  const bool converted = strategy == EmbeddingGradients::sparse_as_dense;
  EmbeddingBytes bytes;
  for (const TableLookups& table : tables) {
    const bool carried =
        table.tied && (converted || (sparse && tied_gradient == TiedGradient::sparse));
    const std::int64_t collected = table.lookups + (carried ? table.rows : 0);
    const std::int64_t own = collected * (4 * table.width + 8);
    if (sparse || converted) bytes.rows_per_rank += collected;
    if (sparse || converted) bytes.own_bytes += own;
    if (sparse) bytes.gathered_bytes += ranks * own;
    if (!sparse || (table.tied && !carried)) bytes.dense_bytes += 4 * table.rows * table.width;
  }
  bytes.wire_bytes = ring_allgather_bytes(bytes.gathered_bytes, ranks) +
                     ring_allreduce_bytes(bytes.dense_bytes, ranks);
  return bytes;
}

}  // namespace scalemark

// What the gradients of embedding tables cost to accumulate over ranks: the closed forms that
// --dry_run prints and that tests hold records against (docs/measurements.md).
#pragma once

#include <cstdint>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

/// One table V x d and what a rank looks up in it in a step.
struct TableLookups {
  std::int64_t rows, width;
  bool tied;             ///< a projection shares the table
  std::int64_t lookups;  ///< of all micro-batches
};

/// Of one rank and step.
struct EmbeddingBytes {
  std::int64_t rows_per_rank = 0;   ///< that the rank collects; 0 for dense gradients
  std::int64_t own_bytes = 0;       ///< of these rows and their indices, before they go anywhere
  std::int64_t gathered_bytes = 0;  ///< rows and indices of all ranks
  std::int64_t dense_bytes = 0;     ///< fp32 gradients of tables that an allreduce sums
  std::int64_t wire_bytes = 0;      ///< sent by a ring allgather and a ring allreduce, mean

  std::int64_t buffer_bytes() const { return gathered_bytes + dense_bytes; }
};

/// fp32 rows of d elements and int64 indices, N ranks with as many lookups each. Of one table:
/// dense and sparse_as_dense 4 V d; sparse N T (4 d + 8), and where the table is tied 4 V d beside
/// it, or with a sparse tied gradient N (V + T) (4 d + 8) alone.
EmbeddingBytes embedding_bytes(const std::vector<TableLookups>& tables, EmbeddingGradients strategy,
                               TiedGradient tied, std::int64_t ranks);

}  // namespace scalemark

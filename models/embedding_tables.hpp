// Lists the embedding tables of every sequence model for programs without LibTorch, which --dry_run
// needs to state the bytes of their gradients. A test checks them against the networks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/catalog.hpp"

namespace scalemark {

/// The facts about one embedding table.
struct TableFacts {
  std::string_view name;     ///< name of the layer
  std::int64_t rows, width;  ///< V x d
  bool tied;                 ///< serves as output projection too
  std::int64_t lookups;      ///< rows looked up by a pass over a batch
};

/// Returns the tables of `facts` and their lookups in one pass over `samples` sequences of `length`
/// tokens. An image model has none.
inline std::vector<TableFacts> embedding_tables(const ModelFacts& facts, std::int64_t samples,
                                                std::int64_t length) {
  const std::int64_t tokens = samples * length, d = facts.width;
  const bool tiny = facts.name.ends_with("_tiny");
  if (facts.name.starts_with("transformer"))  // looked up for source and target
    return {{"embedding", tiny ? 1024 : 32'768, d, true, 2 * tokens}};
  if (facts.name.starts_with("bert"))  // one position serves all sequences of a pass
    return {{"word_embedding", tiny ? 1024 : 30'522, d, true, tokens},
            {"position_embedding", kBertPositions, d, false, length},
            {"segment_embedding", 2, d, false, tokens}};
  return {};
}

}  // namespace scalemark
